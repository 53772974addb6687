"""What the answers of a search look like."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from nexus.media.searching.excerpts import Excerpt
from nexus.media.searching.finding import SearchHit, SearchPage
from nexus.web.api.schemas import EXAMPLE_ID, CapabilitiesOut, MediaOut
from nexus.web.http.envelope import Answer
from nexus.web.links import passage_address

#: Where something is in a text: the first character, and the first after it.
Place = tuple[int, int]


class PassageOut(Answer):
    """A part of a text that matches."""

    fragment_id: UUID = Field(examples=[EXAMPLE_ID])
    position: int = Field(examples=[0], description="Of the fragment in the text.")
    start: int = Field(
        examples=[1204], description="Where in the fragment's text it begins, counted in characters."
    )
    end: int = Field(examples=[1262], description="Where it ends.")
    text: str = Field(
        examples=["The river carried the boats past the old harbour at night."],
        description="Exactly the characters from `start` to `end`.",
    )
    marks: list[Place] = Field(
        examples=[[[22, 27], [41, 48]]],
        description="Where `text` has words of the question: the first character of each, and the first after it.",
    )
    url: str = Field(
        examples=[f"/items/{EXAMPLE_ID}?from=0&mark=1204-1262#mark"],
        description="The page that opens the text at this passage.",
    )

    starts_ms: int | None = Field(
        None,
        examples=[754200],
        description="Only in transcripts with times: when the sentence with the first mark is spoken, in milliseconds.",
    )

    @classmethod
    def of(cls, found: Excerpt, media_id: UUID) -> PassageOut:
        known = {name: value for name, value in vars(found).items() if value is not None}
        return cls.model_validate({**known, "url": passage_address(media_id, found)})


class FoundOut(Answer):
    media: MediaOut
    score: float = Field(
        examples=[0.87], description="How well it matches, from 0 to 1. Comparable within one search only."
    )
    passages: list[PassageOut] = Field(
        description="The best first, at most three; none if only its title, byline or site matches."
    )
    title_marks: list[Place] = Field(examples=[[[4, 9]]], description="The same as `marks`, for its title.")

    @classmethod
    def of(cls, found: SearchHit, viewer: UUID) -> FoundOut:
        return cls(
            media=MediaOut.of(found.view, viewer),
            score=round(found.score, 4),
            passages=[PassageOut.of(one, found.view.row.id) for one in found.passages],
            title_marks=found.title_marks,
        )


class FoundPage(Answer):
    items: list[FoundOut]
    next_cursor: str | None
    total: int = Field(examples=[12], description="How many items were found, at most 200.")
    by: Literal["words", "words_and_meaning"] = Field(
        description="What was looked for. It is words alone if there is no model, or it did not answer in time."
    )
    suggestions: list[str] = Field(
        examples=[["harbour boats"]], description="What you may have meant, if nothing was found."
    )

    @classmethod
    def of(cls, found: SearchPage, viewer: UUID) -> FoundPage:
        return cls(
            items=[FoundOut.of(one, viewer) for one in found.items],
            next_cursor=found.next_cursor,
            total=found.total,
            by="words_and_meaning" if found.by_meaning else "words",
            suggestions=found.suggestions,
        )


class SimilarOut(Answer):
    items: list[FoundOut]
    by: Literal["words", "words_and_meaning"] = Field(
        description="`words` if the item has no vectors to compare: then its most distinctive words are searched for."
    )
    capabilities: CapabilitiesOut
