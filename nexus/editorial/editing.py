"""Work on editorial jobs: fetch, extract, and what a lost worker left. Doors, threads and tasks come through here.

No transaction is open while a page is fetched or read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from random import shuffle
from types import SimpleNamespace
from typing import BinaryIO
from uuid import UUID

from nexus import logging
from nexus.db.moves import Missed
from nexus.db.patience import insist_on
from nexus.db.session import Row, Session
from nexus.editorial import drafts, jobs, queries, steps
from nexus.errors import EmptyContent, InvalidState, JobNotReady, NotFound, RateLimited, WorkError
from nexus.extract import Extraction, Fetched, Hints
from nexus.extract.builtin import PDF_TYPE
from nexus.fetch import page_type
from nexus.libraries.quota import Limits
from nexus.media import extraction, lifecycle
from nexus.media.add import hold_article
from nexus.media.extraction import Found, Nothing
from nexus.media.lifecycle import WORKER
from nexus.media.queries import MOST
from nexus.media.workbench import Bench, Tools, as_fetched
from nexus.states.job import EXTRACTED_ON, Status
from nexus.states.media import Kind
from nexus.states.media import Status as MediaStatus

log = logging.get(__name__)

EXTRACT_SECONDS = 15.0
NOT_TO_FETCH = "Only a job that waits for its page can be fetched. Retry one that failed."
NO_READER = "Nothing that reads articles is installed here. Enter title and text by hand."
NOT_TO_RETRY = "Only a job that failed before its text was there can be retried."
#: How many of the oldest that wait a worker looks at.
AHEAD = 8
#: How long somebody waits for another's result, and how often they look for it.
WAIT_SECONDS = 120.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Done:
    """A job after a step, and whether there was nothing to do."""

    job: Row
    skipped: bool = False


class _WrittenBefore(Exception):
    """What this attempt found is there already: the answer to its COMMIT was lost."""


class Page(Bench):
    """A workbench on which the page lies already: an extractor that fetches it is given what the job fetched."""

    def __init__(self, tools: Tools, job: Row) -> None:
        super().__init__(tools, _as_media(job))
        self._charged_for = None  # there is no media yet
        body = bytes(job.raw_html)
        kind = page_type(job.content_type, body)
        page = Fetched(job.fetched_url, job.http_status, kind, job.charset, body)
        self._page = self._fetched = page

    def fetch(self, url: str) -> Fetched:
        return self._page if url == self._media.canonical_url else super().fetch(url)

    def keep(self, fetched: Fetched) -> None:
        """A job keeps no files."""

    def read(self, reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> Extraction:
        sandbox = self._tools.sandbox
        return sandbox.read(reader, data, hints, replace(sandbox.limits, seconds=EXTRACT_SECONDS))


def fetch(tools: Tools, job_id: UUID, actor: str) -> Row:
    """Get the page: the job is EXTRACTING then, or FAILED with the reason. Raises InvalidState where it is not to be
    fetched."""
    claim = _claim_fetch(tools, job_id, actor)
    with _held(tools, claim):
        page = _get(tools, claim, actor)
        if page is not None:
            insist_on(
                tools.sessions, lambda session: jobs.mark_fetched(session, job_id, claim.attempt, page, actor)
            )
    return present(tools, job_id)


def extract(tools: Tools, job_id: UUID, actor: str) -> Done:
    """Take title and text out of the page, once, however many ask: the others wait for what the first one finds.

    Raises JobNotReady where there is no page, or no result in time.
    """
    if Kind.WEB_ARTICLE not in tools.extractors and not _is_over(tools, job_id):
        raise JobNotReady(NO_READER)
    until = time.monotonic() + WAIT_SECONDS
    outrun = False
    while time.monotonic() < until:
        claim = _claim_extraction(tools, job_id, actor)
        if not isinstance(claim, Missed):
            try:
                return Done(_read(tools, claim, actor))
            except InvalidState:
                outrun = True  # a text was entered by hand meanwhile
                continue
        if claim.state in EXTRACTED_ON:
            _say_skipped(job_id, claim.state, outrun=outrun)
            return Done(present(tools, job_id), skipped=True)
        if claim.state is Status.FAILED:
            return _failed(present(tools, job_id))
        if claim.state is not Status.EXTRACTING:
            raise JobNotReady(_NO_PAGE[claim.state]) if claim.state else NotFound
        outrun = True
        _wait_for_reader(tools, job_id, until)
    raise JobNotReady


def _failed(job: Row) -> Done:
    """What a failed job answers to `extract`: the same to the caller who read the page and to all who ask later.

    Raises JobNotReady when it failed before there was a page.
    """
    if job.extracted_at is not None:
        _say_skipped(job.id, Status.FAILED, outrun=True)
        return Done(job, skipped=True)
    if job.fetched_at is None:
        raise JobNotReady(_NO_PAGE[Status.FAILED])
    return Done(job)


def _say_skipped(job_id: UUID, status: Status, *, outrun: bool) -> None:
    """In words that monitoring searches for: don't change them."""
    if outrun:
        why = "already extracted by another worker"
    elif status in {Status.GENERATING, Status.SAVED}:
        why = f"in terminal state (status={status.value})"
    else:
        why = f"already extracted (status={status.value})"
    log.info(f"[EXTRACT] Job {job_id} {why}, skipping", job_id=str(job_id))


