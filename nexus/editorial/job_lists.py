"""Lists of jobs: an editor's own and those of the libraries they administer, as quick with many jobs as with few."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, bindparam, func, select, tuple_, union

from nexus.db.editorial import jobs
from nexus.db.moves import constant
from nexus.db.session import Query, Session
from nexus.editorial.queries import VISIBLE, ListedJob, listed_page
from nexus.libraries import catalog
from nexus.libraries.access import Role
from nexus.media.queries import PAGE, SHAPES, WALKS, Page, moment_and_id, written_out
from nexus.states.job import JobStatus

SHOWN = jobs.c.removed_at.is_(None)
_ORDER = (jobs.c.created_at.desc(), jobs.c.id.desc())
_LISTED = select(*(jobs.c[name] for name in ListedJob._fields))


class FailureCount(NamedTuple):
    error_code: str | None
    total: int


def newest_jobs(
    session: Session,
    viewer: UUID,
    *,
    status: JobStatus | None = None,
    error_code: str | None = None,
    cursor: str | None = None,
    most: int = PAGE,
) -> Page[ListedJob]:
    """List the jobs that the viewer may see, the newest first."""
    wanted = JobStatus.FAILED if error_code is not None and status is None else status
    owners = _owners(session, viewer)
    created_at, last = moment_and_id(cursor)
    given = {**owners, "wanted": wanted, "error_code": error_code, "created_at": created_at, "id": last}
    values = {name: value for name, value in given.items() if value is not None}
    conditions = wanted is not None, error_code is not None, cursor is not None
    rows = session.all(_listing(len(owners), *conditions, most + 1), **values)
    return listed_page(rows, most)


def count_failures(session: Session, viewer: UUID) -> list[FailureCount]:
    """Count the jobs that have failed, by error."""
    owners = _owners(session, viewer)
    return session.all(_failures(len(owners)), **owners)


def _owners(session: Session, viewer: UUID) -> dict[str, UUID]:
    """The viewer, and each library that they administer. With many of those, only the viewer: see `_owned`."""
    libraries = [row.id for row in catalog.list_libraries(session, viewer) if row.role is Role.ADMIN]
    named = {f"library_{place}": library_id for place, library_id in enumerate(libraries)}
    return {"viewer": viewer, **(named if len(named) <= WALKS else {})}


def _owned(count: int) -> list[ColumnElement[bool]]:
    """Conditions, each of which an index answers in the order of the list. Together they are what a viewer sees."""
    if count == 1:
        return [VISIBLE]
    libraries = (bindparam(f"library_{place}", type_=jobs.c.library_id.type) for place in range(count - 1))
    return [
        jobs.c.created_by_user_id == bindparam("viewer"),
        *(jobs.c.library_id == one for one in libraries),
    ]


@lru_cache(SHAPES)
def _listing(count: int, by_status: bool, by_error: bool, resumed: bool, most: int) -> Query[ListedJob]:
    """One limited walk for each owner, then merged: the cost does not grow with the number of jobs."""
    conditions: list[ColumnElement[bool]] = [SHOWN]
    if by_status:
        conditions.append(jobs.c.status == bindparam("wanted"))
    if by_error:
        conditions.append(jobs.c.error_code == bindparam("error_code"))
    if resumed:
        place = (bindparam(name, type_=jobs.c[name].type) for name in ("created_at", "id"))
        conditions.append(tuple_(jobs.c.created_at, jobs.c.id) < tuple_(*place))
    walks = [_walk(number, owned, conditions, most) for number, owned in enumerate(_owned(count))]
    # A job that is the viewer's own and in one of their libraries is found twice, and listed once.
    merged = union(*walks).subquery("merged")
    newest = select(merged).order_by(merged.c.created_at.desc(), merged.c.id.desc())
    return Query(newest.limit(written_out(most)), ListedJob)


def _walk(
    number: int, owned: ColumnElement[bool], conditions: list[ColumnElement[bool]], most: int
) -> Select[Any]:
    walk = _LISTED.where(owned, *conditions).order_by(*_ORDER).limit(written_out(most))
    return select(walk.subquery(f"walk_{number}"))


@lru_cache(SHAPES)
def _failures(count: int) -> Query[FailureCount]:
    failed = [
        select(jobs.c.id, jobs.c.error_code).where(
            owned, SHOWN, jobs.c.status == constant(JobStatus.FAILED.value)
        )
        for owned in _owned(count)
    ]
    each = union(*failed).subquery("each")
    counted = select(each.c.error_code, func.count().label("total")).group_by(each.c.error_code)
    return Query(counted.order_by(each.c.error_code), FailureCount)
