"""A whole request: the verb in one transaction, then, after the commit, the announcement."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from nexus.db.session import Sessions
from nexus.libraries.quota import Limits
from nexus.media.add import add_url
from nexus.media.lifecycle import retry_media
from nexus.media.runner import maybe_enqueue_extraction
from nexus.queue import Queue
from nexus.states.media import Kind, Status


@dataclass(frozen=True)
class Submitted:
    media_id: UUID
    created: bool
    enqueued: bool


def url(
    sessions: Sessions,
    queue: Queue,
    limits: Limits,
    viewer: UUID,
    kind: str,
    url: str,
    request_id: str | None = None,
) -> Submitted:
    with sessions.begin() as session:
        added = add_url(session, viewer, kind, url, limits)
    enqueued = added.due and maybe_enqueue_extraction(queue, added.kind, added.media_id, request_id)
    return Submitted(added.media_id, added.created, enqueued)


def retry(
    sessions: Sessions, queue: Queue, media_id: UUID, viewer: UUID, request_id: str | None = None
) -> bool:
    """Whether a worker was told."""
    with sessions.begin() as session:
        row = retry_media(session, media_id, viewer)
    pending = Status(row.processing_status) is Status.PENDING
    return pending and maybe_enqueue_extraction(queue, Kind(row.kind), media_id, request_id)
