"""The library: the list of items, adding, retrying and removing one. Also the page about the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from fastapi import Form, Query, Request
from fastapi.responses import Response

from nexus import urls
from nexus.app import App
from nexus.editorial.job_lists import FailureCount
from nexus.errors import InvalidRequest as Invalid
from nexus.errors import RateLimited
from nexus.libraries import invitations
from nexus.media import files, queries, submit
from nexus.media.add import guess_kind
from nexus.media.failures import count_failed_items
from nexus.media.listing import list_items
from nexus.media.wanted import Wanted
from nexus.web.http.context import Browser, Cursor, Nexus, Operator, PageViewer, Revision
from nexus.web.http.envelope import request_id
from nexus.web.http.threads import waits_for_store
from nexus.web.views.items import FILTERS, show_item
from nexus.web.views.jobs import show_failed
from nexus.web.views.openapi import read_openapi
from nexus.web.views.render import by_htmx, changed, fragment, go, page, page_router

router = page_router()

Count = Annotated[int | None, Query(ge=0, lt=2**31)]
_NOTHING_DONE: Mapping[str, int | None] = dict.fromkeys(("retried", "removed", "refused"))
_EMPTY_FORM = {"url": "", "error": "", "done": ""}


@router.get("/")
def library(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    show: str = "all",
    cursor: Cursor = None,
    retried: Count = None,
    removed: Count = None,
    refused: Count = None,
) -> Response:
    """The counts say what became of the items that were selected on the page before."""
    done = {"retried": retried, "removed": removed, "refused": refused}
    return _library(request, nexus, viewer, show if show in FILTERS else "all", cursor, done=done)


@router.post("/items")
def add_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    url: Annotated[str, Form()] = "",
) -> Response:
    """If the address can't be added, it comes back with the reason."""
    address = urls.with_scheme(url)
    kind = guess_kind(address).value
    try:
        done = submit.url(
            nexus.sessions, nexus.queue, nexus.limits, viewer, kind, address, request_id(request)
        )
    except (Invalid, RateLimited) as error:
        form = {"url": url, "error": error.message, "done": ""}
        if by_htmx(request):
            return fragment(request, "add.html", error.status, form=form)
        return _library(request, nexus, viewer, "all", None, form, error.status)
    if not by_htmx(request):
        return go(f"/#item-{done.media_id}" if done.created else f"/items/{done.media_id}")
    said = "Added." if done.created else "This is already in your library."
    return fragment(request, "add.html", headers=changed(done.media_id), form={**_EMPTY_FORM, "done": said})


@router.get("/items/{media_id}/row")
def row(request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        view = queries.get_media(session, media_id, viewer)
    return fragment(request, "row.html", item=show_item(view, nexus.tools.extractors, viewer))


@router.get("/items/{media_id}/file")
@waits_for_store
def file(nexus: Nexus, viewer: PageViewer, media_id: UUID, revision: Revision = None) -> Response:
    link, _ = files.link_for(nexus.sessions, nexus.files, viewer, media_id, revision)
    return go(link.url)


@router.post("/items/{media_id}/retry")
def retry_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    back: Annotated[str, Form()] = "list",
) -> Response:
    submit.retry_received(nexus.sessions, nexus.queue, media_id, viewer, request_id(request))
    if by_htmx(request):
        return Response(status_code=204, headers=changed(media_id))
    return go(f"/items/{media_id}" if back == "item" else f"/#item-{media_id}")


@router.post("/items/{media_id}/delete")
@waits_for_store
def delete(nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    files.delete_media_and_files(nexus.sessions, nexus.files, viewer, media_id)
    return go("/")


@router.get("/docs")
def docs(request: Request, _: Operator, _browser: Browser) -> Response:
    """For those who may see /openapi.json, from which it is made."""
    return page(request, "docs.html", reference=read_openapi(request.app.openapi()))


def _library(
    request: Request,
    nexus: App,
    viewer: UUID,
    show: str,
    cursor: str | None,
    form: dict[str, str] = _EMPTY_FORM,
    status: int = 200,
    done: Mapping[str, int | None] = _NOTHING_DONE,
) -> Response:
    statuses = FILTERS[show][1]
    with nexus.sessions.read() as session:
        found = list_items(session, viewer, Wanted(statuses=frozenset(statuses)), cursor)
        offers = len(invitations.list_offers(session, viewer))
        failures = count_failed_items(session, viewer) if show == "failed" else {}
    return page(
        request,
        "library.html",
        status,
        form=form,
        show=show,
        statuses=statuses,
        filters=FILTERS,
        offers=offers,
        failures=[show_failed(FailureCount(code, count)) for code, count in failures.items()],
        done=done,
        items=[show_item(view, nexus.tools.extractors, viewer) for view in found.items],
        next_cursor=found.next_cursor,
    )
