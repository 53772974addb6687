"""The life of a story: saved with its job, edited, published or put away.

Each change names the revision it was made from, so that two editors can't overwrite each other by mistake.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import bindparam, insert, literal_column, null, update

from nexus.db.editorial import stories
from nexus.db.moves import STORY_ROWS, Missed, Move, log_created
from nexus.db.rows import JobRow, StoryRow
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import one_of
from nexus.draft import Draft
from nexus.editorial import queries
from nexus.editorial.wording import Grounded, Sections, Wording, ground_wording, sized, wording_of
from nexus.errors import Conflict, InvalidRequest, InvalidState, Unsupported
from nexus.states.machine import Verdict
from nexus.states.story import CORRECT, PUBLISH, STORY, StoryStatus

#: How many characters of the headline a slug has; the id follows and makes it unique.
MOST_SLUG = 80
OPEN = frozenset({StoryStatus.DRAFT, StoryStatus.REVIEW})
#: How long the words about a correction may be.
MOST_CORRECTION = 500
CHANGED = "Someone else has changed this story. Reload it, then make your change again."

_now = bindparam("now", type_=stories.c.updated_at.type)
_NEXT = stories.c.revision + literal_column("1")
#: Columns that a new story leaves empty or to their defaults.
_LATER = frozenset(
    ("status", "status_before", "revision", "edited_at", "published_at", "corrected_at", "correction")
)
_NEW = Statement(
    insert(stories).values(
        {column: bindparam(column.name) for column in stories.c if column.name not in _LATER}
    )
)
_WORDING = {
    **{name: bindparam(f"new_{name}") for name in ("headline", "summary", "sections")},
    "revision": _NEXT,
    "edited_at": _now,
}
_EDIT = Query(
    update(stories)
    .where(
        stories.c.id == bindparam("story_id"),
        stories.c.revision == bindparam("fence"),
        one_of(stories.c.status, OPEN),
    )
    .values({**_WORDING, "updated_at": _now})
    .returning(stories),
    StoryRow,
)
#: A story that is published again begins without corrections.
_PUBLISHED = {"published_at": _now, "corrected_at": null(), "correction": null()}
_MOVES = {
    edge.verb: Move(
        STORY_ROWS,
        edge,
        row=StoryRow,
        sets={"revision": _NEXT, **(_PUBLISHED if edge is PUBLISH else {})},
        fenced=True,
    )
    for edge in STORY
    if edge is not CORRECT
}
_CORRECT = Move(
    STORY_ROWS,
    CORRECT,
    row=StoryRow,
    sets={
        **_WORDING,
        "corrected_at": _now,
        "correction": bindparam("correction", type_=stories.c.correction.type),
    },
    fenced=True,
)


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


def require_support(grounded: Grounded, known: int) -> None:
    """Raises Unsupported if the story has another number of unsupported statements than the editor knows of."""
    names = grounded.sections.unsupported(grounded.headline, grounded.summary)
    if len(names) != known:
        raise Unsupported(names)


def walk_story(session: Session, story_id: UUID, verb: str, revision: int, actor: str) -> StoryRow | None:
    """Walk an edge of the story's machine; None if it is in that state already. Raises InvalidState, Conflict."""
    row = _MOVES[verb](session, story_id, actor=actor, fence=revision)
    if not isinstance(row, Missed):
        return row
    if row.verdict is Verdict.SKIP:
        return None
    if row.stale:
        raise Conflict(CHANGED)
    raise InvalidState(f"This can't be done in the story's present state ({row.state}).")


def slug(headline: str, story_id: UUID) -> str:
    """Make a readable name of ASCII letters from a headline in any script; the id makes it unique."""
    from slugify import slugify  # noqa: PLC0415 10 ms that no start needs

    return f"{slugify(headline, max_length=MOST_SLUG) or 'story'}-{story_id.hex[:12]}"


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
    *,
    unsupported: int = 0,
) -> ChangedStory:
    """Save a wording if it differs from the story's, and walk an edge if one is named; both, either or neither.

    Publishing needs to know how many statements are `unsupported`, which is the confirmation that they were seen.
    Raises as `edit_story` does, and Unsupported, which saves nothing.
    """
    with sessions.read() as session:
        story = queries.visible_story(session, story_id, viewer)
    grounded = changed = None
    if wording is not None and wording != wording_of(story):
        grounded = ground_wording(story, wording)
    with sessions.begin() as session:
        if grounded is not None:
            revision = save_wording(session, story, revision, grounded).revision
        if verb == PUBLISH.verb:
            now = queries.visible_story(session, story_id, viewer)
            if now.revision == revision and now.status in PUBLISH.sources:
                require_support(
                    Grounded(now.headline, now.summary, Sections.parse(now.sections)), unsupported
                )
        if verb is not None:
            changed = walk_story(session, story_id, verb, revision, str(viewer))
        now = changed or queries.visible_story(session, story_id, viewer)
    return ChangedStory(now, skipped=verb is not None and changed is None)


def correct_story(
    sessions: Sessions,
    viewer: UUID,
    story_id: UUID,
    revision: int,
    wording: Wording,
    correction: str = "",
    *,
    unsupported: int = 0,
) -> StoryRow:
    """Replace the wording of a published story, which says from then on that it was corrected, and when.

    `correction` tells its readers what was wrong. Raises as `change_story` does.
    """
    told = sized(correction, (0, MOST_CORRECTION), "The note")
    with sessions.read() as session:
        story = queries.visible_story(session, story_id, viewer)
    if story.status in CORRECT.sources and story.revision == revision and wording == wording_of(story):
        raise InvalidRequest("Nothing has changed. Correct what is wrong, then publish the correction.")
    grounded = ground_wording(story, wording)
    with sessions.begin() as session:
        row = _CORRECT(
            session,
            story_id,
            actor=str(viewer),
            fence=revision,
            new_headline=grounded.headline,
            new_summary=grounded.summary,
            new_sections=grounded.sections.as_json(),
            correction=told or None,
        )
        if isinstance(row, Missed):
            raise Conflict(CHANGED) if row.stale else InvalidState("Only a published story can be corrected.")
        require_support(grounded, unsupported)
    return row
