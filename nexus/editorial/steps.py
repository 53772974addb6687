"""The steps of a job: fetch the page, extract title and text, write the draft.

An editor who waits and a worker do a step in the same way. No transaction is open meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import BinaryIO, NamedTuple
from uuid import UUID

from nexus import logging
from nexus.db.moves import Missed
from nexus.db.patience import insist
from nexus.db.rows import JobRow
from nexus.db.session import Session
from nexus.draft import Draft
from nexus.editorial import drafts, jobs, step_claims
from nexus.errors import (
    DraftFailed,
    EmptyContent,
    InvalidState,
    JobTimeout,
    WorkError,
)
from nexus.extract import Extraction, Fetched, Hints
from nexus.extract.builtin import FILE_READERS
from nexus.fetch import page_type
from nexus.media import extraction, lifecycle
from nexus.media.add import hold_article
from nexus.media.extraction import Nothing
from nexus.media.texts import Found
from nexus.media.workbench import Bench, Tools, as_fetched
from nexus.queue import Work
from nexus.states.job import EXTRACTED_ON, HELD, JobStatus
from nexus.states.media import Kind, MediaStatus
from nexus.work.handler import WORKER, Claim, EndedAttempt, Handler, Hold
from nexus.work.retry import Again, decide

log = logging.get_logger(__name__)

STEP = "step"
EXTRACT_SECONDS = 15.0
NOT_TO_FETCH = "Only a queued job can be fetched. Retry one that has failed."
NOT_TO_RETRY = "Only a job that failed before it had its text can be retried."

Result = Fetched | Found | Nothing | Draft | DraftFailed


class Step(NamedTuple):
    """A job in one of its steps, and who does it."""

    job: JobRow
    actor: str


class StepOutcome(StrEnum):
    """How a step ended."""

    DONE = "done"  #: the job has moved on
    FAILED = "failed"  #: the job has failed
    LEFT = "left"  #: a worker does it later
    STALE = "stale"  #: somebody else has moved the job on; the result was thrown away


@dataclass(frozen=True)
class FetchedPage:
    """What an extractor is told about the page that a job fetched."""

    id: UUID
    canonical_url: str | None
    created_by_user_id: UUID
    kind: Kind = Kind.WEB_ARTICLE
    provider: None = None
    provider_id: None = None
    file_sha256: None = None


class PageBench(Bench):
    """A workbench that has the page already: an extractor that fetches it gets what the job fetched."""

    def __init__(self, tools: Tools, job: JobRow) -> None:
        self.page = FetchedPage(job.id, job.canonical_url, job.created_by_user_id)
        super().__init__(tools, self.page)
        self._charged_for = None  # there is no item yet
        body = bytes(job.raw_html or b"")
        kind = page_type(job.content_type, body)
        self._answer = Fetched(job.fetched_url or "", job.http_status or 0, kind, job.charset, body)
        self.fetched = self._answer

    def fetch(self, url: str) -> Fetched:
        return self._answer if url == self._media.canonical_url else super().fetch(url)

    def keep(self, fetched: Fetched) -> None:
        """A job keeps no files."""

    def read(self, reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> Extraction:
        sandbox = self._tools.sandbox
        limits = replace(sandbox.limits, seconds=EXTRACT_SECONDS)
        return sandbox.read(reader, data, hints, limits, user=self._reader)


class _Overtaken(Exception):
    """Rolls back an item that was made from a text which is not wanted, or which was committed before without an
    answer."""

    def __init__(self, outcome: StepOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def fetch_page(
    tools: Tools, job_id: UUID, actor: str, *, again: bool = False, request_id: str | None = None
) -> None:
    """Fetch a job's page now, with `again` even if the job failed without a text. Raises InvalidState."""
    job = _begin_fetch(tools, job_id, actor, tools.leases.length, again, request_id)
    take(tools, Step(job, actor))


def leave_fetch(
    tools: Tools, job_id: UUID, actor: str, *, again: bool = False, request_id: str | None = None
) -> None:
    """Leave the same to a worker: announce it afterwards. Raises InvalidState."""
    _begin_fetch(tools, job_id, actor, None, again, request_id)


def _begin_fetch(
    tools: Tools, job_id: UUID, actor: str, lease: timedelta | None, again: bool, request_id: str | None
) -> JobRow:
    with tools.sessions.begin() as session:
        if again and not jobs.requeue(session, job_id, actor):
            raise InvalidState(NOT_TO_RETRY)
        job = step_claims.begin_step(session, job_id, JobStatus.FETCHING, lease, actor, request_id=request_id)
        if isinstance(job, Missed):
            raise InvalidState(NOT_TO_FETCH)
        return job


def take(tools: Tools, step: Step) -> StepOutcome:
    """Do a step that has begun, and write its result. Its lease is renewed meanwhile, because it may wait long for a
    site or a parser."""
    with tools.leases.hold(_hold(step.job)):
        result = _do(tools, step.job)
        return insist(lambda: _settle(tools, step, result))


