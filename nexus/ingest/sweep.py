"""What nobody else will finish: leases whose worker is gone, and due work that no worker was told of."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import bindparam, select, text

from nexus import logging
from nexus.db.session import Statement
from nexus.db.tables import WAITING, media
from nexus.ingest.media import release_expired
from nexus.ingest.pipeline import Tools, maybe_enqueue_extraction
from nexus.queue import Queue
from nexus.states.media import Kind

log = logging.get(__name__)

BATCH = 100
ANNOUNCED = 1000

_FORGOTTEN = Statement(
    select(media.c.id)
    .where(text(WAITING), media.c.kind == bindparam("kind"), media.c.run_after <= bindparam("now"))
    .limit(bindparam("most"))
)


@dataclass(frozen=True)
class Swept:
    released: int
    announced: int


def run(tools: Tools, queue: Queue) -> Swept:
    """Safe to run in several processes at once: rows that another one holds are passed over."""
    released = _release_all(tools)
    announced = _announce_forgotten(tools, queue) if queue.idle() else 0
    if released or announced:
        log.info("swept", released=released, announced=announced)
    return Swept(released, announced)


def _release_all(tools: Tools) -> int:
    total = 0
    while True:
        with tools.sessions.begin() as session:
            released = release_expired(session, tools.backoff_seconds, BATCH)
        total += released
        if released < BATCH:
            return total


def _announce_forgotten(tools: Tools, queue: Queue) -> int:
    announced = 0
    for kind in sorted(tools.extractors):
        for media_id in _forgotten(tools, kind, ANNOUNCED - announced):
            announced += maybe_enqueue_extraction(queue, kind, media_id, None)
    return announced


def _forgotten(tools: Tools, kind: Kind, most: int) -> list[UUID]:
    with tools.sessions.read() as session:
        return [row.id for row in session.all(_FORGOTTEN, kind=kind.value, now=session.now, most=most)]
