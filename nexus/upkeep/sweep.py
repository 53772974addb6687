"""What nobody else will finish: leases whose worker is gone, and due work that no worker was told of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID, uuid4

from sqlalchemy import bindparam, select, text

from nexus import logging
from nexus.db.session import Session, Statement
from nexus.db.tables import WAITING, media
from nexus.editorial import steps
from nexus.media import refresh
from nexus.media.lifecycle import release_expired
from nexus.media.runner import maybe_enqueue_extraction
from nexus.media.turns import waiting_users
from nexus.media.workbench import Tools
from nexus.queue import Queue
from nexus.states.media import Kind

log = logging.get(__name__)

BATCH = 100
#: How much is announced at most, to workers that have nothing to do.
REMINDERS = 1000
#: While workers are busy, what has been due for so long may have been forgotten; a few of those at a time.
OVERDUE = timedelta(minutes=1)
REMINDERS_WHILE_BUSY = 50

_OLDEST = Statement(
    select(media.c.id)
    .where(
        text(WAITING),
        media.c.kind == bindparam("kind"),
        media.c.created_by_user_id == bindparam("user_id"),
        media.c.run_after <= bindparam("before", type_=media.c.run_after.type),
    )
    .order_by(media.c.run_after, media.c.id)
    .limit(bindparam("most"))
)


@dataclass(frozen=True)
class Swept:
    released: int
    announced: int


def run(tools: Tools, queue: Queue, stopped: Callable[[], bool] = lambda: False) -> Swept:
    """Safe to run in several processes at once: rows that another one holds are passed over."""
    releases = (release_expired, refresh.release_expired, steps.fail_hopeless)
    released = sum(_release_all(tools, release) for release in releases)
    announced = 0 if queue.workers_look else _remind(tools, queue, stopped)
    if released or announced:
        log.info("swept", released=released, announced=announced)
    return Swept(released, announced)


def _release_all(tools: Tools, release: Callable[[Session, float, int], int]) -> int:
    total = 0
    while True:
        with tools.sessions.begin() as session:
            released = release(session, tools.backoff_seconds, BATCH)
        total += released
        if released < BATCH:
            return total


def _remind(tools: Tools, queue: Queue, stopped: Callable[[], bool]) -> int:
    idle, now = queue.idle(), tools.sessions.clock()
    before, most = (now, REMINDERS) if idle else (now - OVERDUE, REMINDERS_WHILE_BUSY)
    announced = 0
    for kind in sorted(tools.extractors):
        for media_id in _forgotten(tools, kind, before, ceil(most / len(tools.extractors))):
            if stopped():
                return announced
            announced += maybe_enqueue_extraction(queue, kind, media_id, None)
    return announced + _remind_of_steps(tools, queue, before) + _remind_of_refreshes(tools, queue, before)


def _remind_of_steps(tools: Tools, queue: Queue, before: datetime) -> int:
    with tools.sessions.read() as session:
        waiting = steps.due(session, REMINDERS_WHILE_BUSY, before)
    return sum(queue.announce(job_id, None) for job_id in waiting)


def _remind_of_refreshes(tools: Tools, queue: Queue, before: datetime) -> int:
    with tools.sessions.read() as session:
        waiting = refresh.waiting(session, REMINDERS_WHILE_BUSY, before)
    return sum(maybe_enqueue_extraction(queue, Kind(row.kind), row.media_id, None) for row in waiting)


def _forgotten(tools: Tools, kind: Kind, before: datetime, most: int) -> list[UUID]:
    """Shared out among users, beginning anywhere, so that over time everybody is remembered."""
    with tools.sessions.read() as session:
        users = waiting_users(session, kind, uuid4(), before)
        values = {"kind": kind.value, "before": before, "most": ceil(most / max(len(users), 1))}
        return [row.id for user_id in users for row in session.all(_OLDEST, user_id=user_id, **values)]
