"""What a story says: its wording as an editor types it, and the quotes behind each statement, looked up."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nexus.db.rows import StoryRow
from nexus.db.tables import UNSTORABLE
from nexus.draft import (
    BACKGROUND,
    CLAIM,
    HEADLINE,
    HEADLINE_QUOTES,
    QUOTE,
    SUMMARY,
    SUMMARY_QUOTES,
    WHAT_HAPPENED,
    Evidence,
    StoryClaim,
)
from nexus.draft.grounding import QuotableText
from nexus.draft.support import support_of
from nexus.errors import InvalidRequest


@dataclass(frozen=True)
class Wording:
    """A story as an editor wants it: each claim with the quote that supports it, or with an empty one."""

    headline: str
    summary: str
    what_happened: Sequence[tuple[str, str]]
    background: Sequence[tuple[str, str]]
    #: What supports the headline and the summary, each quote on one line. None keeps what is saved for a text that
    #: stays the same; another text has no support then.
    headline_quotes: Sequence[str] | None = None
    summary_quotes: Sequence[str] | None = None
    #: The texts, edited after their quotes were found, that the editor has compared with their quotes.
    checked: Collection[str] = ()


@dataclass(frozen=True)
class Sections:
    """The claims of a story, and the evidence of its headline and summary."""

    what_happened: tuple[StoryClaim, ...]
    background: tuple[StoryClaim, ...]
    headline: tuple[Evidence, ...] = ()
    summary: tuple[Evidence, ...] = ()

    def unsupported(self, headline: str, summary: str) -> list[str]:
        """Return the names of what the quotes do not fully support: "headline", "summary", "claim 1", …"""
        claims = enumerate((*self.what_happened, *self.background), 1)
        said = {
            "headline": (headline, self.headline),
            "summary": (summary, self.summary),
            **{f"claim {number}": (claim.text, (claim.evidence,)) for number, claim in claims},
        }
        return [name for name, (text, evidence) in said.items() if not support_of(text, evidence).is_full]

    @classmethod
    def parse(cls, stored: str) -> Sections:
        """Read them as `as_json` wrote them."""
        kept = json.loads(stored)
        # Stories of earlier versions have no evidence for headline and summary.
        return cls(
            _claims_of(kept["what_happened"]),
            _claims_of(kept["background"]),
            tuple(Evidence(**evidence) for evidence in kept.get("headline", ())),
            tuple(Evidence(**evidence) for evidence in kept.get("summary", ())),
        )

    def as_json(self) -> str:
        claims = {"what_happened": self.what_happened, "background": self.background}
        texts = {"headline": self.headline, "summary": self.summary}
        return json.dumps(
            {
                name: [{"text": claim.text, **vars(claim.evidence)} for claim in all_]
                for name, all_ in claims.items()
            }
            | {name: list(map(vars, evidence)) for name, evidence in texts.items()}
        )


def _claims_of(kept: Sequence[dict[str, Any]]) -> tuple[StoryClaim, ...]:
    return tuple(StoryClaim(claim.pop("text"), Evidence(**claim)) for claim in kept)


@dataclass(frozen=True)
class Grounded:
    """A wording that has passed the checks and may be saved."""

    headline: str
    summary: str
    sections: Sections


def ground_wording(story: StoryRow, wording: Wording) -> Grounded:
    """Check what an editor wrote and look its quotes up, which is slow: open no transaction for it.

    Raises InvalidRequest.
    """
    kept, saved = Sections.parse(story.sections), wording_of(story)
    known = [*kept.what_happened, *kept.background]
    source, title = QuotableText(story.article_text), json.loads(story.sources)[0]["title"]
    headline = _settled(wording.headline, saved.headline, kept.headline, wording.checked)
    summary = _settled(wording.summary, saved.summary, kept.summary, wording.checked)
    claims = _Claims(source, known, {*wording.what_happened, *wording.background}, wording.checked)
    headline_quotes, summary_quotes = wording.headline_quotes, wording.summary_quotes
    if headline_quotes is None:
        headline_quotes = saved.headline_quotes if wording.headline == saved.headline else ()
    if summary_quotes is None:
        summary_quotes = saved.summary_quotes if wording.summary == saved.summary else ()
    return Grounded(
        sized(wording.headline, HEADLINE, "Headline"),
        sized(wording.summary, SUMMARY, "Summary"),
        Sections(
            claims.ground(wording.what_happened, WHAT_HAPPENED, "What happened"),
            claims.ground(wording.background, BACKGROUND, "Background"),
            _evidence(headline_quotes, headline, source, title, HEADLINE_QUOTES, "Headline"),
            _evidence(summary_quotes, summary, source, title, SUMMARY_QUOTES, "Summary"),
        ),
    )


class _Claims:
    """Checks claims against those that are saved."""

    def __init__(
        self,
        source: QuotableText,
        known: Sequence[StoryClaim],
        said: Collection[tuple[str, str]],
        checked: Collection[str],
    ) -> None:
        self._source, self._checked = source, checked
        self._known = {(claim.text, claim.evidence.quote): claim for claim in known}
        #: The quotes of claims that are no longer there as they were, with the words that they were found for.
        self._left = {quote: text for text, quote in self._known if (text, quote) not in said}

    def ground(
        self, said: Sequence[tuple[str, str]], count: tuple[int, int], what: str
    ) -> tuple[StoryClaim, ...]:
        """Check new claims and look up their quotes. Unchanged ones passed before, by the rules of their time."""
        least, most = count
        if not least <= len(said) <= most:
            raise InvalidRequest(f"{what} must have {least}–{most} claims (now {len(said)}).")
        return tuple(self._claim(text, quote) for text, quote in said)

    def _claim(self, text: str, quote: str) -> StoryClaim:
        kept = self._known.get((text, quote))
        if kept is not None:
            (evidence,) = _settled(text, text, (kept.evidence,), self._checked)
            return StoryClaim(text, evidence)
        support = sized(quote, QUOTE, "A quote") if quote.strip() else ""
        said = sized(text, CLAIM, "A claim")
        (evidence,) = _settled(
            text, self._left.get(quote, text), (self._source.evidence(support),), self._checked
        )
        return StoryClaim(said, evidence)


def _settled(
    text: str, before: str, evidence: tuple[Evidence, ...], checked: Collection[str]
) -> tuple[Evidence, ...]:
    """Mark evidence that was found for other words, until somebody says that they have compared it with these."""
    if text in checked:
        return tuple(replace(one, edited=False) for one in evidence)
    if _words(text) == _words(before):
        return evidence
    return tuple(replace(one, edited=one.found) for one in evidence)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _evidence(
    said: Sequence[str] | None,
    kept: tuple[Evidence, ...],
    source: QuotableText,
    title: str,
    most: int,
    what: str,
) -> tuple[Evidence, ...]:
    """Check new quotes and look them up, in the title too. Unchanged ones passed before."""
    said = said or ()
    known = {" ".join(evidence.quote.split()): evidence for evidence in kept}
    if len(said) > most:
        raise InvalidRequest(f"{what} must have at most {most} quotes (now {len(said)}).")
    return tuple(known.get(quote) or source.evidence(sized(quote, QUOTE, "A quote"), title) for quote in said)


def sized(given: str, size: tuple[int, int], what: str) -> str:
    """Return a text on one line. Raises InvalidRequest if it is too short or too long."""
    text = " ".join(UNSTORABLE.sub("", given).split())
    least, most = size
    if not least <= len(text) <= most:
        raise InvalidRequest(f"{what} must be {least}–{most} characters (now {len(text)}).")
    return text


def wording_of(story: StoryRow) -> Wording:
    """Return a story's current wording, as an editor would have typed it."""
    sections = Sections.parse(story.sections)
    return Wording(
        story.headline,
        story.summary,
        [(claim.text, claim.evidence.quote) for claim in sections.what_happened],
        [(claim.text, claim.evidence.quote) for claim in sections.background],
        [" ".join(evidence.quote.split()) for evidence in sections.headline],
        [" ".join(evidence.quote.split()) for evidence in sections.summary],
    )
