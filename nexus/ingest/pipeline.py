"""Work on media: claim, extract, write the result. Every worker, thread, task and command comes through here.

No transaction is open while an extractor runs.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from uuid import UUID

from nexus import logging
from nexus.db.session import Row, Session, Sessions
from nexus.errors import ExtractionFailed, ExtractorNotImplemented, WorkError
from nexus.extract import Extraction, Extractor, Source, can_extract
from nexus.ingest import media
from nexus.ingest.leases import Hold, Leases
from nexus.queue import Queue
from nexus.states.media import Kind, Stage

log = logging.get(__name__)

#: What a database can't hold: NUL, and halves of characters.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Outcome(Enum):
    """How one run ended."""

    NOTHING = "nothing"  #: it was not due, or another worker has it
    READABLE = "readable"  #: its text is there
    FAILED = "failed"  #: it failed for good
    RELEASED = "released"  #: it is tried again later
    STALE = "stale"  #: the result came too late and was thrown away


@dataclass(frozen=True)
class Tools:
    """What the work needs."""

    sessions: Sessions
    extractors: Mapping[Kind, Extractor]
    leases: Leases
    backoff_seconds: float


def maybe_enqueue_extraction(queue: Queue, media_kind: Kind, media_id: UUID, request_id: str | None) -> bool:
    """Announce work only where an extractor exists. Call it after the commit; it touches no database."""
    return can_extract(media_kind) and queue.announce(media_id, request_id)


def run(tools: Tools, media_id: UUID, request_id: str | None = None) -> Outcome:
    """Claim one media and work on it. Nothing happens where it is not due or has no extractor."""
    with logging.task_log_context(request_id=request_id, media_id=media_id):
        with tools.sessions.begin() as session:
            if media.kind_of(session, media_id) not in tools.extractors:
                log.info("no_extractor", media_id=str(media_id))
                return Outcome.NOTHING
            claim = media.worker_start_attempt(session, media_id, tools.leases.length)
        if claim is None:
            return Outcome.NOTHING
        with tools.leases.hold([claim]):
            return work(tools, claim)


def work(tools: Tools, claim: Row) -> Outcome:
    """Extract a claimed media and write what came of it. Raises only where the database does."""
    log.info("ingest_started", media_id=str(claim.id), kind=claim.kind, attempt=claim.processing_attempts)
    try:
        extraction = _extract(tools, claim)
    except WorkError as error:
        outcome = _give_up(tools, claim, error)
    except Exception as error:
        # Its message may hold the source's text: only its name and its place are kept.
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{PurePath(place.filename).name}:{place.lineno}"
        log.warning("extractor_crashed", media_id=str(claim.id), reason=type(error).__name__, where=where)
        outcome = _give_up(tools, claim, ExtractionFailed())
    else:
        outcome = _publish(tools, claim, extraction)
    log.info("ingest_ended", media_id=str(claim.id), attempt=claim.processing_attempts, outcome=outcome.value)
    return outcome


def give_back(tools: Tools, holds: Iterable[Hold]) -> None:
    """Claims that this process will not get to: due again at once, for whoever is left."""
    ordered = sorted(holds)
    tools.leases.let_go(*ordered)
    with tools.sessions.begin() as session:
        for media_id, attempt in ordered:
            media.give_back(session, media_id, attempt)


def fail_unimplemented(tools: Tools, media_id: UUID) -> None:
    """The failure path, walked on purpose: what `_test_force_run` asks for."""
    error = ExtractorNotImplemented()
    with tools.sessions.begin() as session:
        claim = media.worker_start_attempt(session, media_id, tools.leases.length)
        if claim is not None:
            attempt = claim.processing_attempts
            media.mark_failed(session, media_id, Stage.EXTRACT, error.code, error.message, attempt)


def _extract(tools: Tools, claim: Row) -> Extraction:
    extractor = tools.extractors.get(Kind(claim.kind))
    if extractor is None:
        raise ExtractorNotImplemented
    source = Source(
        media_id=claim.id,
        kind=Kind(claim.kind),
        url=claim.canonical_url,
        provider=claim.provider,
        provider_id=claim.provider_id,
        attempt=claim.processing_attempts,
    )
    found = extractor(source)
    title = None if found.title is None else _storable(found.title).strip() or None
    fragments = tuple(text for text in map(_storable, found.fragments) if text.strip())
    if not fragments:
        raise ExtractionFailed("There is no text in it. Nexus keeps it, but there is nothing to read.")
    return Extraction(title, fragments)


def _storable(text: str) -> str:
    return UNSTORABLE.sub("", text)


def _publish(tools: Tools, claim: Row, extraction: Extraction) -> Outcome:
    with tools.sessions.begin() as session:
        written = media.mark_ready_for_reading(
            session, claim.id, claim.processing_attempts, extraction.title, extraction.fragments
        )
    return Outcome.READABLE if written else Outcome.STALE


def _give_up(tools: Tools, claim: Row, error: WorkError) -> Outcome:
    with tools.sessions.begin() as session:
        if error.transient and claim.tries < media.MAX_TRIES:
            return _release(session, tools, claim, error)
        failed = media.mark_failed(
            session, claim.id, Stage(error.stage), error.code, error.message, claim.processing_attempts
        )
    return Outcome.FAILED if failed else Outcome.STALE


def _release(session: Session, tools: Tools, claim: Row, error: WorkError) -> Outcome:
    run_after = session.now + media.backoff(tools.backoff_seconds, claim.tries)
    released = media.release(session, claim.id, claim.processing_attempts, error.code, run_after)
    return Outcome.RELEASED if released else Outcome.STALE
