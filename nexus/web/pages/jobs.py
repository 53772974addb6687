"""The editor's pages of jobs: paste an address, watch each step, enter by hand what can't be fetched."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import Form, Query, Request
from fastapi.responses import Response

from nexus import urls
from nexus.app import App
from nexus.editorial import job_lists, requests
from nexus.editorial import queries as editorial
from nexus.editorial.requests import NewJob
from nexus.errors import Conflict, RateLimited
from nexus.errors import InvalidRequest as Invalid
from nexus.states.job import JobStatus
from nexus.web.api.job_schemas import ERROR_CODE
from nexus.web.http.context import Cursor, Nexus, PageViewer
from nexus.web.http.envelope import request_id
from nexus.web.views.jobs import PATIENCE, seconds_left, show_failed, show_job, show_job_event
from nexus.web.views.render import go, page, page_router
from nexus.web.views.stories import show_story

router = page_router()

FILTERS = {
    "all": ("All", None),
    "ready": ("Ready for a draft", JobStatus.READY_TO_GENERATE),
    "saved": ("Saved", JobStatus.SAVED),
    "failed": ("Failed", JobStatus.FAILED),
}
#: How many jobs can be ticked in a list.
MOST_SELECTED = 1000
TOO_LATE = "The text has already arrived. Send yours again to make a separate story from it."
_EMPTY = {"url": "", "title": "", "text": "", "error": ""}

Field = Annotated[str, Form()]
ErrorCode = Annotated[str, Query(pattern=f"{ERROR_CODE}|^$")]


@router.get("/admin/add-article")
def article_form(request: Request, _viewer: PageViewer) -> Response:
    return page(request, "add_article.html", form=_EMPTY)


@router.post("/admin/add-article")
def add_article(
    request: Request, nexus: Nexus, viewer: PageViewer, url: Field = "", title: Field = "", text: Field = ""
) -> Response:
    """If the article can't be added, what was typed comes back with the reason."""
    address = urls.with_scheme(url) or None
    new = NewJob(url=address)
    if title.strip() or text.strip():
        new = NewJob(url=address, title=title, text=text)
    try:
        if new == NewJob():
            raise Invalid("Paste the address of an article, or its title and text.")
        job_id = requests.create_job_and_fetch(nexus.tools, nexus.queue, viewer, new, request_id(request))
    except (Invalid, RateLimited) as error:
        form = {"url": url, "title": title, "text": text, "error": error.message}
        return page(request, "add_article.html", error.status, form=form)
    return go(f"/admin/jobs/{job_id}?draft=1")


@router.get("/admin/jobs")
def job_list(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    show: str = "all",
    error: ErrorCode = "",
    cursor: Cursor = None,
    retried: int | None = None,
    removed: int | None = None,
) -> Response:
    chosen = show if show in FILTERS else "all"
    with nexus.sessions.read() as session:
        found = job_lists.newest_jobs(
            session, viewer, status=FILTERS[chosen][1], error_code=error or None, cursor=cursor
        )
        failures = job_lists.count_failures(session, viewer)
    return page(
        request,
        "jobs.html",
        show=chosen,
        error=error,
        filters=FILTERS,
        failures=[show_failed(row) for row in failures],
        jobs=list(map(show_job, found.items)),
        next_cursor=found.next_cursor,
        retried=retried,
        removed=removed,
    )


@router.post("/admin/jobs/retry")
def job_retry_all(
    request: Request, nexus: Nexus, viewer: PageViewer, error: Annotated[str, Form(pattern=ERROR_CODE)]
) -> Response:
    begun = requests.retry_failed_jobs(nexus.tools, nexus.queue, viewer, error, request_id(request))
    return go(f"/admin/jobs?retried={len(begun)}")


