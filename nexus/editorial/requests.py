"""An editor's requests about jobs: check that they may see the job, do it, and tell a worker after the commit.

The API does a step while its caller waits; the pages leave it to a worker.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from nexus.db.moves import Missed
from nexus.db.rows import JobRow
from nexus.db.session import Session, Sessions
from nexus.editorial import drafts, job_lists, jobs, queries, step_claims, steps
from nexus.editorial.steps import STEP, Step, StepOutcome
from nexus.errors import InvalidRequest, InvalidState, JobNotReady, NotFound, RateLimited
from nexus.libraries import access, audit
from nexus.libraries.audit import AuditEvent
from nexus.media.queries import MOST
from nexus.media.workbench import Tools
from nexus.queue import Queue, Work
from nexus.states.job import EXTRACTED_ON, HELD, JobStatus
from nexus.states.media import Kind

HAS_DRAFT = "This job already has a draft. Create a new job for another text."
NO_READER = "No extractor for articles is installed. Enter title and text by hand."
OVERTAKEN = "This draft came too late: the job has moved on in the meantime."
NO_PAGE: dict[JobStatus, str] = {
    JobStatus.QUEUED: "Nothing has been fetched yet. Fetch the page first, or enter title and text by hand.",
    JobStatus.FETCHING: "The page is being fetched. Try again in a moment.",
    JobStatus.FAILED: "This job has failed. Retry it, or enter title and text by hand.",
}
#: How long a request waits for a text that another one is extracting, and how often it looks.
WAIT_SECONDS = 120.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class NewJob:
    """What a job is to be made from: an address, a text with its title, both, or an item that can be read."""

    url: str | None = None
    title: str | None = None
    text: str | None = None
    media_id: UUID | None = None
    #: The viewer's default library if None.
    library_id: UUID | None = None

    @property
    def is_entered(self) -> bool:
        return self.title is not None or self.text is not None


@dataclass(frozen=True)
class ExtractedJob:
    """A job after its text was requested, and whether there was nothing left to do."""

    job: JobRow
    skipped: bool = False


def create_job(tools: Tools, viewer: UUID, new: NewJob) -> JobRow:
    """Create a job: QUEUED with an address alone, ready for a draft with a text or an item.

    Raises InvalidRequest, InvalidUrl, RateLimited, NotFound, Forbidden, JobNotReady.
    """
    if new.media_id is not None and (new.is_entered or new.url is not None):
        raise InvalidRequest("Give a mediaId alone: its text and address are known.")
    if new.media_id is None and new.url is None and new.text is None:
        raise InvalidRequest("Give a url, or title and text, or a mediaId.")
    with tools.sessions.begin() as session:
        job_id = _create(session, tools, viewer, new)
    return _current(tools, job_id)


def create_job_and_fetch(
    tools: Tools, queue: Queue, viewer: UUID, new: NewJob, request_id: str | None = None
) -> UUID:
    """Create a job, and leave the fetch of its page to a worker unless its text is given."""
    with tools.sessions.begin() as session:
        job_id = _create(session, tools, viewer, new)
    if not new.is_entered:
        steps.leave_fetch(tools, job_id, str(viewer), request_id=request_id)
        queue.announce(Work(STEP, job_id))
    return job_id


def _create(session: Session, tools: Tools, viewer: UUID, new: NewJob) -> UUID:
    library_id = new.library_id or access.ensure_user(session, viewer)
    if new.media_id is not None:
        return drafts.create_job_from_item(session, viewer, library_id, new.media_id)
    job_id = jobs.queue_job(session, viewer, library_id, new.url, tools.limits)
    if new.is_entered:
        jobs.mark_entered(session, job_id, new.title or "", new.text or "", str(viewer))
    return job_id


def fetch_job(
    tools: Tools,
    queue: Queue,
    viewer: UUID,
    job_id: UUID,
    request_id: str | None = None,
    *,
    again: bool = False,
) -> JobRow:
    """Fetch a job's page now, with `again` even if the job failed; a worker extracts its text.

    The job is EXTRACTING then, or FAILED with the reason. Raises NotFound, InvalidState.
    """
    _require_visible(tools.sessions, viewer, job_id)
    steps.fetch_page(tools, job_id, str(viewer), again=again, request_id=request_id)
    job = _current(tools, job_id)
    if job.status in HELD:
        queue.announce(Work(STEP, job_id))
    return job


def leave_to_worker(
    tools: Tools,
    queue: Queue,
    viewer: UUID,
    job_id: UUID,
    step: JobStatus,
    request_id: str | None = None,
    *,
    again: bool = False,
) -> None:
    """Leave a step to a worker: FETCHING for the fetch, GENERATING for the draft.

    Raises as `fetch_job` or `draft_job` does.
    """
    _require_visible(tools.sessions, viewer, job_id)
    _make_due(tools, viewer, job_id, step, request_id, again=again)
    queue.announce(Work(STEP, job_id))


def _make_due(
    tools: Tools, viewer: UUID, job_id: UUID, step: JobStatus, request_id: str | None, *, again: bool
) -> None:
    if step is JobStatus.FETCHING:
        steps.leave_fetch(tools, job_id, str(viewer), again=again, request_id=request_id)
    else:
        drafts.begin_draft(tools, job_id, viewer, again=again, request_id=request_id)


def extract_job(tools: Tools, viewer: UUID, job_id: UUID) -> ExtractedJob:
    """Extract title and text from a job's page, once: requests that come later wait for the first one's result.

    Raises NotFound, and JobNotReady if there is no page, or no result in time.
    """
    with tools.sessions.read() as session:
        status = queries.visible_job(session, job_id, viewer).status
    if Kind.WEB_ARTICLE not in tools.extractors and status not in EXTRACTED_ON | {JobStatus.FAILED}:
        raise JobNotReady(NO_READER)
    until = time.monotonic() + WAIT_SECONDS
    outrun = False
    while time.monotonic() < until:
        with tools.sessions.begin() as session:
            job = step_claims.begin_step(
                session, job_id, JobStatus.EXTRACTING, tools.leases.length, str(viewer)
            )
        if not isinstance(job, Missed):
            if steps.take(tools, Step(job, str(viewer))) is not StepOutcome.STALE:
                return ExtractedJob(_current(tools, job_id))
            outrun = True  # somebody entered a text by hand meanwhile
            continue
        if job.state in EXTRACTED_ON:
            steps.log_skipped(job_id, job.state, outrun=outrun)
            return ExtractedJob(_current(tools, job_id), skipped=True)
        if job.state is JobStatus.FAILED:
            return _extraction_failed(_current(tools, job_id))
        if job.state is not JobStatus.EXTRACTING:
            raise JobNotReady(NO_PAGE[job.state]) if job.state else NotFound
        outrun = True
        _wait_for_reader(tools, job_id, until)
    raise JobNotReady


def _extraction_failed(job: JobRow) -> ExtractedJob:
    """Answer the request that read the page, and all later ones, alike.

    Raises JobNotReady if the job failed before there was a page.
    """
    if job.extracted_at is not None:
        steps.log_skipped(job.id, JobStatus.FAILED, outrun=True)
        return ExtractedJob(job, skipped=True)
    if job.fetched_at is None:
        raise JobNotReady(NO_PAGE[JobStatus.FAILED])
    return ExtractedJob(job)


def _wait_for_reader(tools: Tools, job_id: UUID, until: float) -> None:
    """Wait until the other reader is done or has lost its lease. Only looks: a claim would be a write, and SQLite
    takes one writer at a time."""
    while time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        with tools.sessions.read() as session:
            job = jobs.job_state(session, job_id)
        if job is None or job.status is not JobStatus.EXTRACTING:
            return
        if job.lease_expires_at is None or job.lease_expires_at <= tools.sessions.clock():
            return


def draft_job(tools: Tools, viewer: UUID, job_id: UUID, *, again: bool = False) -> JobRow:
    """Write a job's draft now, with `again` even if it has one.

    Raises NotFound, RateLimited, JobNotReady, InvalidState.
    """
    _require_visible(tools.sessions, viewer, job_id)
    job = drafts.begin_draft(tools, job_id, viewer, again=again, lease=tools.leases.length)
    finish_draft(tools, job, str(viewer))
    return _current(tools, job_id)


def finish_draft(tools: Tools, job: JobRow, actor: str) -> None:
    """Write the draft of a job that is GENERATING: it is SAVED then, or FAILED with the reason.

    Raises InvalidState if somebody else has gone on with the job.
    """
    if steps.take(tools, Step(job, actor)) is StepOutcome.STALE:
        raise InvalidState(OVERTAKEN)


def enter_text(tools: Tools, viewer: UUID, job_id: UUID, title: str, text: str) -> JobRow:
    """Give a job the title and text that someone typed.

    Raises NotFound, InvalidRequest, and InvalidState if it has a draft already.
    """
    with tools.sessions.begin() as session:
        queries.visible_job(session, job_id, viewer)
        if jobs.mark_entered(session, job_id, title, text, str(viewer)) is not None:
            raise InvalidState(HAS_DRAFT)
    return _current(tools, job_id)


def retry_failed_jobs(
    tools: Tools, queue: Queue, viewer: UUID, error_code: str, request_id: str | None = None
) -> list[UUID]:
    """Leave every visible job that failed with this error to a worker again; return which.

    Each continues with the step that failed: a text that is there is not fetched again.
    """
    with tools.sessions.read() as session:
        failed = job_lists.newest_jobs(
            session, viewer, status=JobStatus.FAILED, error_code=error_code, most=MOST
        ).items
    return _begin_again(tools, queue, viewer, failed, request_id)


def retry_jobs(
    tools: Tools, queue: Queue, viewer: UUID, job_ids: Sequence[UUID], request_id: str | None = None
) -> list[UUID]:
    """Leave those of these jobs that have failed to a worker again; return which. Raises NotFound."""
    with tools.sessions.read() as session:
        chosen = [queries.visible_job(session, job_id, viewer) for job_id in job_ids]
    failed = [job for job in chosen if job.status is JobStatus.FAILED]
    return _begin_again(tools, queue, viewer, failed, request_id)


def remove_jobs(tools: Tools, viewer: UUID, job_ids: Sequence[UUID]) -> None:
    """Remove jobs; their stories stay. Raises NotFound, and removes none then."""
    with tools.sessions.begin() as session:
        for job_id in job_ids:
            job = queries.visible_job(session, job_id, viewer)
            jobs.remove_job(session, job_id, str(viewer))
            audit.record(
                session, AuditEvent.JOB_REMOVED, viewer, library_id=job.library_id, subject_id=job_id
            )


def _begin_again(
    tools: Tools, queue: Queue, viewer: UUID, failed: Sequence[queries.ShownJobRow], request_id: str | None
) -> list[UUID]:
    begun = []
    for job in failed:
        step = JobStatus.FETCHING if job.extracted_at is None else JobStatus.GENERATING
        with suppress(InvalidState, JobNotReady, RateLimited):
            _make_due(tools, viewer, job.id, step, request_id, again=True)
            begun.append(job.id)
    for job_id in begun:
        queue.announce(Work(STEP, job_id))
    return begun


def _require_visible(sessions: Sessions, viewer: UUID, job_id: UUID) -> None:
    """Raises NotFound."""
    with sessions.read() as session:
        queries.visible_job(session, job_id, viewer)


def _current(tools: Tools, job_id: UUID) -> JobRow:
    """Return a job as it is now. Raises NotFound if it was deleted meanwhile."""
    with tools.sessions.read() as session:
        job = jobs.find_job(session, job_id)
    if job is None:
        raise NotFound
    return job
