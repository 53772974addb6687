"""Telling a worker about an item that is due. A module of its own, so that callers don't load what workers need."""

from __future__ import annotations

from uuid import UUID

from nexus.extract import can_extract
from nexus.media.lifecycle import EXTRACTION
from nexus.queue import Queue, Work
from nexus.states.media import Kind


def maybe_enqueue_extraction(queue: Queue, media_kind: Kind, media_id: UUID) -> bool:
    """Announce work only if an extractor exists. Call it after the commit; it touches no database."""
    return can_extract(media_kind) and queue.announce(Work(EXTRACTION, media_id))
