"""The life of a story: saved with its job, edited, published or put away.

Each change names the revision it was made from, so that two editors can't overwrite each other by mistake.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, insert, literal_column, update

from nexus.db.editorial import stories
from nexus.db.moves import STORY_ROWS, Missed, Move, log_created
from nexus.db.rows import JobRow, StoryRow
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import UNSTORABLE, one_of
from nexus.draft import (
    BACKGROUND,
    CLAIM,
    HEADLINE,
    HEADLINE_QUOTES,
    QUOTE,
    SUMMARY,
    SUMMARY_QUOTES,
    WHAT_HAPPENED,
    Draft,
    Evidence,
    StoryClaim,
)
from nexus.draft.grounding import QuotableText
from nexus.editorial import queries
from nexus.errors import Conflict, InvalidRequest, InvalidState
from nexus.states.machine import Verdict
from nexus.states.story import PUBLISH, STORY, StoryStatus

#: How many characters of the headline a slug has; the id follows and makes it unique.
MOST_SLUG = 80
OPEN = frozenset({StoryStatus.DRAFT, StoryStatus.REVIEW})
CHANGED = "Somebody has changed this story since. Look at it again, then repeat your change."

_now = bindparam("now", type_=stories.c.updated_at.type)
_NEXT = stories.c.revision + literal_column("1")
_NEW = Statement(
    insert(stories).values(
        {
            column: bindparam(column.name)
            for column in stories.c
            if column.name not in {"status", "status_before", "revision", "edited_at", "published_at"}
        }
    )
)
_EDIT = Query(
    update(stories)
    .where(
        stories.c.id == bindparam("story_id"),
        stories.c.revision == bindparam("fence"),
        one_of(stories.c.status, OPEN),
    )
    .values(
        {
            **{name: bindparam(f"new_{name}") for name in ("headline", "summary", "sections")},
            "revision": _NEXT,
            "edited_at": _now,
            "updated_at": _now,
        }
    )
    .returning(stories),
    StoryRow,
)
_MOVES = {
    edge.verb: Move(
        STORY_ROWS,
        edge,
        row=StoryRow,
        sets={"revision": _NEXT, **({"published_at": _now} if edge is PUBLISH else {})},
        fenced=True,
    )
    for edge in STORY
}


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


@dataclass(frozen=True)
class Sections:
    """The claims of a story, and the evidence of its headline and summary."""

    what_happened: tuple[StoryClaim, ...]
    background: tuple[StoryClaim, ...]
    headline: tuple[Evidence, ...] = ()
    summary: tuple[Evidence, ...] = ()

    @property
    def unsupported_claims(self) -> int:
        return sum(not claim.evidence.found for claim in (*self.what_happened, *self.background))

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


def save_story(session: Session, job: JobRow, draft: Draft, story_id: UUID, actor: str) -> None:
    """Save a draft as a story of its job."""
    session.run(
        _NEW,
        id=story_id,
        job_id=job.id,
        slug=slug(draft.headline, story_id),
        headline=draft.headline,
        summary=draft.summary,
        sections=Sections(
            draft.what_happened, draft.background, draft.headline_evidence, draft.summary_evidence
        ).as_json(),
        sources=json.dumps([{"title": job.extracted_title, "url": job.canonical_url}]),
        article_text=job.extracted_text,
        model=draft.model,
        prompt_version=draft.prompt_version,
        tokens_used=draft.tokens_used,
        generated_at=session.now,
        created_at=session.now,
        updated_at=session.now,
    )
    log_created(session, STORY_ROWS, story_id, actor=actor)


def ground_wording(story: StoryRow, wording: Wording) -> Grounded:
    """Check what an editor wrote and look its quotes up, which is slow: open no transaction for it.

    Raises InvalidRequest.
    """
    kept = Sections.parse(story.sections)
    known = {(claim.text, claim.evidence.quote): claim for claim in (*kept.what_happened, *kept.background)}
    source, title = QuotableText(story.article_text), json.loads(story.sources)[0]["title"]
    saved = wording_of(story)
    headline_quotes, summary_quotes = wording.headline_quotes, wording.summary_quotes
    if headline_quotes is None:
        headline_quotes = saved.headline_quotes if wording.headline == saved.headline else ()
    if summary_quotes is None:
        summary_quotes = saved.summary_quotes if wording.summary == saved.summary else ()
    return Grounded(
        _sized(wording.headline, HEADLINE, "The headline"),
        _sized(wording.summary, SUMMARY, "The summary"),
        Sections(
            _claims(wording.what_happened, known, source, WHAT_HAPPENED, "What happened"),
            _claims(wording.background, known, source, BACKGROUND, "The background"),
            _evidence(headline_quotes, kept.headline, source, title, HEADLINE_QUOTES, "The headline"),
            _evidence(summary_quotes, kept.summary, source, title, SUMMARY_QUOTES, "The summary"),
        ),
    )


def save_wording(session: Session, story: StoryRow, revision: int, grounded: Grounded) -> StoryRow:
    """Raises InvalidState, Conflict."""
    row = session.first(
        _EDIT,
        story_id=story.id,
        fence=revision,
        new_headline=grounded.headline,
        new_summary=grounded.summary,
        new_sections=grounded.sections.as_json(),
        now=session.now,
    )
    if row is None:
        if story.status not in OPEN:
            raise InvalidState("Only a draft or a story in review can be changed. Restore it first.")
        raise Conflict(CHANGED)
    return row


def walk_story(session: Session, story_id: UUID, verb: str, revision: int, actor: str) -> StoryRow | None:
    """Walk an edge of the story's machine; None if it is in that state already. Raises InvalidState, Conflict."""
    row = _MOVES[verb](session, story_id, actor=actor, fence=revision)
    if not isinstance(row, Missed):
        return row
    if row.verdict is Verdict.SKIP:
        return None
    if row.stale:
        raise Conflict(CHANGED)
    raise InvalidState(f"A story that is {row.state} can't be changed so.")


