"""What requests and answers about stories look like, in camelCase as those about jobs."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from nexus.db.session import Row
from nexus.draft import Claim
from nexus.editorial.stories import Sections, Wording
from nexus.web.api.job_schemas import Camel, plain
from nexus.web.api.schemas import Body, EventOut

_CLAIM = "The harbour was closed on Monday."
_QUOTE = "The port authority closed the harbour on Monday morning."


class ClaimBody(Body):
    text: str = Field(examples=[_CLAIM])
    quote: str = Field("", examples=[_QUOTE], description="What the claim rests on; it is looked up.")


class StoryBody(Body):
    """The whole wording, and the revision that it was made on."""

    model_config = ConfigDict(alias_generator=to_camel)

    revision: int = Field(ge=1, lt=2**31, examples=[1])
    headline: str = Field(examples=["Harbour closed after storm"])
    summary: str = Field(examples=["A storm closed the harbour on Monday, and no ship left before noon."])
    what_happened: list[ClaimBody]
    background: list[ClaimBody]

    def wording(self) -> Wording:
        return Wording(self.headline, self.summary, _pairs(self.what_happened), _pairs(self.background))


class ChangeBody(Body):
    revision: int = Field(ge=1, lt=2**31, examples=[1])


class ClaimOut(Camel):
    text: str = Field(examples=[_CLAIM])
    quote: str = Field(examples=[_QUOTE])
    start: int | None = Field(description="Where in the article's text the quote begins; null: not in it.")
    end: int | None
    supported: bool


class SectionsOut(Camel):
    what_happened: list[ClaimOut]
    background: list[ClaimOut]


class SourceOut(Camel):
    title: str
    url: str | None


class Story(Camel):
    id: UUID
    job_id: UUID
    slug: str
    status: str = Field(examples=["draft"])
    revision: int
    headline: str
    summary: str
    sections: SectionsOut
    sources: list[SourceOut]
    model: str = Field(examples=["extractive"])
    prompt_version: str
    tokens_used: int
    generated_at: datetime
    edited_at: datetime | None
    published_at: datetime | None
    created_at: datetime
    updated_at: datetime


class WholeStory(Story):
    article_text: str = Field(description="What the evidence points into.")


class StoryOut(Camel):
    success: Literal[True] = True
    skipped: bool = False
    story: WholeStory
    history: list[EventOut] | None = None


class StoryPage(Camel):
    success: Literal[True] = True
    stories: list[Story]
    next_cursor: str | None


def story_json(row: Row) -> dict[str, Any]:
    """Every field that the row has and the model shows."""
    shown = {name: plain(getattr(row, name)) for name in WholeStory.model_fields if hasattr(row, name)}
    sections = Sections.of(row)
    shown["sections"] = {
        "whatHappened": list(map(_claim, sections.what_happened)),
        "background": list(map(_claim, sections.background)),
    }
    shown["sources"] = json.loads(row.sources)
    return {to_camel(name): value for name, value in shown.items()}


def _claim(claim: Claim) -> dict[str, Any]:
    return {"text": claim.text, **vars(claim.evidence), "supported": claim.evidence.found}


def _pairs(claims: list[ClaimBody]) -> list[tuple[str, str]]:
    return [(claim.text, claim.quote) for claim in claims]