def _extract_once(tools: Tools, job_id: UUID, actor: str) -> None:
    """For a worker, which has other things to do than to wait. Raises InvalidState where another one is at it."""
    _require_reader(tools)
    claim = _claim_extraction(tools, job_id, actor)
    if isinstance(claim, Missed):
        if claim.state in EXTRACTED_ON:
            _say_skipped(job_id, claim.state, outrun=True)
        raise InvalidState
    _read(tools, claim, actor)


def _require_reader(tools: Tools) -> None:
    """Without one nothing changes: the page waits until there is one."""
    if Kind.WEB_ARTICLE not in tools.extractors:
        raise JobNotReady(NO_READER)


def _is_over(tools: Tools, job_id: UUID) -> bool:
    """Whether its text is there, or the attempt to get it has failed: nobody has to read anything."""
    with tools.sessions.read() as session:
        job = steps.state(session, job_id)
    return job is not None and Status(job.status) in EXTRACTED_ON | {Status.FAILED}


def _claim_extraction(tools: Tools, job_id: UUID, actor: str) -> Row | Missed[Status]:
    with tools.sessions.begin() as session:
        return jobs.claim_extraction(session, job_id, tools.step_leases.length, actor)


def _wait_for_reader(tools: Tools, job_id: UUID, until: float) -> None:
    """Until whoever takes the text out is done, or lost. It only looks: on SQLite a claim is the only writer."""
    while time.monotonic() < until:
        threading.Event().wait(LOOK_SECONDS)
        with tools.sessions.read() as session:
            job = steps.state(session, job_id)
        if job is None or Status(job.status) is not Status.EXTRACTING:
            return
        if job.lease_expires_at is None or job.lease_expires_at <= tools.sessions.clock():
            return


def leave_fetch(tools: Tools, job_id: UUID, actor: str, *, again: bool = False) -> None:
    """The fetch of a job that waits, or with `again` of one that failed without a text, is a worker's to do: announce
    it. Raises InvalidState."""
    with tools.sessions.begin() as session:
        if again and not jobs.retry(session, job_id, actor):
            raise InvalidState(NOT_TO_RETRY)
        if not jobs.start_fetch(session, job_id, None, actor):
            raise InvalidState(NOT_TO_FETCH)


def leave_all_failed(tools: Tools, limits: Limits, viewer: UUID, error_code: str) -> list[UUID]:
    """Whatever failed with this error and is the viewer's to see is a worker's to do once more; which of it."""
    with tools.sessions.read() as session:
        failed = queries.newest(session, viewer, status=Status.FAILED, error_code=error_code, most=MOST).items
    return [job.id for job in failed if _left_again(tools, limits, job, viewer)]


def _left_again(tools: Tools, limits: Limits, job: Row, viewer: UUID) -> bool:
    """From the step that failed on: a text that is there is not fetched again."""
    try:
        if job.extracted_at is None:
            leave_fetch(tools, job.id, str(viewer), again=True)
        else:
            drafts.begin(tools, limits, job.id, viewer, again=True)
    except (InvalidState, JobNotReady, RateLimited):
        return False
    return True


def run(tools: Tools, job_id: UUID, request_id: str | None = None) -> bool:
    """Whatever of a job is left to a worker; whether there was anything."""
    with tools.sessions.read() as session:
        job = steps.state(session, job_id)
    if job is None or Status(job.status) not in _TAKE_UP:
        return False
    with logging.task_log_context(request_id=request_id, job_id=job_id):
        try:
            _TAKE_UP[Status(job.status)](tools, job_id, WORKER)
        except (InvalidState, JobNotReady):
            return False  # another worker was quicker
    return True


def run_next(tools: Tools, request_id: Callable[[UUID], str | None] = lambda _: None) -> bool:
    """The same for one that waits; whether there was one. It looks first: on SQLite a claim is the only writer.

    Any of the oldest ones, for other threads look at this moment, too.
    """
    with tools.sessions.read() as session:
        waiting = steps.due(session, AHEAD)
    shuffle(waiting)
    return any(run(tools, job_id, request_id(job_id)) for job_id in waiting)


def present(tools: Tools, job_id: UUID) -> Row:
    with tools.sessions.read() as session:
        job = jobs.get(session, job_id)
    if job is None:
        raise NotFound
    return job


def _claim_fetch(tools: Tools, job_id: UUID, actor: str) -> Row:
    with tools.sessions.begin() as session:
        claim = jobs.start_fetch(session, job_id, tools.step_leases.length, actor)
    if isinstance(claim, Missed):
        raise InvalidState(NOT_TO_FETCH)
    return claim


