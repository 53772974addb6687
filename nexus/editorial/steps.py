"""The steps of a job: fetch the page, take title and text out of it, write the draft.

Somebody at a screen or a worker takes a step; both do it the same way. No transaction is open meanwhile.
"""

from __future__ import annotations

import threading
import time
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
from nexus.editorial import claims, drafts, jobs
from nexus.errors import (
    DraftFailed,
    EmptyContent,
    InvalidState,
    JobNotReady,
    JobTimeout,
    NotFound,
    WorkError,
)
from nexus.extract import Extraction, Fetched, Hints
from nexus.extract.builtin import PDF_TYPE
from nexus.fetch import page_type
from nexus.media import extraction, lifecycle
from nexus.media.add import hold_article
from nexus.media.documents import Found
from nexus.media.extraction import Nothing
from nexus.media.workbench import Bench, Tools, as_fetched
from nexus.queue import Work
from nexus.states.job import EXTRACTED_ON, HELD, Status
from nexus.states.media import Kind
from nexus.states.media import Status as MediaStatus
from nexus.work.handler import WORKER, Claim, Ended, Handler, Hold
from nexus.work.retry import Again, decide

log = logging.get(__name__)

STEP = "step"
EXTRACT_SECONDS = 15.0
NOT_TO_FETCH = "Only a job that waits for its page can be fetched. Retry one that failed."
NO_READER = "Nothing that reads articles is installed here. Enter title and text by hand."
TOO_LATE = "This draft came too late: somebody else has gone on with the job meanwhile."
#: How long somebody waits for another's result, and how often they look for it.
WAIT_SECONDS = 120.0
LOOK_SECONDS = 0.1

Result = Fetched | Found | Nothing | Draft | DraftFailed


class Step(NamedTuple):
    """A job in one of its steps, and who takes it."""

    job: JobRow
    actor: str


class StepOutcome(StrEnum):
    """How a step ended."""

    DONE = "done"  #: the job has gone on
    FAILED = "failed"  #: the job has failed
    LEFT = "left"  #: it is a worker's to take later
    STALE = "stale"  #: somebody else has gone on with the job; the result was thrown away


@dataclass(frozen=True)
class Taken:
    """A job after somebody asked for a step, and whether there was nothing to do."""

    job: JobRow
    skipped: bool = False


@dataclass(frozen=True)
class Page:
    """What an extractor is told of the page that a job fetched."""

    id: UUID
    canonical_url: str | None
    created_by_user_id: UUID
    kind: Kind = Kind.WEB_ARTICLE
    provider: None = None
    provider_id: None = None
    file_sha256: None = None


class PageBench(Bench):
    """A workbench on which the page lies already: an extractor that fetches it is given what the job fetched."""

    def __init__(self, tools: Tools, job: JobRow) -> None:
        self.page = Page(job.id, job.canonical_url, job.created_by_user_id)
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
        return sandbox.read(reader, data, hints, replace(sandbox.limits, seconds=EXTRACT_SECONDS))


