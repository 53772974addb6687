"""Work on media: claim, extract, write the result. Every worker, thread, task and command comes through here.

No transaction is open while an extractor runs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from nexus import logging
from nexus.db.patience import insist
from nexus.db.session import Row, Session
from nexus.errors import ExtractorNotImplemented, WorkError
from nexus.extract import can_extract
from nexus.media import documents, extraction, lifecycle, refresh
from nexus.media.documents import Readable
from nexus.media.extraction import Found, Nothing
from nexus.media.files import discard
from nexus.media.workbench import Tools
from nexus.queue import Queue
from nexus.states.media import Kind, Stage
from nexus.work.leases import Hold

log = logging.get(__name__)


class Outcome(Enum):
    """How one run ended."""

    NOTHING = "nothing"  #: it was not due, or another worker has it
    READABLE = "readable"  #: its text is there
    FAILED = "failed"  #: it failed for good
    RELEASED = "released"  #: it is tried again later
    STALE = "stale"  #: the result came too late and was thrown away


@dataclass(frozen=True)
class Done:
    """An attempt that has ended, with its text or without, and has yet to be written down."""

    claim: Row
    result: Readable | Nothing
    request_id: str | None = None

    @property
    def hold(self) -> Hold:
        return self.claim.id, self.claim.processing_attempts

    @property
    def size(self) -> int:
        return self.result.size if isinstance(self.result, Readable) else 0


def maybe_enqueue_extraction(queue: Queue, media_kind: Kind, media_id: UUID, request_id: str | None) -> bool:
    """Announce work only where an extractor exists. Call it after the commit; it touches no database."""
    return can_extract(media_kind) and queue.announce(media_id, request_id)


def run(tools: Tools, media_id: UUID, request_id: str | None = None) -> Outcome | None:
    """Claim one media, or its refresh, and work on it. None if there is no such media.

    Nothing happens if none is due, or if its kind has no extractor.
    """
    with logging.task_log_context(request_id=request_id, media_id=media_id):
        with tools.sessions.begin() as session:
            kind = lifecycle.kind_of(session, media_id)
            extractable = kind in tools.extractors
            claim = (
                lifecycle.worker_start_attempt(session, media_id, tools.leases.length)
                if extractable
                else None
            )
        if kind is None:
            return None
        if not extractable:
            log.info("no_extractor", media_id=str(media_id))
            return Outcome.NOTHING
        if claim is None:
            return Outcome.READABLE if refresh.run(tools, media_id) else Outcome.NOTHING
        with tools.leases.hold((claim.id, claim.processing_attempts)):
            return work(tools, claim, request_id)


def work(tools: Tools, claim: Row, request_id: str | None = None) -> Outcome:
    """Extract a claimed media and write what came of it. Raises only when the database does, for longer than `insist`
    waits for it."""
    done = attempt(tools, claim, request_id)
    return insist(lambda: settle(tools, [done]))[0]


def attempt(tools: Tools, claim: Row, request_id: str | None = None) -> Done:
    number = claim.processing_attempts
    log.info("ingest_started", media_id=str(claim.id), kind=claim.kind, attempt=number)
    result = extraction.attempt(tools, claim, number)
    if isinstance(result, Found):
        return Done(claim, Readable.of(claim.id, number, result.extraction, result.origin), request_id)
    return Done(claim, result, request_id)


def settle(tools: Tools, ended: Sequence[Done]) -> list[Outcome]:
    """Write what came of several attempts in one transaction, but for failures, which are written one by one."""
    ready = [done.result for done in ended if isinstance(done.result, Readable)]
    readable = _publish(tools, ready) if ready else set()
    return [_ended(tools, done, readable) for done in ended]


def give_back(tools: Tools, holds: Iterable[Hold]) -> None:
    """Claims that this process will not get to: due again at once, for whoever is left."""
    ordered = sorted(holds)
    tools.leases.let_go(*ordered)
    with tools.sessions.begin() as session:
        for media_id, attempt in ordered:
            lifecycle.give_back(session, media_id, attempt)


def fail_unimplemented(tools: Tools, media_id: UUID) -> None:
    """The failure path, walked on purpose: what `_test_force_run` asks for."""
    error = ExtractorNotImplemented()
    with tools.sessions.begin() as session:
        claim = lifecycle.worker_start_attempt(session, media_id, tools.leases.length)
        if claim is not None:
            attempt = claim.processing_attempts
            lifecycle.mark_failed(session, media_id, Stage.EXTRACT, error.code, error.message, attempt)


def _publish(tools: Tools, ready: Sequence[Readable]) -> set[UUID]:
    all_text = all(one.is_all_text for one in ready)
    with tools.sessions.single() if all_text else tools.sessions.begin() as session:
        return lifecycle.mark_all_ready_for_reading(session, ready)


def _ended(tools: Tools, done: Done, readable: Container[UUID]) -> Outcome:
    claim = done.claim
    if isinstance(done.result, Nothing):
        outcome = _give_up(tools, claim, done.result)
    else:
        outcome = Outcome.READABLE if claim.id in readable else Outcome.STALE
    if done.result.kept is not None and outcome in {Outcome.RELEASED, Outcome.STALE}:
        discard(tools.sessions, tools.files, claim.id, done.result.kept.storage_path)
    about = {} if done.request_id is None else {"request_id": done.request_id}
    number = claim.processing_attempts
    log.info("ingest_ended", media_id=str(claim.id), attempt=number, outcome=outcome.value, **about)
    return outcome


def _give_up(tools: Tools, claim: Row, nothing: Nothing) -> Outcome:
    error = nothing.error
    with tools.sessions.begin() as session:
        if not error.counted:
            wait = lifecycle.wait_for(error, tools.backoff_seconds, 1)
            given_back = lifecycle.give_back(session, claim.id, claim.processing_attempts, wait, error.code)
            return Outcome.RELEASED if given_back else Outcome.STALE
        if error.transient and claim.tries < lifecycle.MAX_TRIES:
            return _release(session, tools, claim, error)
        failed = lifecycle.mark_failed(
            session, claim.id, Stage(error.stage), error.code, error.message, claim.processing_attempts
        )
        if failed and nothing.kept is not None:
            documents.keep_files(session, {claim.id: nothing.kept})
    return Outcome.FAILED if failed else Outcome.STALE


def _release(session: Session, tools: Tools, claim: Row, error: WorkError) -> Outcome:
    run_after = session.now + lifecycle.wait_for(error, tools.backoff_seconds, claim.tries)
    released = lifecycle.release(session, claim.id, claim.processing_attempts, error.code, run_after)
    return Outcome.RELEASED if released else Outcome.STALE