def slug(headline: str, story_id: UUID) -> str:
    """Make a readable name of ASCII letters from a headline in any script; the id makes it unique."""
    from slugify import slugify  # noqa: PLC0415 10 ms that no start needs

    return f"{slugify(headline, max_length=MOST_SLUG) or 'story'}-{story_id.hex[:12]}"


def _claims(
    said: Sequence[tuple[str, str]],
    known: Mapping[tuple[str, str], StoryClaim],
    source: QuotableText,
    count: tuple[int, int],
    what: str,
) -> tuple[StoryClaim, ...]:
    """Check new claims and look up their quotes. Unchanged ones passed before, by the rules of their time."""
    least, most = count
    if not least <= len(said) <= most:
        raise InvalidRequest(f"{what} has {len(said)} claims. Give {least} to {most}.")
    claims = []
    for text, quote in said:
        claim = known.get((text, quote))
        if claim is None:
            support = _sized(quote, QUOTE, "A quote") if quote.strip() else ""
            claim = StoryClaim(_sized(text, CLAIM, "A claim"), source.evidence(support))
        claims.append(claim)
    return tuple(claims)


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
        raise InvalidRequest(f"{what} has {len(said)} quotes. Give at most {most}.")
    return tuple(
        known.get(quote) or source.evidence(_sized(quote, QUOTE, "A quote"), title) for quote in said
    )


def _sized(given: str, size: tuple[int, int], what: str) -> str:
    text = " ".join(UNSTORABLE.sub("", given).split())
    least, most = size
    if not least <= len(text) <= most:
        raise InvalidRequest(f"{what} has {len(text)} characters. Give {least} to {most}.")
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


@dataclass(frozen=True)
class ChangedStory:
    story: StoryRow
    #: It was in this state already.
    skipped: bool


def edit_story(sessions: Sessions, viewer: UUID, story_id: UUID, revision: int, wording: Wording) -> StoryRow:
    """Save another wording of a story. Raises NotFound, InvalidRequest, InvalidState, Conflict."""
    with sessions.read() as session:
        story = queries.visible_story(session, story_id, viewer)
    grounded = ground_wording(story, wording)
    with sessions.begin() as session:
        return save_wording(session, story, revision, grounded)


def change_story(
    sessions: Sessions,
    viewer: UUID,
    story_id: UUID,
    revision: int,
    verb: str | None,
    wording: Wording | None = None,
) -> ChangedStory:
    """Save a wording if it differs from the story's, and walk an edge if one is named; both, either or neither.

    Raises as `edit_story` does.
    """
    with sessions.read() as session:
        story = queries.visible_story(session, story_id, viewer)
    grounded = changed = None
    if wording is not None and wording != wording_of(story):
        grounded = ground_wording(story, wording)
    with sessions.begin() as session:
        if grounded is not None:
            revision = save_wording(session, story, revision, grounded).revision
        if verb is not None:
            changed = walk_story(session, story_id, verb, revision, str(viewer))
        now = changed or queries.visible_story(session, story_id, viewer)
    return ChangedStory(now, skipped=verb is not None and changed is None)
