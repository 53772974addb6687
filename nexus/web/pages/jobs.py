"""The editor's pages of jobs: paste an address, watch each step, enter by hand what can't be fetched."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from nexus.app import App
from nexus.editorial import drafts as drafting
from nexus.editorial import editing, jobs
from nexus.editorial import queries as desk
from nexus.errors import ApiError, Conflict, RateLimited
from nexus.errors import InvalidRequest as Invalid
from nexus.libraries import access
from nexus.states.job import Status
from nexus.web.api.job_schemas import ERROR_CODE
from nexus.web.http.context import Cursor, Nexus, PageViewer
from nexus.web.http.envelope import PAGE, request_id
from nexus.web.views import desk as desk_looks
from nexus.web.views.render import go, page

router = APIRouter(tags=[PAGE], include_in_schema=False)

FILTERS = {
    "all": ("All", None),
    "ready": ("Ready for a draft", Status.READY_TO_GENERATE),
    "saved": ("Saved", Status.SAVED),
    "failed": ("Failed", Status.FAILED),
}
TOO_LATE = "Its text is there already. Send yours once more, and it becomes a story of its own."
_EMPTY = {"url": "", "title": "", "text": "", "error": ""}

Field = Annotated[str, Form()]
ErrorCode = Annotated[str, Query(pattern=f"{ERROR_CODE}|^$")]


@router.get("/admin/add-article")
def new_article(request: Request, _viewer: PageViewer) -> Response:
    return page(request, "add_article.html", form=_EMPTY)


@router.post("/admin/add-article")
def add_article(
    request: Request, nexus: Nexus, viewer: PageViewer, url: Field = "", title: Field = "", text: Field = ""
) -> Response:
    """What was typed comes back with the reason where it can't be taken in."""
    by_hand = bool(title.strip() or text.strip())
    try:
        if not by_hand and not url.strip():
            raise Invalid("Paste the address of an article, or its title and text.")
        with nexus.sessions.begin() as session:
            library = access.ensure_user(session, viewer)
            job_id = jobs.create(session, viewer, library, url.strip() or None, nexus.limits)
            if by_hand:
                jobs.enter(session, job_id, title, text, str(viewer))
    except (Invalid, RateLimited) as error:
        form = {"url": url, "title": title, "text": text, "error": error.message}
        return page(request, "add_article.html", error.status, form=form)
    if not by_hand:
        editing.leave_fetch(nexus.tools, job_id, str(viewer))
        nexus.queue.announce(job_id, request_id(request))
    return go(f"/admin/jobs/{job_id}?draft=1")


@router.get("/admin/jobs")
def all_jobs(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    show: str = "all",
    error: ErrorCode = "",
    cursor: Cursor = None,
    retried: int | None = None,
) -> Response:
    chosen = show if show in FILTERS else "all"
    with nexus.sessions.read() as session:
        found = desk.newest(
            session, viewer, status=FILTERS[chosen][1], error_code=error or None, cursor=cursor
        )
        failures = desk.errors(session, viewer)
    return page(
        request,
        "jobs.html",
        show=chosen,
        error=error,
        filters=FILTERS,
        failures=list(map(desk_looks.failures, failures)),
        jobs=list(map(desk_looks.job, found.items)),
        next_cursor=found.next_cursor,
        retried=retried,
    )


@router.post("/admin/jobs/retry")
def retry_all(
    request: Request, nexus: Nexus, viewer: PageViewer, error: Annotated[str, Form(pattern=ERROR_CODE)]
) -> Response:
    begun = editing.leave_all_failed(nexus.tools, nexus.limits, viewer, error)
    for job_id in begun:
        nexus.queue.announce(job_id, request_id(request))
    return go(f"/admin/jobs?retried={len(begun)}")


@router.get("/admin/jobs/{job_id}")
def one_job(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID, draft: int = 0) -> Response:
    """With `draft`, the draft is begun by the page as soon as the text is there."""
    return _page(request, nexus, viewer, job_id, goes_on=bool(draft))


@router.post("/admin/jobs/{job_id}/fetch")
def fetch(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    return _left(request, nexus, viewer, job_id, again=False)


@router.post("/admin/jobs/{job_id}/retry")
def retry(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    return _left(request, nexus, viewer, job_id, again=True)


@router.post("/admin/jobs/{job_id}/generate")
def generate(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    return _drafted(request, nexus, viewer, job_id, again=False)


@router.post("/admin/jobs/{job_id}/regenerate")
def regenerate(request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID) -> Response:
    return _drafted(request, nexus, viewer, job_id, again=True)


@router.post("/admin/jobs/{job_id}/manual-entry")
def enter(
    request: Request, nexus: Nexus, viewer: PageViewer, job_id: UUID, title: Field = "", text: Field = ""
) -> Response:
    """What was typed comes back with the reason, also where a text came in before it."""
    _require(nexus, viewer, job_id)
    try:
        with nexus.sessions.begin() as session:
            if jobs.enter(session, job_id, title, text, str(viewer)) is not None:
                raise Conflict(TOO_LATE)
    except (Invalid, Conflict) as error:
        form = {**_EMPTY, "title": title, "text": text, "error": error.message}
        return _page(request, nexus, viewer, job_id, form=form, status=error.status)
    return go(f"/admin/jobs/{job_id}?draft=1")


@router.post("/items/{media_id}/draft")
def adopt(nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    """A story of something that can be read."""
    with nexus.sessions.begin() as session:
        job_id = drafting.adopt(session, viewer, access.ensure_user(session, viewer), media_id)
    return go(f"/admin/jobs/{job_id}?draft=1")


def _page(
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
        row = desk.find(session, job_id, viewer)
        drafts = desk.drafts(session, job_id)
        events = desk.what_happened(session, job_id)
    return page(
        request,
        "job.html",
        status,
        job=desk_looks.job(row),
        seconds_left=desk_looks.seconds_left(row, events, nexus.sessions.clock()),
        patience=int(desk_looks.PATIENCE.total_seconds()),
        goes_on=goes_on,
        form=form,
        said=said,
        drafts=list(map(desk_looks.story, drafts)),
        history=[desk_looks.moment(event, viewer) for event in events],
    )


def _require(nexus: App, viewer: UUID, job_id: UUID) -> None:
    with nexus.sessions.read() as session:
        desk.find(session, job_id, viewer)


def _left(request: Request, nexus: App, viewer: UUID, job_id: UUID, *, again: bool) -> Response:
    _require(nexus, viewer, job_id)
    try:
        editing.leave_fetch(nexus.tools, job_id, str(viewer), again=again)
    except Conflict as error:
        return _refused(request, nexus, viewer, job_id, error)
    nexus.queue.announce(job_id, request_id(request))
    return go(f"/admin/jobs/{job_id}?draft=1")


def _drafted(request: Request, nexus: App, viewer: UUID, job_id: UUID, *, again: bool) -> Response:
    _require(nexus, viewer, job_id)
    try:
        drafting.begin(nexus.tools, nexus.limits, job_id, viewer, again=again)
    except (Conflict, RateLimited) as error:
        return _refused(request, nexus, viewer, job_id, error)
    nexus.queue.announce(job_id, request_id(request))
    return go(f"/admin/jobs/{job_id}")


def _refused(request: Request, nexus: App, viewer: UUID, job_id: UUID, error: ApiError) -> Response:
    """The job as it is now, which is most often why: somebody else, or another window, was quicker."""
    return _page(request, nexus, viewer, job_id, said=error.message, status=error.status)