@router.post("/admin/jobs/selected")
def jobs_selected(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    verb: Annotated[Literal["retry", "remove"], Form()],
    job: Annotated[list[UUID], Form(max_length=MOST_SELECTED)] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Retry or remove the jobs that are ticked in the list."""
    if not job:
        raise Invalid("Select at least one job first.")
    if verb == "remove":
        requests.remove_jobs(nexus.tools, viewer, job)
        return go(f"/admin/jobs?removed={len(job)}")
    begun = requests.retry_jobs(nexus.tools, nexus.queue, viewer, job, request_id(request))
    return go(f"/admin/jobs?retried={len(begun)}")


@router.post("/admin/jobs/{job_id}/remove")
def job_remove(nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    requests.remove_jobs(nexus.tools, viewer, [job_id])
    return go("/admin/jobs?removed=1")


@router.get("/admin/jobs/{job_id}")
def job_detail(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID, draft: int = 0) -> Response:
    """With `draft`, the page requests the draft as soon as the text has arrived."""
    return _job_page(request, nexus, viewer, job_id, goes_on=bool(draft))


@router.post("/admin/jobs/{job_id}/fetch")
def job_fetch(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    return _leave(request, nexus, viewer, job_id, JobStatus.FETCHING, again=False)


@router.post("/admin/jobs/{job_id}/retry")
def job_retry(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    return _leave(request, nexus, viewer, job_id, JobStatus.FETCHING, again=True)


@router.post("/admin/jobs/{job_id}/generate")
def job_generate(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    return _leave(request, nexus, viewer, job_id, JobStatus.GENERATING, again=False)


@router.post("/admin/jobs/{job_id}/regenerate")
def job_regenerate(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    return _leave(request, nexus, viewer, job_id, JobStatus.GENERATING, again=True)


@router.post("/admin/jobs/{job_id}/manual-entry")
def job_enter_text(
    request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID, title: Field = "", text: Field = ""
) -> Response:
    """If the text can't be used, or another one arrived first, what was typed comes back with the reason."""
    try:
        requests.enter_text(nexus.tools, viewer, job_id, title, text)
    except (Invalid, Conflict) as error:
        reason = TOO_LATE if isinstance(error, Conflict) else error.message
        form = {**_EMPTY, "title": title, "text": text, "error": reason}
        return _job_page(request, nexus, viewer, job_id, form=form, status=error.status)
    return go(f"/admin/jobs/{job_id}?draft=1")


@router.post("/items/{media_id}/draft")
def item_draft(nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    """Make a story from an item that can be read."""
    job = requests.create_job(nexus.tools, viewer, NewJob(media_id=media_id))
    return go(f"/admin/jobs/{job.id}?draft=1")


def _job_page(
    request: Request,
    nexus: App,
    viewer: UUID,
    job_id: UUID,
    *,
    goes_on: bool = False,
    form: dict[str, str] = _EMPTY,
    said: str = "",
    status: int = 200,
) -> Response:
    with nexus.sessions.read() as session:
        row = editorial.visible_job(session, job_id, viewer)
        drafts = editorial.drafts_of(session, job_id)
        events = editorial.history_of(session, job_id)
    return page(
        request,
        "job.html",
        status,
        job=show_job(row),
        seconds_left=seconds_left(row, events, nexus.sessions.clock()),
        patience=int(PATIENCE.total_seconds()),
        goes_on=goes_on,
        form=form,
        said=said,
        drafts=list(map(show_story, drafts)),
        history=[show_job_event(event, viewer) for event in events],
    )


def _leave(
    request: Request, nexus: App, viewer: UUID, job_id: UUID, step: JobStatus, *, again: bool
) -> Response:
    """Leave a step to a worker. After a fetch, the page requests the draft."""
    try:
        requests.leave_to_worker(
            nexus.tools, nexus.queue, viewer, job_id, step, request_id(request), again=again
        )
    except (Conflict, RateLimited) as error:
        # The job as it is now usually explains why: someone else, or another window, was faster.
        return _job_page(request, nexus, viewer, job_id, said=error.message, status=error.status)
    return go(f"/admin/jobs/{job_id}{'?draft=1' if step is JobStatus.FETCHING else ''}")
