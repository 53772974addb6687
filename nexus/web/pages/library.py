"""The library: the list of items, adding, retrying and removing one. Also the page about the API."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Form, Query, Request
from fastapi.responses import Response

from nexus import urls
from nexus.app import App
from nexus.command_line import in_a_new_terminal
from nexus.editorial.job_lists import FailureCount
from nexus.errors import InvalidRequest as Invalid
from nexus.errors import RateLimited
from nexus.libraries import catalog, invitations
from nexus.libraries.sizes import size_libraries
from nexus.media import deletions, file_links, queries, submit
from nexus.media.add import guess_kind
from nexus.media.failures import count_failed_items
from nexus.media.listing import list_items
from nexus.media.queries import View
from nexus.media.searching.finding import Asked, search_items
from nexus.web.http.context import Browser, Nexus, Operator, PageViewer, Revision
from nexus.web.http.envelope import request_id
from nexus.web.http.search_parameters import FoundCursor
from nexus.web.http.threads import waits_for_store
from nexus.web.views.items import show_item
from nexus.web.views.jobs import show_failed
from nexus.web.views.lists import DONE, KIND_NAMES, SORTS, TABS, BulkDone, ItemList, show_menu
from nexus.web.views.openapi import read_openapi
from nexus.web.views.render import by_htmx, changed, fragment, go, page, page_router

router = page_router()

Count = Annotated[int, Query(ge=0, lt=2**31)]
_EMPTY_FORM = {"url": "", "error": "", "done": ""}


@router.get("/")
def library(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    cursor: FoundCursor = None,
    done: str = "",
    count: Count = 0,
    refused: Count = 0,
) -> Response:
    """The counts say what became of the items that were selected on the page before."""
    told = BulkDone(DONE[done], count, refused) if done in DONE else None
    return _library(request, nexus, viewer, ItemList.asked(request.query_params), cursor, done=told)


@router.post("/items")
def add_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    url: Annotated[str, Form()] = "",
    library: Annotated[UUID | None, Form()] = None,
) -> Response:
    """If the address can't be added, it comes back with the reason."""
    address = urls.with_scheme(url)
    kind, known_as = guess_kind(address).value, request_id(request)
    shown = ItemList(library=library)
    try:
        done = submit.url(nexus.sessions, nexus.queue, nexus.limits, viewer, kind, address, known_as, library)
    except (Invalid, RateLimited) as error:
        form = {"url": url, "error": error.message, "done": ""}
        if by_htmx(request):
            return fragment(request, "add.html", error.status, form=form, target=library)
        return _library(request, nexus, viewer, shown, None, form, error.status)
    if not by_htmx(request):
        return go(f"{shown.address()}#item-{done.media_id}" if done.created else f"/items/{done.media_id}")
    said = "Added." if done.created else "This is already in your library."
    form = {**_EMPTY_FORM, "done": said}
    return fragment(request, "add.html", headers=changed(done.media_id), form=form, target=library)


@router.get("/items/{media_id}/row")
def row(request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    """A row for static/app.js. The query is that of the list; the row says whether it belongs there."""
    shown = ItemList.asked(request.query_params)
    with nexus.sessions.read() as session:
        view = queries.get_media(session, media_id, viewer)
        holders = {one.id for one in catalog.list_holding(session, media_id, viewer)}
    item, elsewhere = show_item(view, nexus.tools.extractors, viewer), not shown.fits(view, holders)
    return fragment(request, "row.html", item=item, elsewhere=elsewhere, shown=shown)


@router.get("/items/{media_id}/file")
@waits_for_store
def file(nexus: Nexus, viewer: PageViewer, media_id: UUID, revision: Revision = None) -> Response:
    link, _ = file_links.link_for(nexus.sessions, nexus.files, viewer, media_id, revision)
    return go(link.url)


@router.post("/items/{media_id}/retry")
def retry_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    back: Annotated[str, Form()] = "list",
    list_: Annotated[str, Form(alias="list")] = "",
) -> Response:
    submit.retry_received(nexus.sessions, nexus.queue, media_id, viewer, request_id(request))
    if by_htmx(request):
        return Response(status_code=204, headers=changed(media_id))
    return go(
        f"/items/{media_id}" if back == "item" else f"{ItemList.typed(list_).address()}#item-{media_id}"
    )


@router.post("/items/{media_id}/delete")
@waits_for_store
def delete(
    nexus: Nexus, viewer: PageViewer, media_id: UUID, list_: Annotated[str, Form(alias="list")] = ""
) -> Response:
    deletions.delete_media_and_files(nexus.sessions, nexus.files, viewer, media_id)
    return go(ItemList.typed(list_).address())


@router.get("/docs")
def docs(request: Request, _: Operator, _browser: Browser) -> Response:
    """For those who may see /openapi.json, from which it is made."""
    return page(request, "docs.html", reference=read_openapi(request.app.openapi()))


def _library(
    request: Request,
    nexus: App,
    viewer: UUID,
    shown: ItemList,
    cursor: str | None,
    form: dict[str, str] = _EMPTY_FORM,
    status: int = 200,
    done: BulkDone | None = None,
) -> Response:
    """Raises NotFound for a library that is not the viewer's."""
    views, next_cursor = _listed(nexus, viewer, shown, cursor)
    with nexus.sessions.read() as session:
        offers = len(invitations.list_offers(session, viewer))
        failures = count_failed_items(session, viewer, shown.library) if shown.show == "failed" else {}
        libraries = catalog.list_libraries(session, viewer)
        sizes = size_libraries(session, viewer)
    return page(
        request,
        "library.html",
        status,
        form=form,
        shown=shown,
        tabs=TABS,
        sorts=SORTS,
        kinds=KIND_NAMES,
        offers=offers,
        failures=[show_failed(FailureCount(code, count)) for code, count in failures.items()],
        done=done,
        elsewhere=False,
        add_command=_add_command(nexus, viewer),
        menu=show_menu(libraries, sizes, shown),
        items=[show_item(view, nexus.tools.extractors, viewer) for view in views],
        next_cursor=next_cursor,
    )


def _add_command(nexus: App, viewer: UUID) -> str:
    """Return what the viewer can type in a terminal: the commands act as the local owner."""
    is_owner = viewer == nexus.settings.local_owner
    return in_a_new_terminal(nexus.settings, "add https://example.com/an-article") if is_owner else ""


def _listed(nexus: App, viewer: UUID, shown: ItemList, cursor: str | None) -> tuple[list[View], str | None]:
    """Return a page of the list: what has the words, the best match first, or else all of it in its order."""
    if shown.q:
        hits = search_items(nexus.tools, viewer, Asked(shown.q, wanted=shown.wanted()), cursor)
        return [hit.view for hit in hits.items], hits.next_cursor
    with nexus.sessions.snapshot() as session:
        found = list_items(session, viewer, shown.wanted(), cursor)
    return found.items, found.next_cursor