@contextmanager
def _held(tools: Tools, claim: Row) -> Iterator[None]:
    """A step's turn at a site or a parser may be long in coming."""
    with tools.step_leases.hold((claim.id, claim.attempt)):
        yield


def _get(tools: Tools, claim: Row, actor: str) -> Fetched | None:
    """The page; None where the job has failed for want of it, or where the site is busy and a worker asks later."""
    try:
        return as_fetched(tools.fetcher.get(claim.canonical_url))
    except WorkError as error:
        failure = error  # the name of an exception ends with its handler
        insist_on(tools.sessions, lambda session: _give_up_fetch(session, claim, failure, actor))
        return None


def _give_up_fetch(session: Session, claim: Row, error: WorkError, actor: str) -> None:
    if error.counted:
        jobs.fail(session, claim.id, Status.FETCHING, claim.attempt, error, actor)
    else:
        steps.leave(session, claim.id, Status.FETCHING, claim.attempt)


def _fetch_and_read(tools: Tools, job_id: UUID, actor: str) -> None:
    """Both at one go: what is fetched is never free for another in between."""
    _require_reader(tools)
    claim = _claim_fetch(tools, job_id, actor)
    with _held(tools, claim):
        page = _get(tools, claim, actor)
        if page is None:
            return
        reading = insist_on(
            tools.sessions, lambda session: _begin_to_read(tools, session, claim, page, actor)
        )
    if not isinstance(reading, Missed):
        _read(tools, reading, actor)


def _begin_to_read(
    tools: Tools, session: Session, claim: Row, page: Fetched, actor: str
) -> Row | Missed[Status]:
    fetched = jobs.mark_fetched(session, claim.id, claim.attempt, page, actor)
    reading = jobs.claim_extraction(session, claim.id, tools.step_leases.length, actor)
    if isinstance(reading, Missed) and isinstance(fetched, Missed) and fetched.repeated:
        # The answer to the COMMIT of both was lost: the next attempt is this worker's too.
        job = jobs.get(session, claim.id)
        if job is not None and job.attempt == claim.attempt + 1 and job.lease_expires_at is not None:
            return job
    return reading


def _read(tools: Tools, claim: Row, actor: str) -> Row:
    """Raises InvalidState where the claim is no longer the present one."""
    with _held(tools, claim):
        result = extraction.attempt(tools, _as_media(claim), claim.attempt, Page(tools, claim))
        if isinstance(result, Found) and len(jobs.title_and_text(result.extraction)[1]) < jobs.LEAST_TEXT:
            result = Nothing(EmptyContent())
        with suppress(_WrittenBefore):
            insist_on(tools.sessions, lambda session: _settle(session, claim, result, actor))
    return present(tools, claim.id)


def _settle(session: Session, claim: Row, result: Found | Nothing, actor: str) -> None:
    """Raises when nothing is to be written; what was handed over then goes with the transaction."""
    if isinstance(result, Nothing):
        written = jobs.fail(session, claim.id, Status.EXTRACTING, claim.attempt, result.error, actor)
    else:
        media_id = _hand_over(session, claim, result)
        written = jobs.mark_extracted(session, claim.id, claim.attempt, result.extraction, media_id, actor)
    if isinstance(written, Missed):
        raise _WrittenBefore if written.repeated else InvalidState


def _hand_over(session: Session, job: Row, found: Found) -> UUID | None:
    """The article becomes a media in the creator's library, with this text where it has none yet: one fetch for both.

    A PDF is left to a worker, which keeps its file.
    """
    row = hold_article(session, job.created_by_user_id, job.canonical_url)
    media_id: UUID = row.id
    if found.origin.fetched is not None and found.origin.fetched.content_type == PDF_TYPE:
        return media_id
    if MediaStatus(row.processing_status) is MediaStatus.FAILED:
        lifecycle.reset_failed(session, media_id, job.created_by_user_id)
    claim = lifecycle.worker_start_attempt(session, media_id)
    if claim is not None:
        lifecycle.mark_ready_for_reading(
            session, media_id, claim.processing_attempts, found.extraction, found.origin
        )
    return media_id


def _as_media(job: Row) -> Row:
    """What an extractor is told of the page."""
    return SimpleNamespace(
        id=job.id,
        kind=Kind.WEB_ARTICLE.value,
        canonical_url=job.canonical_url,
        provider=None,
        provider_id=None,
        created_by_user_id=job.created_by_user_id,
    )


_NO_PAGE: dict[Status, str] = {
    Status.QUEUED: "Nothing is fetched yet. Fetch the page first, or enter title and text by hand.",
    Status.FETCHING: "The page is being fetched. Ask again in a moment.",
    Status.FAILED: "This job has failed. Retry it, or enter title and text by hand.",
}
#: What a worker does with a job in this state.
_TAKE_UP: dict[Status, Callable[[Tools, UUID, str], object]] = {
    Status.FETCHING: _fetch_and_read,
    Status.EXTRACTING: _extract_once,
    Status.GENERATING: drafts.take_up,
}
