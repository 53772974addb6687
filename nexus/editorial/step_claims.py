"""Claims on the steps of jobs: an editor who waits or a worker takes a step, or leaves it for later."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Uuid, and_, bindparam, func, literal_column, null, or_, update

from nexus.db.editorial import UNBEGUN, jobs
from nexus.db.moves import JOB_ROWS, Missed, Move
from nexus.db.rows import JobRow
from nexus.db.session import Session, Statement
from nexus.editorial.jobs import HAS_TEXT
from nexus.states import job as edges
from nexus.states.job import JobStatus
from nexus.states.machine import Edge
from nexus.work.backlog import Backlog

#: Steps that are left to a worker, by the status in which they wait.
BACKLOG = Backlog(
    jobs,
    key=jobs.c.id,
    fence=jobs.c.attempt,
    user=jobs.c.created_by_user_id,
    waiting=UNBEGUN,
    lane=jobs.c.status,
)

_now = bindparam("now", type_=jobs.c.updated_at.type)
_DRAFTED_FOR = bindparam("drafted_for", type_=Uuid)
_UNTIL = bindparam("until", type_=jobs.c.lease_expires_at.type)
_FREE = or_(jobs.c.lease_expires_at.is_(None), jobs.c.lease_expires_at <= _now)
_TAKE = {
    "attempt": jobs.c.attempt + literal_column("1"),
    "lease_expires_at": _UNTIL,
    "run_after": _now,
    # A step that is left to a worker has not begun yet.
    "tries": jobs.c.tries + bindparam("begun", type_=jobs.c.tries.type),
    "request_id": func.coalesce(bindparam("request_id", type_=jobs.c.request_id.type), jobs.c.request_id),
}
#: Never takes over a running fetch: nobody has begun to read the page, or the one who did has lost their lease.
_UNCLAIMED = or_(
    and_(
        jobs.c.status == JobStatus.FETCHING.value, jobs.c.raw_html.is_not(None), jobs.c.extracted_at.is_(None)
    ),
    and_(jobs.c.status == JobStatus.EXTRACTING.value, _FREE),
)

#: For each step, by the status in which it runs: its edge, what beginning it writes, and its conditions.
_BEGINNINGS: dict[JobStatus, tuple[Edge[JobStatus], dict[str, Any], list[ColumnElement[bool]]]] = {
    JobStatus.FETCHING: (
        edges.FETCH,
        _TAKE,
        [or_(jobs.c.status == JobStatus.QUEUED.value, _FREE), jobs.c.canonical_url.is_not(None)],
    ),
    JobStatus.EXTRACTING: (edges.CLAIM_EXTRACTION, _TAKE, [_UNCLAIMED]),
    JobStatus.GENERATING: (
        edges.GENERATE,
        {**_TAKE, "drafted_for_user_id": func.coalesce(_DRAFTED_FOR, jobs.c.drafted_for_user_id)},
        [HAS_TEXT, or_(jobs.c.status != JobStatus.GENERATING.value, _FREE)],
    ),
}
_BEGIN = {
    status: Move(JOB_ROWS, edge, row=JobRow, sets=sets, guards=guards)
    for status, (edge, sets, guards) in _BEGINNINGS.items()
}
_LEAVE = Statement(
    update(jobs)
    .where(
        jobs.c.id == bindparam("job_id"),
        jobs.c.attempt == bindparam("fence"),
        jobs.c.lease_expires_at.is_not(None),
    )
    .values(
        lease_expires_at=null(),
        run_after=bindparam("run_after", type_=jobs.c.run_after.type),
        tries=jobs.c.tries - bindparam("uncounted", type_=jobs.c.tries.type),
        updated_at=_now,
    )
)


def begin_step(
    session: Session,
    job_id: UUID,
    step: JobStatus,
    lease: timedelta | None,
    actor: str,
    *,
    request_id: str | None = None,
    drafted_for: UUID | None = None,
) -> JobRow | Missed[JobStatus]:
    """Move a job to FETCHING, EXTRACTING or GENERATING, unless somebody is at that step. One caller wins.

    Without a lease the step is left to a worker. Missed if the job is not ready for this step.
    """
    more: dict[str, Any] = {"drafted_for": drafted_for} if step is JobStatus.GENERATING else {}
    until, begun = (None, 0) if lease is None else (session.now + lease, 1)
    return _BEGIN[step](session, job_id, actor=actor, until=until, begun=begun, request_id=request_id, **more)


def claim_due_steps(
    session: Session, step: JobStatus, user_id: UUID, most: int, lease: timedelta, actor: str
) -> list[JobRow]:
    """Begin up to `most` steps of one user that are left to workers and due, the longest waiting first."""
    more = {"drafted_for": None} if step is JobStatus.GENERATING else {}
    return _begin_due(step, most).batch(
        session,
        actor=actor,
        until=session.now + lease,
        begun=1,
        request_id=None,
        lane=step.value,
        user_id=user_id,
        **more,
    )


@cache
def _begin_due(step: JobStatus, most: int) -> Move[JobStatus, JobRow]:
    edge, sets, guards = _BEGINNINGS[step]
    return Move(JOB_ROWS, edge, row=JobRow, sets=sets, guards=guards, pick=BACKLOG.pick(most))


def leave_step(session: Session, job_id: UUID, attempt: int, wait: timedelta, *, counted: bool) -> bool:
    """Leave a step that can't be done now to a worker, for later. False if somebody else has taken it over."""
    run_after, uncounted = session.now + wait, 0 if counted else 1
    values = {"fence": attempt, "run_after": run_after, "uncounted": uncounted, "now": session.now}
    return session.run(_LEAVE, job_id=job_id, **values) > 0
