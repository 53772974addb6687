"""What an editor sees: jobs that are his, or that were made in a library he administers."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, exists, or_, select, tuple_

from nexus.db.editorial import jobs
from nexus.db.session import Row, Session, Statement
from nexus.db.tables import history, memberships
from nexus.errors import NotFound
from nexus.ingest.access import Role
from nexus.ingest.read import MOST, Page, cursor_after, moment_and_id
from nexus.states.job import Status

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
    select(history).where(history.c.subject_id == bindparam("job_id")).order_by(history.c.id).limit(MOST)
)
_BEFORE = tuple_(jobs.c.created_at, jobs.c.id) < tuple_(
    bindparam("created_at", type_=jobs.c.created_at.type), bindparam("id", type_=jobs.c.id.type)
)


def _newest(*conditions: ColumnElement[bool]) -> Statement:
    return Statement(
        select(*_SHOWN)
        .where(VISIBLE, *conditions)
        .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
        .limit(bindparam("most"))
    )


_OF_STATUS = jobs.c.status == bindparam("status")
_NEWEST = {
    (False, False): _newest(),
    (False, True): _newest(_BEFORE),
    (True, False): _newest(_OF_STATUS),
    (True, True): _newest(_OF_STATUS, _BEFORE),
}


def find(session: Session, job_id: UUID, viewer: UUID) -> Row:
    """Raises NotFound for what the viewer may not see."""
    found = session.first(_ONE, job_id=job_id, viewer=viewer)
    if found is None:
        raise NotFound
    return found


def what_happened(session: Session, job_id: UUID) -> list[Row]:
    return session.all(_HISTORY, job_id=job_id)


def newest(
    session: Session, viewer: UUID, *, status: Status | None, cursor: str | None, most: int
) -> Page[Row]:
    created_at, last = moment_and_id(cursor)
    values = {"status": status and status.value, "created_at": created_at, "id": last}
    rows = session.all(
        _NEWEST[status is not None, cursor is not None],
        viewer=viewer,
        most=most + 1,
        **{name: value for name, value in values.items() if value is not None},
    )
    if len(rows) <= most:
        return Page(rows, None)
    last_shown = rows[most - 1]
    return Page(rows[:most], cursor_after(last_shown.created_at.isoformat(), last_shown.id.hex))
