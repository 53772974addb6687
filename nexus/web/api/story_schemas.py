"""What requests and answers about stories look like, in camelCase."""

from __future__ import annotations

import json
from typing import Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from nexus.db.rows import StoryRow
from nexus.draft import StoryClaim
from nexus.draft.support import support_of
from nexus.editorial.queries import ShownStoryRow
from nexus.editorial.quote_moments import QuoteMoments
from nexus.editorial.wording import Sections, Wording
from nexus.web.api.schemas import Body, EventOut
from nexus.web.http.envelope import CamelAnswer, Moment
from nexus.web.links import moment_address

_CLAIM = "The harbour was closed on Monday."
_QUOTE = "The port authority closed the harbour on Monday morning."


class ClaimBody(Body):
    text: str = Field(examples=[_CLAIM])
    quote: str = Field(
        "", examples=[_QUOTE], description="What the claim rests on; looked up in the article."
    )
    checked: bool = Field(False, description="You have compared its changed words with the quote.")


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
    headline_checked: bool = Field(
        False, description="You have compared the changed headline with its quotes."
    )
    summary_checked: bool = Field(False, description="The same for the summary.")
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
            self._checked(),
        )

    def _checked(self) -> tuple[str, ...]:
        texts = {self.headline: self.headline_checked, self.summary: self.summary_checked}
        claims = {claim.text for claim in (*self.what_happened, *self.background) if claim.checked}
        return tuple(claims | {text for text, checked in texts.items() if checked})


class CorrectionBody(StoryBody):
    """The corrected wording, and what its readers are told."""

    correction: str = Field("", examples=["The harbour was closed on Monday, not on Tuesday."])
    unsupported: int = Field(0, ge=0, le=100, description="As for publishing.")


class RevisionBody(Body):
    revision: int = Field(ge=1, lt=2**31, examples=[1])
    unsupported: int = Field(
        0,
        ge=0,
        le=100,
        description="To publish: how many of the story's `unsupported` statements you know of. "
        "If it has another number of them, nothing changes and the error is `E_UNSUPPORTED`.",
    )


class ClaimOut(CamelAnswer):
    text: str = Field(examples=[_CLAIM])
    quote: str = Field(examples=[_QUOTE])
    start: int | None = Field(
        description="Where the quote begins in the article's text; null if it is not there."
    )
    end: int | None
    edited: bool = Field(description="Its words were changed after the quote was found.")
    missing: list[str] = Field(
        examples=[["2099"]], description="Numbers, dates and names that the quote lacks."
    )
    supported: bool = Field(description="The quote was found, belongs to these words, and lacks nothing.")

    @classmethod
    def of(cls, claim: StoryClaim) -> Self:
        support = support_of(claim.text, [claim.evidence])
        return cls(
            text=claim.text,
            quote=claim.evidence.quote,
            start=claim.evidence.start,
            end=claim.evidence.end,
            edited=support.is_edited,
            missing=list(support.missing),
            supported=support.is_full,
        )


class EvidenceOut(CamelAnswer):
    quote: str = Field(examples=[_QUOTE])
    start: int | None = Field(
        description="Where the quote begins in the article's text; null if it is not there."
    )
    end: int | None
    in_title: bool = Field(description="Whether the quote is in the article's title instead.")
    edited: bool = Field(description="The words that rest on it were changed after it was found.")
    supported: bool = Field(validation_alias="found", description="The quote was found.")


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
    headline_missing: list[str] = Field(description="Numbers, dates and names that its quotes lack.")
    headline_supported: bool
    summary: str
    summary_evidence: list[EvidenceOut]
    summary_missing: list[str]
    summary_supported: bool
    unsupported: list[str] = Field(
        examples=[["claim 2"]],
        description="What its quotes do not fully support. Publishing it has to be confirmed.",
    )
    sections: SectionsOut
    sources: list[StorySourceOut]
    model: str = Field(examples=["extractive"])
    prompt_version: str
    tokens_used: int
    generated_at: Moment
    edited_at: Moment | None
    published_at: Moment | None
    corrected_at: Moment | None = Field(description="When it was last corrected after its publication.")
    correction: str | None = Field(description="What its readers are told about that.")
    created_at: Moment
    updated_at: Moment

    @classmethod
    def of(cls, row: ShownStoryRow) -> Self:
        sections = Sections.parse(row.sections)
        headline = support_of(row.headline, sections.headline)
        summary = support_of(row.summary, sections.summary)
        parsed = {
            "sections": {
                "what_happened": list(map(ClaimOut.of, sections.what_happened)),
                "background": list(map(ClaimOut.of, sections.background)),
            },
            "sources": json.loads(row.sources),
            "headline_evidence": sections.headline,
            "headline_missing": headline.missing,
            "headline_supported": headline.is_full,
            "summary_evidence": sections.summary,
            "summary_missing": summary.missing,
            "summary_supported": summary.is_full,
            "unsupported": sections.unsupported(row.headline, row.summary),
        }
        return cls.model_validate({**row._asdict(), **parsed})


class QuoteMomentOut(CamelAnswer):
    start: int = Field(description="Where a quote begins in the article's text.")
    starts_ms: int = Field(description="When it is spoken, in milliseconds.")
    url: str = Field(examples=["/items/…?at=754.2"], description="The page that opens the recording there.")


class StoryDetail(StorySummary):
    article_text: str = Field(description="What the evidence points into.")
    moments: list[QuoteMomentOut] | None = Field(
        None, description="When its quotes are spoken. Only in a story from the transcript of a recording."
    )

    @classmethod
    def spoken(cls, row: StoryRow, moments: QuoteMoments | None) -> StoryDetail:
        """A story with the times of its quotes, if it has any."""
        shown = cls.of(row)
        if moments is None:
            return shown
        claims = [*shown.sections.what_happened, *shown.sections.background]
        quoted: list[ClaimOut | EvidenceOut] = [*shown.headline_evidence, *shown.summary_evidence, *claims]
        found = [
            QuoteMomentOut(start=start, starts_ms=at, url=moment_address(moments.media_id, at))
            for start in sorted({one.start for one in quoted if one.start is not None})
            if (at := moments.moment_at(start)) is not None
        ]
        return shown.model_copy(update={"moments": found})


class StoryOut(CamelAnswer):
    success: Literal[True]
    skipped: bool
    story: StoryDetail
    history: list[EventOut] | None = None


class StoryPage(CamelAnswer):
    success: Literal[True]
    stories: list[StorySummary]
    next_cursor: str | None
