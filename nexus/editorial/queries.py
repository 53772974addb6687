"""What an editor sees: jobs that are his or were made in a library he administers, and their stories."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Table, bindparam, exists, func, or_, select, tuple_

from nexus.db.editorial import jobs, stories
from nexus.db.moves import constant
from nexus.db.session import Row, Session, Statement
from nexus.db.tables import history, memberships
from nexus.errors import NotFound
from nexus.libraries.access import Role
from nexus.media.queries import MOST, PAGE, Page, cursor_after, moment_and_id
from nexus.states.job import Status
from nexus.states.story import Status as StoryStatus

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
#: The page itself is large, and of no use to a list.
_SHOWN = [column for column in jobs.c if column.name not in {"raw_html", "extracted_text"}]
_ONE = Statement(select(jobs).where(jobs.c.id == bindparam("job_id"), VISIBLE))
_HISTORY = Statement(
    select(history)
    .where(history.c.subject_id == bindparam("job_id"))
    .order_by(history.c.id.desc())
    .limit(MOST)
)
_OF_STATUS = jobs.c.status == bindparam("status")
_OF_ERROR = jobs.c.error_code == bindparam("error_code")


def _newest(table: Table, chosen: Select[Any], *conditions: ColumnElement[bool]) -> dict[bool, Statement]:
    """From the newest on, and from a place on."""
    ordered = (
        chosen.where(VISIBLE, *conditions)
        .order_by(table.c.created_at.desc(), table.c.id.desc())
        .limit(bindparam("most"))
    )
    place = tuple_(
        bindparam("created_at", type_=table.c.created_at.type), bindparam("id", type_=table.c.id.type)
    )
    return {
        False: Statement(ordered),
        True: Statement(ordered.where(tuple_(table.c.created_at, table.c.id) < place)),
    }


_JOBS = select(*_SHOWN)
_NEWEST = {
    (False, False): _newest(jobs, _JOBS),
    (True, False): _newest(jobs, _JOBS, _OF_STATUS),
    (False, True): _newest(jobs, _JOBS, _OF_ERROR),
    (True, True): _newest(jobs, _JOBS, _OF_STATUS, _OF_ERROR),
}
_ERRORS = Statement(
    select(jobs.c.error_code, func.count().label("count"))
    .where(VISIBLE, jobs.c.status == constant(Status.FAILED.value))
    .group_by(jobs.c.error_code)
    .order_by(jobs.c.error_code)
)
_OF_JOB = stories.c.job_id == jobs.c.id
_STORY = Statement(
    select(stories, jobs.c.media_id, jobs.c.created_by_user_id)
    .join(jobs, _OF_JOB)
    .where(stories.c.id == bindparam("story_id"), VISIBLE)
)
_STORY_COLUMNS = [column for column in stories.c if column.name != "article_text"]
_STORIES = select(*_STORY_COLUMNS).join(jobs, _OF_JOB)
_NEWEST_STORIES = {
    False: _newest(stories, _STORIES),
    True: _newest(stories, _STORIES, stories.c.status == bindparam("status")),
}
_DRAFTS = Statement(
    select(*_STORY_COLUMNS)
    .where(stories.c.job_id == bindparam("job_id"))
    .order_by(stories.c.created_at.desc(), stories.c.id.desc())
    .limit(MOST)
)
_PUBLISHED = Statement(
    _STORIES.where(VISIBLE, stories.c.status == constant(StoryStatus.PUBLISHED.value))
    .order_by(stories.c.published_at.desc())
    .limit(bindparam("most"))
)


def find(session: Session, job_id: UUID, viewer: UUID) -> Row:
    """Raises NotFound for what the viewer may not see."""
    return _there(session.first(_ONE, job_id=job_id, viewer=viewer))


def what_happened(session: Session, subject_id: UUID) -> list[Row]:
    """The history of a job or of a story, or the last of a long one, for who may see it."""
    return session.all(_HISTORY, job_id=subject_id)[::-1]


def newest(
    session: Session,
    viewer: UUID,
    *,
    status: Status | None = None,
    error_code: str | None = None,
    cursor: str | None = None,
    most: int = PAGE,
) -> Page[Row]:
    chosen = _NEWEST[status is not None, error_code is not None]
    return _page(session, chosen, cursor, most, viewer=viewer, status=status, error_code=error_code)


def errors(session: Session, viewer: UUID) -> list[Row]:
    """How many jobs have failed, by error."""
    return session.all(_ERRORS, viewer=viewer)


def story(session: Session, story_id: UUID, viewer: UUID) -> Row:
    """Raises NotFound for what the viewer may not see."""
    return _there(session.first(_STORY, story_id=story_id, viewer=viewer))


def newest_stories(
    session: Session,
    viewer: UUID,
    *,
    status: StoryStatus | None = None,
    cursor: str | None = None,
    most: int = PAGE,
) -> Page[Row]:
    return _page(session, _NEWEST_STORIES[status is not None], cursor, most, viewer=viewer, status=status)


def drafts(session: Session, job_id: UUID) -> list[Row]:
    """Every story of a job, the newest first, for who may see it."""
    return session.all(_DRAFTS, job_id=job_id)


def published(session: Session, viewer: UUID, most: int = PAGE) -> list[Row]:
    return session.all(_PUBLISHED, viewer=viewer, most=most)


def _there(found: Row | None) -> Row:
    if found is None:
        raise NotFound
    return found


def _page(
    session: Session, chosen: dict[bool, Statement], cursor: str | None, most: int, **values: object
) -> Page[Row]:
    created_at, last = moment_and_id(cursor)
    given = {**values, "created_at": created_at, "id": last}
    rows = session.all(
        chosen[cursor is not None],
        most=most + 1,
        **{name: value for name, value in given.items() if value is not None},
    )
    if len(rows) <= most:
        return Page(rows, None)
    last_shown = rows[most - 1]
    return Page(rows[:most], cursor_after(last_shown.created_at.isoformat(), last_shown.id.hex))
