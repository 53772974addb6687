"""Editorial jobs: from an address, or from pasted text, to a story.

Answers have the shape that editors' tools rely on: `success`, `skipped` and `job`, or `error` and `message`.
"""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, Request, Response

from nexus.editorial import job_lists, requests
from nexus.editorial import queries as editorial
from nexus.editorial.requests import NewJob
from nexus.errors import InvalidRequest
from nexus.media import queries
from nexus.states.job import JobStatus
from nexus.web.api.job_schemas import (
    ERROR_CODE,
    DraftOut,
    JobBody,
    JobDetail,
    JobOut,
    JobPage,
    JobSummary,
    ManualBody,
    RemovedJob,
    RetriedJobs,
    RetryBody,
)
from nexus.web.api.schemas import EventOut
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer
from nexus.web.http.envelope import answer_bare, editorial_answers, refuse_editorially, request_id
from nexus.web.http.routing import Router
from nexus.web.http.threads import waits_for_site

router = Router(refuse=refuse_editorially, prefix="/api/ingestion-jobs", tags=["jobs"])


@router.post("", responses=editorial_answers(JobOut, 403, 404, 413), summary="Create a job")
def create_job(nexus: Nexus, viewer: Viewer, body: JobBody) -> Response:
    """With a `url` it waits to be fetched. With `title` and `text`, or with the `mediaId` of an item that can be read,
    it is ready for a draft at once."""
    job = requests.create_job(nexus.tools, viewer, NewJob(**dict(body)))
    return answer_bare(JobOut.after_step(job, viewer))


@router.post(
    "/failed/retry",
    responses=editorial_answers(RetriedJobs, 413),
    summary="Retry all jobs that failed with an error",
)
def retry_jobs(nexus: Nexus, viewer: Viewer, body: RetryBody, request: Request) -> Response:
    """Workers take each up from the step that failed: follow them, or look at them later."""
    begun = requests.retry_failed_jobs(nexus.tools, nexus.queue, viewer, body.error_code, request_id(request))
    return answer_bare(RetriedJobs(success=True, job_ids=begun))


@router.get("", responses=editorial_answers(JobPage), summary="List jobs")
def list_jobs(
    nexus: Nexus,
    viewer: Viewer,
    status: Annotated[str | None, Query(examples=["FAILED"])] = None,
    error: Annotated[str | None, Query(pattern=ERROR_CODE, examples=["E_FETCH_TIMEOUT"])] = None,
    cursor: Cursor = None,
    limit: Limit = queries.PAGE,
) -> Response:
    """Yours, and those made in libraries that you administer, the newest first."""
    if status is not None and status not in set(JobStatus):
        raise InvalidRequest(f"There is no status {status[:40]!r}. See /docs.")
    with nexus.sessions.read() as session:
        page = job_lists.newest_jobs(
            session,
            viewer,
            status=JobStatus(status) if status else None,
            error_code=error,
            cursor=cursor,
            most=limit,
        )
    shown = [JobSummary.of(row, viewer) for row in page.items]
    return answer_bare(JobPage(success=True, jobs=shown, next_cursor=page.next_cursor))


@router.get("/{job_id}", responses=editorial_answers(JobOut, 404), summary="Get a job")
def get_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """With everything that happened to it, and every draft of its story, the newest first."""
    with nexus.sessions.read() as session:
        job = editorial.visible_job(session, job_id, viewer)
        events = editorial.history_of(session, job_id)
        drafts = editorial.drafts_of(session, job_id)
    return answer_bare(
        JobOut(
            success=True,
            job=JobDetail.of(job, viewer),
            history=[EventOut.of(row, viewer) for row in events],
            stories=[DraftOut.model_validate(row) for row in drafts],
        )
    )


@router.delete("/{job_id}", responses=editorial_answers(RemovedJob, 404), summary="Remove a job")
def remove_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """A step that is under way is given up. The stories of the job stay."""
    requests.remove_jobs(nexus.tools, viewer, [job_id])
    return answer_bare(RemovedJob(success=True, job_id=job_id))


@router.post("/{job_id}/fetch", responses=editorial_answers(JobOut, 404, 409), summary="Fetch its page")
@waits_for_site
def fetch_job(nexus: Nexus, viewer: Viewer, job_id: UUID, request: Request) -> Response:
    """Answers when the fetch has ended. A worker then extracts the text."""
    job = requests.fetch_job(nexus.tools, nexus.queue, viewer, job_id, request_id(request))
    return answer_bare(JobOut.after_step(job, viewer))


@router.post("/{job_id}/extract", responses=editorial_answers(JobOut, 404, 409), summary="Extract its text")
@waits_for_site
def extract_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """It is done once, however often it is requested; `skipped` says that there was nothing left to do."""
    extracted = requests.extract_job(nexus.tools, viewer, job_id)
    return answer_bare(JobOut.after_step(extracted.job, viewer, skipped=extracted.skipped))


@router.post("/{job_id}/generate", responses=editorial_answers(JobOut, 404, 409), summary="Write its story")
@waits_for_site
def generate_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """Answers when the draft is saved or has failed. At most once in five seconds for each job."""
    job = requests.draft_job(nexus.tools, viewer, job_id)
    return answer_bare(JobOut.after_step(job, viewer))


@router.post("/{job_id}/regenerate", responses=editorial_answers(JobOut, 404, 409), summary="Write it again")
@waits_for_site
def regenerate_job(nexus: Nexus, viewer: Viewer, job_id: UUID) -> Response:
    """From the same text, without another fetch. Earlier drafts stay."""
    job = requests.draft_job(nexus.tools, viewer, job_id, again=True)
    return answer_bare(JobOut.after_step(job, viewer))


@router.post(
    "/{job_id}/manual-entry",
    responses=editorial_answers(JobOut, 404, 409, 413),
    summary="Enter title and text by hand",
)
def enter_job(nexus: Nexus, viewer: Viewer, job_id: UUID, body: ManualBody) -> Response:
    """For a page behind a paywall. The text stays in this job."""
    job = requests.enter_text(nexus.tools, viewer, job_id, body.title, body.text)
    return answer_bare(JobOut.after_step(job, viewer))


@router.post("/{job_id}/retry", responses=editorial_answers(JobOut, 404, 409), summary="Retry")
@waits_for_site
def retry_job(nexus: Nexus, viewer: Viewer, job_id: UUID, request: Request) -> Response:
    """Only for a job that failed before it had a text; its page is fetched again."""
    job = requests.fetch_job(nexus.tools, nexus.queue, viewer, job_id, request_id(request), again=True)
    return answer_bare(JobOut.after_step(job, viewer))
