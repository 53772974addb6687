"""What an editor sees: their own jobs and those made in libraries they administer, and the stories of both."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Table, bindparam, exists, or_, select, tuple_

from nexus.db.editorial import jobs, stories
from nexus.db.moves import constant
from nexus.db.rows import HistoryRow, JobRow, StoryRow
from nexus.db.session import Query, R, Session
from nexus.db.tables import history, memberships
from nexus.errors import NotFound
from nexus.libraries.access import Role
from nexus.media.queries import MOST, PAGE, Page, cursor_after, moment_and_id
from nexus.states.job import JobStatus
from nexus.states.story import StoryStatus

VISIBLE: ColumnElement[bool] = or_(
    jobs.c.created_by_user_id == bindparam("viewer"),
    exists(
        select(memberships.c.user_id)
        .where(
            memberships.c.library_id == jobs.c.library_id,
            memberships.c.user_id == bindparam("viewer"),
            memberships.c.role == Role.ADMIN.value,
        )
        .correlate(jobs)
    ),
)


class ListedJob(NamedTuple):
    """A job in a list, without its page and text, which are large."""

    id: UUID
    created_by_user_id: UUID
    library_id: UUID | None
    media_id: UUID | None
    url: str | None
    canonical_url: str | None
    status: JobStatus
    http_status: int | None
    content_type: str | None
    fetched_url: str | None
    extracted_title: str | None
    manually_provided: bool
    lease_expires_at: datetime | None
    run_after: datetime | None
    error_code: str | None
    error_message: str | None
    story_id: UUID | None
    fetched_at: datetime | None
    extracted_at: datetime | None
    generated_at: datetime | None
    created_at: datetime
    updated_at: datetime


class _JobId(NamedTuple):
    id: UUID


class ListedStory(NamedTuple):
    """A story in a list, without the article that its evidence points into."""

    id: UUID
    job_id: UUID
    slug: str
    status: StoryStatus
    revision: int
    headline: str
    summary: str
    sections: str
    sources: str
    model: str
    prompt_version: str
    tokens_used: int
    generated_at: datetime
    edited_at: datetime | None
    published_at: datetime | None
    created_at: datetime
    updated_at: datetime
    corrected_at: datetime | None
    correction: str | None


ShownJobRow = JobRow | ListedJob
ShownStoryRow = StoryRow | ListedStory
L = TypeVar("L", ListedJob, ListedStory)


@dataclass(frozen=True)
class Pages(Generic[R]):
    """The same list from its beginning, and from a place on."""

    first: Query[R]
    after: Query[R]


_JOB = Query(
    select(jobs).where(jobs.c.id == bindparam("job_id"), jobs.c.removed_at.is_(None), VISIBLE), JobRow
)
_REMOVED = Query(
    select(jobs.c.id).where(jobs.c.id == bindparam("job_id"), jobs.c.removed_at.is_not(None)), _JobId
)
_HISTORY = Query(
    select(history)
    .where(history.c.subject_id == bindparam("subject_id"))
    .order_by(history.c.id.desc())
    .limit(MOST),
    HistoryRow,
)


def _newest(table: Table, chosen: Select[Any], row: type[R], *conditions: ColumnElement[bool]) -> Pages[R]:
    ordered = (
        chosen.where(VISIBLE, *conditions)
        .order_by(table.c.created_at.desc(), table.c.id.desc())
        .limit(bindparam("most"))
    )
    place = tuple_(
        bindparam("created_at", type_=table.c.created_at.type), bindparam("id", type_=table.c.id.type)
    )
    after = ordered.where(tuple_(table.c.created_at, table.c.id) < place)
    return Pages(Query(ordered, row), Query(after, row))


_OF_JOB = stories.c.job_id == jobs.c.id
_STORY = Query(
    select(stories).join(jobs, _OF_JOB).where(stories.c.id == bindparam("story_id"), VISIBLE), StoryRow
)
_LISTED_STORIES = select(*(stories.c[name] for name in ListedStory._fields))
_STORIES = _LISTED_STORIES.join(jobs, _OF_JOB)
_NEWEST_STORIES = {
    False: _newest(stories, _STORIES, ListedStory),
    True: _newest(stories, _STORIES, ListedStory, stories.c.status == bindparam("status")),
}
_DRAFTS = Query(
    _LISTED_STORIES.where(stories.c.job_id == bindparam("job_id"))
    .order_by(stories.c.created_at.desc(), stories.c.id.desc())
    .limit(MOST),
    ListedStory,
)
_PUBLISHED = Query(
    _STORIES.where(VISIBLE, stories.c.status == constant(StoryStatus.PUBLISHED.value))
    .order_by(stories.c.published_at.desc())
    .limit(bindparam("most")),
    ListedStory,
)


def visible_job(session: Session, job_id: UUID, viewer: UUID) -> JobRow:
    """Raises NotFound if there is none, or none that the viewer may see."""
    found = session.first(_JOB, job_id=job_id, viewer=viewer)
    if found is None:
        raise NotFound
    return found


def is_job_removed(session: Session, job_id: UUID) -> bool:
    return session.first(_REMOVED, job_id=job_id) is not None


def visible_story(session: Session, story_id: UUID, viewer: UUID) -> StoryRow:
    """Raises NotFound if there is none, or none that the viewer may see."""
    found = session.first(_STORY, story_id=story_id, viewer=viewer)
    if found is None:
        raise NotFound
    return found


def history_of(session: Session, subject_id: UUID) -> list[HistoryRow]:
    """Return the history of a job or story, or the last part of a long one. Check first that the viewer may see it."""
    return session.all(_HISTORY, subject_id=subject_id)[::-1]


def newest_stories(
    session: Session,
    viewer: UUID,
    *,
    status: StoryStatus | None = None,
    cursor: str | None = None,
    most: int = PAGE,
) -> Page[ListedStory]:
    return _page(session, _NEWEST_STORIES[status is not None], cursor, most, viewer=viewer, status=status)


def drafts_of(session: Session, job_id: UUID) -> list[ListedStory]:
    """Return every story of a job, the newest first. Check first that the viewer may see the job."""
    return session.all(_DRAFTS, job_id=job_id)


def published_stories(session: Session, viewer: UUID, most: int = PAGE) -> list[ListedStory]:
    """Return what the viewer may see, the latest published first."""
    return session.all(_PUBLISHED, viewer=viewer, most=most)


def _page(
    session: Session, chosen: Pages[ListedStory], cursor: str | None, most: int, **values: object
) -> Page[ListedStory]:
    created_at, last = moment_and_id(cursor)
    given = {**values, "created_at": created_at, "id": last}
    rows = session.all(
        chosen.first if cursor is None else chosen.after,
        most=most + 1,
        **{name: value for name, value in given.items() if value is not None},
    )
    return listed_page(rows, most)


def listed_page(rows: list[L], most: int) -> Page[L]:
    """Make a page of rows, of which there is one more than are shown if another page follows."""
    if len(rows) <= most:
        return Page(rows, None)
    last_shown = rows[most - 1]
    return Page(rows[:most], cursor_after(last_shown.created_at.isoformat(), last_shown.id.hex))
