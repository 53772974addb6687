"""Editorial jobs: from an address, or from pasted text, to what a draft is made of.

Answers have the shape that editors' pages rely on: `success`, `skipped` and `job`, or `error` and `message`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Annotated, Any
from uuid import UUID

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from fastapi import APIRouter, Query, Request, Response

from nexus.db.session import Row
from nexus.editorial import drafts as drafting
from nexus.editorial import editing, jobs
from nexus.editorial import queries as desk
from nexus.errors import InvalidRequest, InvalidState
from nexus.libraries import access
from nexus.media import queries
from nexus.states.job import HELD, Status
from nexus.web.api.job_schemas import (
    ERROR_CODE,
    JobBody,
    JobOut,
    JobPage,
    ManualBody,
    RetriedJobs,
    RetryBody,
    draft_json,
    job_json,
)
from nexus.web.api.schemas import event_json
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer
from nexus.web.http.editorial import answer, answers
from nexus.web.http.envelope import EDITORIAL, request_id
from nexus.web.http.routing import Route

router = APIRouter(
    route_class=Route, prefix="/api/ingestion-jobs", tags=[EDITORIAL], default_response_class=Response
)

#: How many may wait for a site, a parser or a model at once.
PATIENT_CALLS = 64
_threads: RunVar[CapacityLimiter] = RunVar("patient_calls")


def patient(call: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
    """For calls that wait for a site, a parser or a model: in threads of their own, so that nobody else waits."""

    @wraps(call)
    async def endpoint(**given: Any) -> Response:
        return await to_thread.run_sync(partial(call, **given), limiter=_patient_threads())

    return endpoint


def _patient_threads() -> CapacityLimiter:
    """Those of the running server."""
    try:
        return _threads.get()
    except LookupError:
        _threads.set(CapacityLimiter(PATIENT_CALLS))
        return _threads.get()


@router.post("", responses=answers(JobOut, 403, 404, 413, 429), summary="Begin a job")
def create_job(nexus: Nexus, viewer: Viewer, body: JobBody) -> Response:
    """With a `url` it waits to be fetched; with `title` and `text`, or with the `mediaId` of something that can be
    read, it is ready for a draft at once."""
    by_hand = body.title is not None or body.text is not None
    if body.media_id is not None and (by_hand or body.url is not None):
        raise InvalidRequest("Give a mediaId alone: its text and address are known.")
    if body.media_id is None and body.url is None and body.text is None:
        raise InvalidRequest("Give a url, or title and text, or a mediaId.")
    with nexus.sessions.begin() as session:
        library_id = body.library_id or access.ensure_user(session, viewer)
        if body.media_id is not None:
            job_id = drafting.adopt(session, viewer, library_id, body.media_id)
        else:
            job_id = jobs.create(session, viewer, library_id, body.url, nexus.limits)
        if by_hand:
            jobs.enter(session, job_id, body.title or "", body.text or "", str(viewer))
    return _job(editing.present(nexus.tools, job_id), viewer)


@router.post(
    "/failed/retry", responses=answers(RetriedJobs, 413), summary="Try again what failed with an error"
)
def retry_jobs(nexus: Nexus, viewer: Viewer, body: RetryBody, request: Request) -> Response:
    """Each from the step that failed on, by workers: follow them, or look at them later."""
    begun = editing.leave_all_failed(nexus.tools, nexus.limits, viewer, body.error_code)
    for job_id in begun:
        nexus.queue.announce(job_id, request_id(request))
    return answer({"success": True, "jobIds": [str(job_id) for job_id in begun]})


@router.get("", responses=answers(JobPage), summary="List jobs")
def list_jobs(
    nexus: Nexus,
    viewer: Viewer,
    status: Annotated[str | None, Query(examples=["FAILED"])] = None,
    error: Annotated[str | None, Query(pattern=ERROR_CODE, examples=["E_FETCH_TIMEOUT"])] = None,
    cursor: Cursor = None,
    limit: Limit = queries.PAGE,
) -> Response:
    """Yours, and those made in libraries that you administer, the newest first."""
    if status is not None and status not in set(Status):
        raise InvalidRequest(f"There is no status {status[:40]!r}. See /docs.")
    with nexus.sessions.read() as session:
        page = desk.newest(
            session,
            viewer,
            status=Status(status) if status else None,
            error_code=error,
            cursor=cursor,
            most=limit,
        )
    shown = [job_json(row, viewer) for row in page.items]
    return answer({"success": True, "jobs": shown, "nextCursor": page.next_cursor})


@router.get("/{job_id}", responses=answers(JobOut, 404), summary="One job")
def get_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """With everything that happened to it, and every draft of its story, the newest first."""
    with nexus.sessions.read() as session:
        job = desk.find(session, job_id, viewer)
        events = desk.what_happened(session, job_id)
        drafts = desk.drafts(session, job_id)
    return answer(
        {
            "success": True,
            "job": job_json(job, viewer),
            "history": [event_json(row, viewer) for row in events],
            "stories": list(map(draft_json, drafts)),
        }
    )


@router.post("/{job_id}/fetch", responses=answers(JobOut, 404, 409), summary="Fetch its page")
@patient
def fetch_job(nexus: Nexus, viewer: Viewer, job_id: UUID, request: Request) -> Response:
    """Answers when the fetch has ended; its text is then taken out without being asked for."""
    _find(nexus, job_id, viewer)
    return _fetched(nexus, viewer, job_id, request)


@router.post("/{job_id}/extract", responses=answers(JobOut, 404, 409), summary="Take its text out")
@patient
def extract_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """However often it is asked for, it is done once; `skipped` says that there was nothing left to do."""
    _find(nexus, job_id, viewer)
    done = editing.extract(nexus.tools, job_id, str(viewer))
    return _job(done.job, viewer, skipped=done.skipped)


@router.post("/{job_id}/generate", responses=answers(JobOut, 404, 409, 429), summary="Write its story")
@patient
def generate_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """Answers when the draft is saved, or has failed. Once in five seconds for a job."""
    _find(nexus, job_id, viewer)
    return _drafted(nexus, viewer, job_id, again=False)


@router.post("/{job_id}/regenerate", responses=answers(JobOut, 404, 409, 429), summary="Write it again")
@patient
def regenerate_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """Of the same text, without a fetch. Earlier drafts stay."""
    _find(nexus, job_id, viewer)
    return _drafted(nexus, viewer, job_id, again=True)


@router.post(
    "/{job_id}/manual-entry",
    responses=answers(JobOut, 404, 409, 413),
    summary="Enter title and text by hand",
)
def enter_job(nexus: Nexus, viewer: Viewer, job_id: UUID, body: ManualBody) -> Response:
    """For a page behind a paywall. The text stays in this job."""
    _find(nexus, job_id, viewer)
    with nexus.sessions.begin() as session:
        missed = jobs.enter(session, job_id, body.title, body.text, str(viewer))
    if missed is not None:
        raise InvalidState("Text is entered before a draft is made. Make a new job for another text.")
    return _job(editing.present(nexus.tools, job_id), viewer)


@router.post("/{job_id}/retry", responses=answers(JobOut, 404, 409), summary="Try again")
@patient
def retry_job(nexus: Nexus, viewer: Viewer, job_id: UUID, request: Request) -> Response:
    """Only what has failed before its text was there; it is fetched again."""
    _find(nexus, job_id, viewer)
    with nexus.sessions.begin() as session:
        row = jobs.retry(session, job_id, str(viewer))
    if not row:
        raise InvalidState(editing.NOT_TO_RETRY)
    return _fetched(nexus, viewer, job_id, request)


def _find(nexus: Nexus, job_id: UUID, viewer: UUID) -> Row:
    with nexus.sessions.read() as session:
        return desk.find(session, job_id, viewer)


def _fetched(nexus: Nexus, viewer: UUID, job_id: UUID, request: Request) -> Response:
    job = editing.fetch(nexus.tools, job_id, str(viewer))
    if Status(job.status) in HELD:
        nexus.queue.announce(job_id, request_id(request))
    return _job(job, viewer)


def _drafted(nexus: Nexus, viewer: UUID, job_id: UUID, *, again: bool) -> Response:
    lease = nexus.tools.step_leases.length
    job = drafting.begin(nexus.tools, nexus.limits, job_id, viewer, again=again, lease=lease)
    drafting.write(nexus.tools, job, str(viewer))
    return _job(editing.present(nexus.tools, job_id), viewer)


def _job(row: Row, viewer: UUID, *, skipped: bool = False) -> Response:
    """A step that was taken and failed is no success, and says so beside the job too."""
    failed = Status(row.status) is Status.FAILED and not skipped
    reason = {"error": row.error_code, "message": row.error_message} if failed else {}
    return answer({"success": not failed, "skipped": skipped, **reason, "job": job_json(row, viewer)})
