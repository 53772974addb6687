"""Extraction as work: claim an item, get its text, write the result. No transaction is open while an extractor runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from nexus import logging
from nexus.db.rows import MediaRow
from nexus.db.session import Session
from nexus.errors import ExtractorNotImplemented, WorkError
from nexus.media import extraction, lifecycle, revisions
from nexus.media.extraction import Nothing
from nexus.media.feeds.own_texts import text_from_feed
from nexus.media.files import discard_object
from nexus.media.lifecycle import EXTRACTION
from nexus.media.texts import Found, Readable
from nexus.media.workbench import Tools
from nexus.queue import Work
from nexus.states.media import Kind, Stage
from nexus.work.handler import WORKER, Claim, EndedAttempt, Handler, Hold
from nexus.work.retry import Again, decide

log = logging.get_logger(__name__)


class Outcome(StrEnum):
    """How an attempt ended."""

    READABLE = "readable"  #: its text is there
    FAILED = "failed"  #: it failed for good
    RELEASED = "released"  #: it is tried again later
    STALE = "stale"  #: the result came too late and was thrown away


def fail_unimplemented(tools: Tools, media_id: UUID) -> None:
    """Fail an item on purpose, as `_test_force_run` asks for."""
    error = ExtractorNotImplemented()
    with tools.sessions.begin() as session:
        claim = lifecycle.worker_start_attempt(session, media_id, tools.leases.length)
        if claim is not None:
            attempt = claim.processing_attempts
            lifecycle.mark_failed(session, media_id, Stage.EXTRACT, error.code, error.message, attempt)


class Extracting(Handler[MediaRow, Readable | Nothing]):
    kind = EXTRACTION
    backlog = lifecycle.BACKLOG
    log_event, log_id = "ingest", "media_id"
    settles_together = True

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def lanes(self) -> Sequence[str]:
        return sorted(self._tools.extractors)

    def is_long(self, lane: str | None) -> bool:
        """A recording may have to be transcribed."""
        return lane in {Kind.VIDEO, Kind.PODCAST_EPISODE}

    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> Claim[MediaRow] | None:
        kind = lifecycle.kind_of(session, row_id)
        if kind is not None and kind not in self._tools.extractors:
            log.info("no_extractor", media_id=str(row_id))
            return None
        row = lifecycle.worker_start_attempt(session, row_id, lease)
        return None if row is None else _claimed(row)

    def claim_due(
        self, session: Session, lane: str | None, user_id: UUID, most: int, lease: timedelta
    ) -> list[Claim[MediaRow]]:
        return [_claimed(row) for row in lifecycle.claim_due(session, Kind(lane or ""), user_id, most, lease)]

    def do(self, claim: Claim[MediaRow]) -> Readable | Nothing:
        row, number = claim.subject, claim.hold.attempt
        result = extraction.attempt(self._tools, row, number)
        if isinstance(result, Nothing) and decide(result.error, claim.tries, 0) is None:
            result = text_from_feed(self._tools.sessions, row) or result
        if isinstance(result, Found):
            return Readable.of(row.id, number, result, address=row.canonical_url)
        return result

    def settle(self, ended: Sequence[EndedAttempt[MediaRow, Readable | Nothing]]) -> list[str]:
        """Texts are written in one transaction, failures one by one."""
        ready = [one.result for one in ended if isinstance(one.result, Readable)]
        readable = self._publish(ready) if ready else set()
        return [self._settled(one.claim, one.result, readable) for one in ended]

    def put_down(
        self, session: Session, hold: Hold, again: Again | None, error: WorkError | None, actor: str
    ) -> bool:
        return lifecycle.put_down(session, hold.work.id, hold.attempt, again, error, actor)

    def size_of(self, result: Readable | Nothing) -> int:
        return result.size if isinstance(result, Readable) else 0

    def _publish(self, ready: Sequence[Readable]) -> set[UUID]:
        all_text = all(one.is_all_text for one in ready)
        sessions = self._tools.sessions
        with sessions.single() if all_text else sessions.begin() as session:
            return lifecycle.mark_all_ready_for_reading(session, ready)

    def _settled(self, claim: Claim[MediaRow], result: Readable | Nothing, readable: set[UUID]) -> Outcome:
        media_id = claim.subject.id
        if isinstance(result, Nothing):
            outcome = self._give_up(claim, result)
        else:
            outcome = Outcome.READABLE if media_id in readable else Outcome.STALE
            if result.sound is not None and outcome is Outcome.READABLE:
                discard_object(self._tools.sessions, self._tools.files, media_id, result.sound)
        if result.kept is not None and outcome in {Outcome.RELEASED, Outcome.STALE}:
            discard_object(self._tools.sessions, self._tools.files, media_id, result.kept.storage_path)
        return outcome

    def _give_up(self, claim: Claim[MediaRow], nothing: Nothing) -> Outcome:
        error = nothing.error
        again = decide(error, claim.tries, self._tools.backoff_seconds)
        with self._tools.sessions.begin() as session:
            if not self.put_down(session, claim.hold, again, error, WORKER):
                return Outcome.STALE
            if again is None and nothing.kept is not None:
                revisions.keep_file_alone(session, claim.subject.id, nothing.kept)
        return Outcome.FAILED if again is None else Outcome.RELEASED


def _claimed(row: MediaRow) -> Claim[MediaRow]:
    hold = Hold(Work(EXTRACTION, row.id), row.processing_attempts)
    return Claim(hold, row.tries, row, row.request_id)
