"""What requests and answers about stories look like, in camelCase."""

from __future__ import annotations

import json
from typing import Literal, Self
from uuid import UUID

from pydantic import AliasPath, ConfigDict, Field
from pydantic.alias_generators import to_camel

from nexus.draft import is_supported
from nexus.editorial.queries import ShownStoryRow
from nexus.editorial.stories import Sections, Wording
from nexus.web.api.schemas import Body, EventOut
from nexus.web.http.envelope import CamelAnswer, Moment

_CLAIM = "The harbour was closed on Monday."
_QUOTE = "The port authority closed the harbour on Monday morning."


class ClaimBody(Body):
    text: str = Field(examples=[_CLAIM])
    quote: str = Field(
        "", examples=[_QUOTE], description="What the claim rests on; looked up in the article."
    )


class StoryBody(Body):
    """The whole wording, and the revision it was made from."""

    model_config = ConfigDict(alias_generator=to_camel)

    revision: int = Field(ge=1, lt=2**31, examples=[1])
    headline: str = Field(examples=["Harbour closed after storm"])
    summary: str = Field(examples=["A storm closed the harbour on Monday, and no ship left before noon."])
    headline_quotes: list[str] | None = Field(
        None,
        description="What the headline rests on; looked up in the article and its title. "
        "null keeps what is saved, unless the headline changes.",
    )
    summary_quotes: list[str] | None = Field(None, description="The same for the summary.")
    what_happened: list[ClaimBody]
    background: list[ClaimBody]

    def wording(self) -> Wording:
        return Wording(
            self.headline,
            self.summary,
            [(claim.text, claim.quote) for claim in self.what_happened],
            [(claim.text, claim.quote) for claim in self.background],
            self.headline_quotes,
            self.summary_quotes,
        )


class RevisionBody(Body):
    revision: int = Field(ge=1, lt=2**31, examples=[1])


class ClaimOut(CamelAnswer):
    text: str = Field(examples=[_CLAIM])
    quote: str = Field(examples=[_QUOTE], validation_alias=AliasPath("evidence", "quote"))
    start: int | None = Field(
        description="Where the quote begins in the article's text; null if it is not there.",
        validation_alias=AliasPath("evidence", "start"),
    )
    end: int | None = Field(validation_alias=AliasPath("evidence", "end"))
    supported: bool = Field(validation_alias=AliasPath("evidence", "found"))


class EvidenceOut(CamelAnswer):
    quote: str = Field(examples=[_QUOTE])
    start: int | None = Field(
        description="Where the quote begins in the article's text; null if it is not there."
    )
    end: int | None
    in_title: bool = Field(description="Whether the quote is in the article's title instead.")
    supported: bool = Field(validation_alias="found")


class SectionsOut(CamelAnswer):
    what_happened: list[ClaimOut]
    background: list[ClaimOut]


class StorySourceOut(CamelAnswer):
    title: str
    url: str | None


class StorySummary(CamelAnswer):
    id: UUID
    job_id: UUID
    slug: str
    status: str = Field(examples=["draft"])
    revision: int
    headline: str
    headline_evidence: list[EvidenceOut]
    headline_supported: bool
    summary: str
    summary_evidence: list[EvidenceOut]
    summary_supported: bool
    sections: SectionsOut
    sources: list[StorySourceOut]
    model: str = Field(examples=["extractive"])
    prompt_version: str
    tokens_used: int
    generated_at: Moment
    edited_at: Moment | None
    published_at: Moment | None
    created_at: Moment
    updated_at: Moment

    @classmethod
    def of(cls, row: ShownStoryRow) -> Self:
        sections = Sections.parse(row.sections)
        parsed = {
            "sections": sections,
            "sources": json.loads(row.sources),
            "headline_evidence": sections.headline,
            "headline_supported": is_supported(sections.headline),
            "summary_evidence": sections.summary,
            "summary_supported": is_supported(sections.summary),
        }
        return cls.model_validate({**row._asdict(), **parsed})


class StoryDetail(StorySummary):
    article_text: str = Field(description="What the evidence points into.")


class StoryOut(CamelAnswer):
    success: Literal[True]
    skipped: bool
    story: StoryDetail
    history: list[EventOut] | None = None


class StoryPage(CamelAnswer):
    success: Literal[True]
    stories: list[StorySummary]
    next_cursor: str | None