class _Overtaken(Exception):
    """Undoes the handing over of a text that is not wanted, or is there already: the answer to its COMMIT was lost."""

    def __init__(self, outcome: StepOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def fetch(tools: Tools, job_id: UUID, actor: str, request_id: str | None = None) -> JobRow:
    """Get the page: the job is EXTRACTING then, or FAILED with the reason. Raises InvalidState if it is not to be
    fetched."""
    lease = tools.leases.length
    with tools.sessions.begin() as session:
        job = claims.begin_step(session, job_id, Status.FETCHING, lease, actor, request_id=request_id)
    if isinstance(job, Missed):
        raise InvalidState(NOT_TO_FETCH)
    take(tools, Step(job, actor))
    return present(tools, job_id)


def extract(tools: Tools, job_id: UUID, actor: str) -> Taken:
    """Take title and text out of the page, once, however many ask: the others wait for what the first one finds.

    Raises JobNotReady if there is no page, or no result in time.
    """
    if Kind.WEB_ARTICLE not in tools.extractors and not _is_over(tools, job_id):
        raise JobNotReady(NO_READER)
    until = time.monotonic() + WAIT_SECONDS
    outrun = False
    while time.monotonic() < until:
        with tools.sessions.begin() as session:
            job = claims.begin_step(session, job_id, Status.EXTRACTING, tools.leases.length, actor)
        if not isinstance(job, Missed):
            if take(tools, Step(job, actor)) is not StepOutcome.STALE:
                return Taken(present(tools, job_id))
            outrun = True  # a text was entered by hand meanwhile
            continue
        if job.state in EXTRACTED_ON:
            _say_skipped(job_id, job.state, outrun=outrun)
            return Taken(present(tools, job_id), skipped=True)
        if job.state is Status.FAILED:
            return _failed(present(tools, job_id))
        if job.state is not Status.EXTRACTING:
            raise JobNotReady(_NO_PAGE[job.state]) if job.state else NotFound
        outrun = True
        _wait_for_reader(tools, job_id, until)
    raise JobNotReady


def write_draft(tools: Tools, job: JobRow, actor: str) -> None:
    """The draft of a job that is GENERATING: SAVED with its story then, or FAILED with the reason. Raises InvalidState
    if somebody else has gone on with the job."""
    if take(tools, Step(job, actor)) is StepOutcome.STALE:
        raise InvalidState(TOO_LATE)


def take(tools: Tools, step: Step) -> StepOutcome:
    """Do a step that has begun and write what it brought. Its turn at a site or a parser may be long in coming, so its
    lease is renewed meanwhile."""
    with tools.leases.hold(_hold(step.job)):
        result = _do(tools, step.job)
        return insist(lambda: _settle(tools, step, result))


def present(tools: Tools, job_id: UUID) -> JobRow:
    with tools.sessions.read() as session:
        job = jobs.get(session, job_id)
    if job is None:
        raise NotFound
    return job


class Stepping(Handler[Step, Result]):
    kind = STEP
    backlog = claims.BACKLOG
    log_event, log_id = "step", "job_id"
    #: Some threads are always left to items: a model may take its time.
    share = 0.5
    repeats = True

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def lanes(self) -> Sequence[str]:
        """Without a reader a page waits until there is one."""
        readable = Kind.WEB_ARTICLE in self._tools.extractors
        return [step.value for step in jobs.STEPS if readable or step is Status.GENERATING]

    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> Claim[Step] | None:
        job = jobs.state(session, row_id)
        if job is None or job.status not in HELD:
            if job is not None and job.status in EXTRACTED_ON:
                _say_skipped(row_id, job.status, outrun=True)
            return None
        waits = job.lease_expires_at is None and (job.run_after is None or job.run_after <= session.now)
        if not waits or job.status.value not in self.lanes():
            return None
        begun = claims.begin_step(session, row_id, job.status, lease, WORKER)
        return None if isinstance(begun, Missed) else _claimed(begun)

    def claim_due(
        self, session: Session, lane: str | None, user_id: UUID, most: int, lease: timedelta
    ) -> list[Claim[Step]]:
        rows = claims.claim_due(session, Status(lane or ""), user_id, most, lease, WORKER)
        return [_claimed(row) for row in rows]

    def do(self, claim: Claim[Step]) -> Result:
        return _do(self._tools, claim.subject.job)

    def settle(self, ended: Sequence[Ended[Step, Result]]) -> list[str]:
        return [_settle(self._tools, one.claim.subject, one.result) for one in ended]

    def put_down(
        self, session: Session, hold: Hold, again: Again | None, error: WorkError | None, actor: str
    ) -> bool:
        job_id, attempt = hold.work.id, hold.attempt
        if again is not None:
            return claims.leave(session, job_id, attempt, again.wait, counted=again.counted)
        job = jobs.state(session, job_id)
        if job is None or job.status not in HELD:
            return False
        failed = jobs.fail(session, job_id, job.status, attempt, error or JobTimeout(), actor)
        return not isinstance(failed, Missed)


def _hold(job: JobRow) -> Hold:
    return Hold(Work(STEP, job.id), job.attempt)


def _claimed(job: JobRow) -> Claim[Step]:
    return Claim(_hold(job), job.tries, Step(job, WORKER), job.request_id)


def _do(tools: Tools, job: JobRow) -> Result:
    if job.status is Status.GENERATING:
        return drafts.write(tools, job)
    if job.status is Status.FETCHING:
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
        written = drafts.save(session, job, result, actor)
    elif isinstance(result, Fetched):
        written = jobs.mark_fetched(session, job.id, job.attempt, result, actor)
    elif isinstance(result, Found):
        media_id = _hand_over(session, job, result)
        written = jobs.mark_extracted(session, job.id, job.attempt, result.extraction, media_id, actor)
    else:
        # A person decides whether a page is fetched again; only what could not begin is left to a worker.
        again = decide(result.error, job.tries, tools.backoff_seconds, most=0)
        if again is not None:
            left = claims.leave(session, job.id, job.attempt, again.wait, counted=again.counted)
            return StepOutcome.LEFT if left else StepOutcome.STALE
        written = jobs.fail(session, job.id, job.status, job.attempt, result.error, actor)
    outcome = StepOutcome.FAILED if isinstance(result, Nothing | DraftFailed) else StepOutcome.DONE
    if isinstance(written, Missed):
        outcome = outcome if written.repeated else StepOutcome.STALE
        if isinstance(result, Found):
            raise _Overtaken(outcome)
    return outcome


def _hand_over(session: Session, job: JobRow, found: Found) -> UUID:
    """The article becomes an item in the creator's library, with this text if it has none yet: one fetch for both.

    A PDF is left to a worker, which keeps its file.
    """
    row = hold_article(session, job.created_by_user_id, job.canonical_url or "")
    media_id = row.id
    if found.fetched is not None and found.fetched.content_type == PDF_TYPE:
        return media_id
    if row.processing_status is MediaStatus.FAILED:
        lifecycle.reset_failed(session, media_id, job.created_by_user_id)
    claim = lifecycle.worker_start_attempt(session, media_id)
    if claim is not None:
        lifecycle.mark_ready_for_reading(session, media_id, claim.processing_attempts, found)
    return media_id


def _failed(job: JobRow) -> Taken:
    """What a failed job answers to `extract`: the same to the caller who read the page and to all who ask later.

    Raises JobNotReady when it failed before there was a page.
    """
    if job.extracted_at is not None:
        _say_skipped(job.id, Status.FAILED, outrun=True)
        return Taken(job, skipped=True)
    if job.fetched_at is None:
        raise JobNotReady(_NO_PAGE[Status.FAILED])
    return Taken(job)


def _say_skipped(job_id: UUID, status: Status, *, outrun: bool) -> None:
    """In words that monitoring searches for: don't change them."""
    if outrun:
        why = "already extracted by another worker"
    elif status in {Status.GENERATING, Status.SAVED}:
        why = f"in terminal state (status={status.value})"
    else:
        why = f"already extracted (status={status.value})"
    log.info(f"[EXTRACT] Job {job_id} {why}, skipping", job_id=str(job_id))


def _is_over(tools: Tools, job_id: UUID) -> bool:
    """Whether its text is there, or the attempt to get it has failed: nobody has to read anything."""
    with tools.sessions.read() as session:
        job = jobs.state(session, job_id)
    return job is not None and job.status in EXTRACTED_ON | {Status.FAILED}


def _wait_for_reader(tools: Tools, job_id: UUID, until: float) -> None:
    """Wait until the other reader is done, or lost. It only looks: on SQLite a claim is the only writer."""
    while time.monotonic() < until:
        threading.Event().wait(LOOK_SECONDS)
        with tools.sessions.read() as session:
            job = jobs.state(session, job_id)
        if job is None or job.status is not Status.EXTRACTING:
            return
        if job.lease_expires_at is None or job.lease_expires_at <= tools.sessions.clock():
            return


_NO_PAGE: dict[Status, str] = {
    Status.QUEUED: "Nothing is fetched yet. Fetch the page first, or enter title and text by hand.",
    Status.FETCHING: "The page is being fetched. Ask again in a moment.",
    Status.FAILED: "This job has failed. Retry it, or enter title and text by hand.",
}
