"""Editorial jobs: from an address, or from pasted text, to what a draft is made of.

Answers have the shape that editors' pages rely on: `success`, `skipped` and `job`, or `error` and `message`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from nexus.db.session import Row
from nexus.errors import InvalidRequest, InvalidState
from nexus.ingest import access, desk, editing, jobs, read
from nexus.states.job import Status
from nexus.web.context import Cursor, Limit, Nexus, Viewer
from nexus.web.envelope import EDITORIAL, JSON, request_id
from nexus.web.job_schemas import JobBody, JobOut, JobPage, JobRefusal, ManualBody, job_json
from nexus.web.schemas import event_json

router = APIRouter(prefix="/api/ingestion-jobs", tags=[EDITORIAL], default_response_class=Response)

_MEANINGS = {
    400: "The request is not well-formed; `error` says how.",
    401: "No valid token, or no internal secret.",
    403: "Visible, but not yours to change.",
    404: "No such job, or not visible to you.",
    409: "Not possible in the present state.",
    413: "The request is too large.",
    429: "The day's allowance is used up.",
    503: "A part of the server is away.",
}


def _answers(model: object, *statuses: int) -> dict[int | str, dict[str, Any]]:
    refused: dict[int | str, dict[str, Any]] = {
        status: {"model": JobRefusal, "description": _MEANINGS[status]}
        for status in sorted({400, 401, 503, *statuses})
    }
    return {200: {"model": model, "description": "Done."}, **refused}


@router.post("", responses=_answers(JobOut, 403, 404, 413, 429), summary="Begin a job")
def create_job(nexus: Nexus, viewer: Viewer, body: JobBody) -> Response:
    """With a `url` it waits to be fetched; with `title` and `text` it is ready for a draft at once."""
    if body.url is None and body.text is None:
        raise InvalidRequest("Give a url, or title and text.")
    with nexus.sessions.begin() as session:
        library_id = body.library_id or access.ensure_user(session, viewer)
        job_id = jobs.create(session, viewer, library_id, body.url, nexus.limits)
        if body.text is not None or body.title is not None:
            jobs.enter(session, job_id, body.title or "", body.text or "", str(viewer))
    return _job(editing.present(nexus.tools, job_id), viewer)


@router.get("", responses=_answers(JobPage), summary="List jobs")
def list_jobs(
    nexus: Nexus,
    viewer: Viewer,
    status: Annotated[str | None, Query(examples=["FAILED"])] = None,
    cursor: Cursor = None,
    limit: Limit = read.PAGE,
) -> Response:
    """Yours, and those made in libraries that you administer, the newest first."""
    if status is not None and status not in set(Status):
        raise InvalidRequest(f"There is no status {status[:40]!r}. See /docs.")
    with nexus.sessions.read() as session:
        page = desk.newest(
            session, viewer, status=Status(status) if status else None, cursor=cursor, most=limit
        )
    shown = [job_json(row, viewer) for row in page.items]
    return _answer({"success": True, "jobs": shown, "nextCursor": page.next_cursor})


@router.get("/{job_id}", responses=_answers(JobOut, 404), summary="One job")
def get_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """With everything that happened to it."""
    with nexus.sessions.read() as session:
        job = desk.find(session, job_id, viewer)
        events = desk.what_happened(session, job_id)
    history = [event_json(row, viewer) for row in events]
    return _answer({"success": True, "job": job_json(job, viewer), "history": history})


@router.post("/{job_id}/fetch", responses=_answers(JobOut, 404, 409), summary="Fetch its page")
def fetch_job(nexus: Nexus, viewer: Viewer, job_id: UUID, request: Request) -> Response:
    """Answers when the fetch has ended; its text is then taken out without being asked for."""
    _find(nexus, job_id, viewer)
    return _fetched(nexus, viewer, job_id, request)


@router.post("/{job_id}/extract", responses=_answers(JobOut, 404, 409), summary="Take its text out")
def extract_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """However often it is asked for, it is done once; `skipped` says that there was nothing left to do."""
    _find(nexus, job_id, viewer)
    done = editing.extract(nexus.tools, job_id, str(viewer))
    return _job(done.job, viewer, skipped=done.skipped)


@router.post(
    "/{job_id}/manual-entry",
    responses=_answers(JobOut, 404, 409, 413),
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


@router.post("/{job_id}/retry", responses=_answers(JobOut, 404, 409), summary="Try again")
def retry_job(nexus: Nexus, viewer: Viewer, job_id: UUID, request: Request) -> Response:
    """Only what has failed before its text was there; it is fetched again."""
    _find(nexus, job_id, viewer)
    with nexus.sessions.begin() as session:
        row = jobs.retry(session, job_id, str(viewer))
    if not row:
        raise InvalidState("Only a job that failed before its text was there can be retried.")
    return _fetched(nexus, viewer, job_id, request)


def _find(nexus: Nexus, job_id: UUID, viewer: UUID) -> Row:
    with nexus.sessions.read() as session:
        return desk.find(session, job_id, viewer)


def _fetched(nexus: Nexus, viewer: UUID, job_id: UUID, request: Request) -> Response:
    job = editing.fetch(nexus.tools, job_id, str(viewer))
    if Status(job.status) is Status.EXTRACTING:
        nexus.queue.announce(job_id, request_id(request))
    return _job(job, viewer)


def _job(row: Row, viewer: UUID, *, skipped: bool = False) -> Response:
    return _answer({"success": True, "skipped": skipped, "job": job_json(row, viewer)})


def _answer(body: dict[str, Any]) -> Response:
    return Response(json.dumps(body, ensure_ascii=False), media_type=JSON)
