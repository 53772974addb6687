"""Jobs as pages show them: the words, the steps, and what can be done next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID

from nexus.db.rows import HistoryRow, JobRow
from nexus.editorial.job_lists import FailureCount
from nexus.editorial.queries import ShownJobRow
from nexus.errors import WorkError, describe, tree
from nexus.states.job import FETCH, MANUAL_ENTRY, JobStatus
from nexus.states.machine import Verdict
from nexus.urls import host_of
from nexus.web.api.schemas import actor_of
from nexus.web.views.histories import ACTORS, ShownEvent
from nexus.web.views.items import (
    Badge,
    Failure,
    SiteWait,
    address_of,
    safe_link,
    told,
)

JOB_BADGES = {
    JobStatus.QUEUED: Badge("Queued", "queued"),
    JobStatus.FETCHING: Badge("Fetching", "working"),
    JobStatus.EXTRACTING: Badge("Extracting", "working"),
    JobStatus.EXTRACTED: Badge("Ready for a draft", "draft"),
    JobStatus.READY_TO_GENERATE: Badge("Ready for a draft", "draft"),
    JobStatus.GENERATING: Badge("Writing the draft", "working"),
    JobStatus.SAVED: Badge("Story saved", "ready"),
    JobStatus.FAILED: Badge("Failed", "failed"),
}
JOB_EVENTS = {
    "create": "Created",
    "fetch": "Fetch requested",
    "fetched": "Page fetched",
    "claim_extraction": "Extraction started",
    "extracted": "Title and text extracted",
    "adopt": "Taken from the library",
    "generate": "Draft requested",
    "saved": "Story saved",
    "fail": "Failed",
    "manual_entry": "Entered by hand",
    "regenerate": "Another draft requested",
    "retry": "Retried",
}
#: The same event once more, when a worker takes the step up.
TAKEN_UP = {"fetch": "Fetch started", "generate": "Draft started"}
FAILED_STEPS = {
    "FETCH": "Couldn't fetch the page",
    "EXTRACT": "Couldn't extract the text",
    "GENERATE": "Couldn't write the draft",
}
#: The sentence of each error that can end a step.
SENTENCES = {error.code: describe(error) for error in tree(WorkError)}
AWAITS_TEXT = frozenset({JobStatus.FETCHING, JobStatus.EXTRACTING})
#: How long an editor waits for a text before the page suggests entering it by hand.
PATIENCE = timedelta(seconds=30)
READY = frozenset({JobStatus.EXTRACTED, JobStatus.READY_TO_GENERATE})


@dataclass(frozen=True)
class ShownStep:
    name: str
    #: Its state in a few words.
    says: str
    #: done, working, failed or waiting
    state: str


@dataclass(frozen=True)
class ShownJob:
    """A job, ready for a template."""

    id: UUID
    row: ShownJobRow
    title: str
    host: str
    link: str | None
    badge: Badge
    steps: list[ShownStep]
    failure: Failure | None
    wait: SiteWait | None
    #: A step is under way: the page looks again.
    working: bool
    may_fetch: bool
    may_retry: bool
    may_generate: bool
    may_regenerate: bool
    may_enter: bool
    #: Its text is being fetched or extracted.
    awaits_text: bool


@dataclass(frozen=True)
class FailedJobs:
    """How many jobs have failed with one error."""

    code: str
    sentence: str
    count: int


def show_job(row: ShownJobRow) -> ShownJob:
    has_text = row.extracted_at is not None
    failed = row.status == JobStatus.FAILED
    return ShownJob(
        id=row.id,
        row=row,
        title=row.extracted_title or address_of(row.canonical_url) or "Untitled",
        host=host_of(row.canonical_url),
        link=safe_link(row.canonical_url),
        badge=JOB_BADGES[row.status],
        steps=_steps(row),
        failure=_failure(row) if failed else None,
        wait=_wait(row),
        working=JOB_BADGES[row.status].tone == "working",
        may_fetch=row.status == JobStatus.QUEUED and row.canonical_url is not None,
        may_retry=failed and not has_text and row.canonical_url is not None,
        may_generate=row.status in READY,
        may_regenerate=row.status == JobStatus.SAVED or (failed and has_text),
        may_enter=MANUAL_ENTRY.decide(row.status) is Verdict.APPLY or row.status == JobStatus.FETCHING,
        awaits_text=row.status in AWAITS_TEXT,
    )


def show_failed(failed: FailureCount) -> FailedJobs:
    code = failed.error_code or ""
    return FailedJobs(code, told("", SENTENCES.get(code, ""), code).sentence, failed.total)


def seconds_left(row: JobRow, events: Sequence[HistoryRow], now: datetime) -> int:
    """How much longer the page waits for a text, counted from when its fetch was requested."""
    asked = [
        event.at for event in events if event.event == FETCH.verb and event.from_status == JobStatus.QUEUED
    ]
    waited = now - max(asked, default=row.created_at)
    return max(0, ceil((PATIENCE - waited).total_seconds()))


def show_job_event(row: HistoryRow, viewer: UUID) -> ShownEvent:
    words = JOB_EVENTS if row.from_status != row.to_status else {**JOB_EVENTS, **TAKEN_UP}
    return ShownEvent(
        words.get(row.event, row.event),
        ACTORS[actor_of(row, viewer)],
        JOB_BADGES[JobStatus(row.to_status)].tone,
        row.from_status,
        row.to_status,
        row.at,
        row.attempt,
        row.error_code,
    )


def _steps(row: ShownJobRow) -> list[ShownStep]:
    tag = (row.error_message or "").partition("]")[0].lstrip("[")
    if row.manually_provided:
        before = [ShownStep("Fetch", "Not needed", "done"), ShownStep("Text", "Entered by hand", "done")]
    elif row.extracted_at is not None and row.fetched_at is None:
        before = [ShownStep("Fetch", "Not needed", "done"), ShownStep("Text", "From your library", "done")]
    else:
        before = [
            _step("Fetch", "FETCH", row.status == JobStatus.FETCHING, row.fetched_at is not None, tag),
            _step("Text", "EXTRACT", row.status == JobStatus.EXTRACTING, row.extracted_at is not None, tag),
        ]
    draft = _step("Draft", "GENERATE", row.status == JobStatus.GENERATING, row.status == JobStatus.SAVED, tag)
    return [*before, draft]


def _step(name: str, tag: str, working: bool, done: bool, failed_at: str) -> ShownStep:
    if failed_at == tag:
        return ShownStep(name, "Failed", "failed")
    if working:
        return ShownStep(name, "In progress", "working")
    return ShownStep(name, "Done", "done") if done else ShownStep(name, "Waiting", "waiting")


def _wait(row: ShownJobRow) -> SiteWait | None:
    """A fetch that nobody has begun waits for a worker, or until a later time for its site."""
    if row.status is not JobStatus.FETCHING or row.lease_expires_at is not None or row.run_after is None:
        return None
    return SiteWait(host_of(row.canonical_url), row.run_after)


def _failure(row: ShownJobRow) -> Failure:
    tag, _, message = (row.error_message or "").partition("] ")
    return told(FAILED_STEPS.get(tag.lstrip("["), "Failed"), message, row.error_code or "")
