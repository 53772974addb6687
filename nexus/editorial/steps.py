"""Steps of jobs as workers see them: what waits, what is held, and what a lost worker left behind."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import and_, bindparam, func, null, or_, select, text, update

from nexus.db.editorial import UNBEGUN, jobs
from nexus.db.session import Row, Session, Statement
from nexus.editorial.jobs import fail
from nexus.errors import JobTimeout
from nexus.media.lifecycle import MAX_TRIES, SWEEP
from nexus.states.job import Status

#: How long a step rests that had to be left.
LATER = timedelta(seconds=5)

_now = bindparam("now", type_=jobs.c.updated_at.type)
_UNTIL = bindparam("until", type_=jobs.c.lease_expires_at.type)
_HELD_BY = and_(
    jobs.c.id == bindparam("job_id"),
    jobs.c.attempt == bindparam("fence"),
    jobs.c.lease_expires_at.is_not(None),
)
_LEAVE = Statement(
    update(jobs)
    .where(_HELD_BY, jobs.c.status == bindparam("held_status"))
    .values(
        lease_expires_at=null(), run_after=bindparam("later", type_=jobs.c.run_after.type), updated_at=_now
    )
)
_RENEW = Statement(update(jobs).where(_HELD_BY).values(lease_expires_at=_UNTIL))
_STATE = Statement(select(jobs.c.status, jobs.c.lease_expires_at).where(jobs.c.id == bindparam("job_id")))
_IS_LOST = and_(jobs.c.lease_expires_at.is_not(None), jobs.c.lease_expires_at <= _now)
_IS_HOPELESS = jobs.c.tries >= MAX_TRIES - 1
_BEFORE = bindparam("before", type_=jobs.c.updated_at.type)
_LOST = Statement(
    select(jobs.c.id)
    .where(jobs.c.lease_expires_at.is_not(None), jobs.c.lease_expires_at <= _BEFORE, ~_IS_HOPELESS)
    .order_by(jobs.c.lease_expires_at)
    .limit(bindparam("most"))
)
_HOPELESS = Statement(
    select(jobs.c.id, jobs.c.status, jobs.c.attempt)
    .where(_IS_LOST, _IS_HOPELESS)
    .order_by(jobs.c.lease_expires_at)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)


def _unbegun() -> Statement:
    """The first of each user, then the second of each, and so on: who has many does not keep others waiting."""
    turn = func.row_number().over(
        partition_by=jobs.c.created_by_user_id, order_by=(jobs.c.updated_at, jobs.c.id)
    )
    waiting = (
        select(jobs.c.id, jobs.c.updated_at, turn.label("turn"))
        .where(
            text(UNBEGUN),
            jobs.c.updated_at <= _BEFORE,
            or_(jobs.c.run_after.is_(None), jobs.c.run_after <= _now),
        )
        .subquery("waiting")
    )
    ordered = select(waiting.c.id).order_by(waiting.c.turn, waiting.c.updated_at, waiting.c.id)
    return Statement(ordered.limit(bindparam("most")))


_UNBEGUN = _unbegun()


def leave(session: Session, job_id: UUID, status: Status, attempt: int) -> None:
    """A step that can't be taken just now waits for a worker once more; that is no lost try."""
    later = session.now + LATER
    session.run(_LEAVE, job_id=job_id, held_status=status.value, fence=attempt, now=session.now, later=later)


def renew_leases(session: Session, held: Iterable[tuple[UUID, int]], lease: timedelta) -> None:
    """A sign of life for each (job, attempt); those that were taken over stay as they are."""
    until = session.now + lease
    session.run_many(
        _RENEW, [{"job_id": job_id, "fence": attempt, "until": until} for job_id, attempt in held]
    )


def state(session: Session, job_id: UUID) -> Row | None:
    """Its status and lease alone: the page of a job is large."""
    return session.first(_STATE, job_id=job_id)


def due(session: Session, most: int, before: datetime | None = None) -> list[UUID]:
    """What a worker may take up: steps whose first or second worker is gone, then steps that nobody has begun. With a
    time, only what has waited since then."""
    waiting = before or session.now
    rows = session.all(_LOST, before=waiting, most=most)
    rows += session.all(_UNBEGUN, now=session.now, before=waiting, most=most)
    return [row.id for row in rows][:most]


def fail_hopeless(session: Session, _: float, most: int = 100) -> int:
    """Steps whose third worker is gone. How many."""
    rows = session.all(_HOPELESS, now=session.now, most=most)
    for row in rows:
        fail(session, row.id, Status(row.status), row.attempt, JobTimeout(), SWEEP)
    return len(rows)
