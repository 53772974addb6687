"""Work done here and now, as a worker would do it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from sqlalchemy import bindparam, select

from nexus.app import kernel_for
from nexus.db.rows import IdRow
from nexus.db.session import Query
from nexus.db.tables import refreshes
from nexus.editorial.steps import STEP, Stepping
from nexus.media.lifecycle import EXTRACTION
from nexus.media.refresh import REFRESH
from nexus.media.workbench import Tools
from nexus.queue import Queue, Work
from nexus.queue.local import LocalQueue
from nexus.work.backlog import FIRST
from nexus.work.kernel import Swept
from nexus.work.turns import Turns

_REFRESHES = Query(
    select(refreshes.c.id)
    .where(refreshes.c.media_id == bindparam("media_id"))
    .order_by(refreshes.c.requested_at),
    IdRow,
)


def extract_item(tools: Tools, media_id: UUID) -> str | None:
    """How it ended, or None if it was not due."""
    return kernel_for(tools).run(Work(EXTRACTION, media_id))


def refresh_item(tools: Tools, media_id: UUID) -> str | None:
    """Do the refreshes of an item that users asked for; how the last one ended, or None if none was due."""
    with tools.sessions.read() as session:
        asked = [row.id for row in session.all(_REFRESHES, media_id=media_id)]
    ends = [kernel_for(tools).run(Work(REFRESH, each)) for each in asked]
    return next((end for end in reversed(ends) if end is not None), None)


def take_step(tools: Tools, job_id: UUID) -> str | None:
    return kernel_for(tools).run(Work(STEP, job_id))


def take_next_step(tools: Tools) -> bool:
    """Whether a job had something for a worker to do."""
    kernel = kernel_for(tools)
    claims = Turns(tools.sessions, tools.leases.length).claim(Stepping(tools), 1)
    for claim in claims:
        kernel.finish(claim)
        kernel.run(claim.hold.work)
    return bool(claims)


def steps_due(tools: Tools) -> list[UUID]:
    """Jobs whose next step a worker may take, those of one user after those of another."""
    handler = Stepping(tools)
    with tools.sessions.read() as session:
        return [
            job_id
            for lane in handler.lanes()
            for user_id in handler.backlog.users(session, lane, FIRST, session.now)
            for job_id in handler.backlog.due(session, lane, user_id, session.now, 100)
        ]


def sweep(tools: Tools, queue: Queue) -> Swept:
    return kernel_for(tools).sweep(queue)


def take_back_lost(tools: Tools) -> int:
    """Sweep without a backoff; how many pieces of work were taken back."""
    return kernel_for(replace(tools, backoff_seconds=0)).sweep(LocalQueue()).released