class Stepping(Handler[Step, Result]):
    kind = STEP
    backlog = step_claims.BACKLOG
    log_event, log_id = "step", "job_id"
    #: Leaves some threads to items, because a model may be slow.
    share = 0.5
    repeats = True

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def lanes(self) -> Sequence[str]:
        """Without a reader a page waits until there is one."""
        readable = Kind.WEB_ARTICLE in self._tools.extractors
        return [step.value for step in jobs.STEPS if readable or step is JobStatus.GENERATING]

    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> Claim[Step] | None:
        job = jobs.job_state(session, row_id)
        if job is None or job.status not in HELD:
            return None
        waits = job.lease_expires_at is None and (job.run_after is None or job.run_after <= session.now)
        if not waits or job.status.value not in self.lanes():
            return None
        begun = step_claims.begin_step(session, row_id, job.status, lease, WORKER)
        return None if isinstance(begun, Missed) else _claimed(begun)

    def log_missed(self, session: Session, row_id: UUID) -> None:
        job = jobs.job_state(session, row_id)
        if job is not None and job.status in EXTRACTED_ON:
            log_skipped(row_id, job.status, outrun=True)

    def claim_due(
        self, session: Session, lane: str | None, user_id: UUID, most: int, lease: timedelta
    ) -> list[Claim[Step]]:
        rows = step_claims.claim_due_steps(session, JobStatus(lane or ""), user_id, most, lease, WORKER)
        return [_claimed(row) for row in rows]

    def do(self, claim: Claim[Step]) -> Result:
        return _do(self._tools, claim.subject.job)

    def settle(self, ended: Sequence[EndedAttempt[Step, Result]]) -> list[str]:
        return [_settle(self._tools, one.claim.subject, one.result) for one in ended]

    def put_down(
        self, session: Session, hold: Hold, again: Again | None, error: WorkError | None, actor: str
    ) -> bool:
        job_id, attempt = hold.work.id, hold.attempt
        if again is not None:
            return step_claims.leave_step(session, job_id, attempt, again.wait, counted=again.counted)
        job = jobs.job_state(session, job_id)
        if job is None or job.status not in HELD:
            return False
        failed = jobs.fail_step(session, job_id, job.status, attempt, error or JobTimeout(), actor)
        return not isinstance(failed, Missed)


def _hold(job: JobRow) -> Hold:
    return Hold(Work(STEP, job.id), job.attempt)


def _claimed(job: JobRow) -> Claim[Step]:
    return Claim(_hold(job), job.tries, Step(job, WORKER), job.request_id)


def _do(tools: Tools, job: JobRow) -> Result:
    if job.status is JobStatus.GENERATING:
        return drafts.write_draft(tools, job)
    if job.status is JobStatus.FETCHING:
        try:
            return as_fetched(tools.fetcher.get(job.canonical_url or ""))
        except WorkError as error:
            return Nothing(error)
    bench = PageBench(tools, job)
    found = extraction.attempt(tools, bench.page, job.attempt, bench)
    if isinstance(found, Found) and len(jobs.title_and_text(found.extraction)[1]) < jobs.LEAST_TEXT:
        return Nothing(EmptyContent())
    return found


def _settle(tools: Tools, step: Step, result: Result) -> StepOutcome:
    try:
        with tools.sessions.begin() as session:
            return _written(session, tools, step, result)
    except _Overtaken as overtaken:
        return overtaken.outcome


def _written(session: Session, tools: Tools, step: Step, result: Result) -> StepOutcome:
    job, actor = step
    if isinstance(result, Draft | DraftFailed):
        written = drafts.save_draft(session, job, result, actor)
    elif isinstance(result, Fetched):
        written = jobs.mark_fetched(session, job.id, job.attempt, result, actor)
    elif isinstance(result, Found):
        media_id = _hand_over(session, job, result)
        written = jobs.mark_extracted(session, job.id, job.attempt, result.extraction, media_id, actor)
    else:
        # A person decides whether to fetch a page again. Only a step that could not begin is left to a worker.
        again = decide(result.error, job.tries, tools.backoff_seconds, most=0)
        if again is not None:
            left = step_claims.leave_step(session, job.id, job.attempt, again.wait, counted=again.counted)
            return StepOutcome.LEFT if left else StepOutcome.STALE
        written = jobs.fail_step(session, job.id, job.status, job.attempt, result.error, actor)
    outcome = StepOutcome.FAILED if isinstance(result, Nothing | DraftFailed) else StepOutcome.DONE
    if isinstance(written, Missed):
        outcome = outcome if written.repeated else StepOutcome.STALE
        if isinstance(result, Found):
            raise _Overtaken(outcome)
    return outcome


def _hand_over(session: Session, job: JobRow, found: Found) -> UUID:
    """Make the article an item in the creator's library, with this text if the item has none: one fetch for both.

    A PDF or EPUB is left to a worker, which stores its file.
    """
    row = hold_article(session, job.created_by_user_id, job.canonical_url or "")
    media_id = row.id
    if found.fetched is not None and found.fetched.content_type in FILE_READERS:
        return media_id
    if row.processing_status is MediaStatus.FAILED:
        lifecycle.reset_failed(session, media_id, job.created_by_user_id)
    claim = lifecycle.worker_start_attempt(session, media_id)
    if claim is not None:
        attempt = claim.processing_attempts
        lifecycle.mark_ready_for_reading(session, media_id, attempt, found, job.canonical_url)
    return media_id


def log_skipped(job_id: UUID, status: JobStatus, *, outrun: bool) -> None:
    """Monitoring searches for these words: don't change them."""
    if outrun:
        why = "already extracted by another worker"
    elif status in {JobStatus.GENERATING, JobStatus.SAVED}:
        why = f"in terminal state (status={status.value})"
    else:
        why = f"already extracted (status={status.value})"
    log.info(f"[EXTRACT] Job {job_id} {why}, skipping", job_id=str(job_id))
