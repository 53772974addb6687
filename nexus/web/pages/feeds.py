"""Feeds on pages: subscriptions with their health, a preview before subscribing, and what each has brought."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import File, Form, Query, Request, Response

from nexus import urls
from nexus.app import App
from nexus.errors import ApiError
from nexus.libraries import catalog
from nexus.libraries.access import Role
from nexus.media.feeds import outlines, requests, subscribing, subscriptions
from nexus.media.feeds.lookup import find_feed
from nexus.media.feeds.previews import ItemState, list_previews
from nexus.media.feeds.subscribing import MOST_FIRST, TAKES_FIRST, Wishes
from nexus.web.api.subscription_schemas import FeedPreviewOut
from nexus.web.http.context import Cursor, Nexus, PageViewer
from nexus.web.http.envelope import request_id
from nexus.web.http.threads import waits_for_site, waits_for_store
from nexus.web.views.feeds import show_feed_item, show_subscription
from nexus.web.views.render import go, page, page_router

router = page_router(prefix="/following")

Text = Annotated[str, Form()]
Library = Annotated[UUID | None, Form()]
Ticked = Annotated[bool, Form()]
First = Annotated[int, Form(ge=0, le=MOST_FIRST)]
#: An OPML file holds some thousand feeds.
MOST_OPML = 1024 * 1024


@router.get("")
@waits_for_site
def show_subscriptions(
    request: Request, nexus: Nexus, viewer: PageViewer, url: Annotated[str, Query(max_length=2048)] = ""
) -> Response:
    """Given an address, also what its feed is like."""
    if not url.strip():
        return _list(request, nexus, viewer)
    try:
        found = find_feed(nexus.tools, viewer, urls.with_scheme(url))
    except ApiError as error:
        return _list(request, nexus, viewer, url=url, error=error)
    return _list(request, nexus, viewer, url=url, preview=FeedPreviewOut.of(found, nexus.sessions.clock()))


@router.post("/add")
@waits_for_site
def subscribe_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    url: Text,
    library: Library = None,
    new: Ticked = False,
    first: First = TAKES_FIRST,
) -> Response:
    try:
        made = requests.subscribe_to_address(
            nexus.tools, nexus.queue, viewer, url, Wishes(new, first), library, request_id(request)
        )
    except ApiError as error:
        return _list(request, nexus, viewer, url=url, error=error)
    return go(f"/following/{made}")


@router.post("/opml")
@waits_for_site
def import_opml_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    file: Annotated[bytes, File(max_length=MOST_OPML)],
    library: Library = None,
) -> Response:
    try:
        done = requests.subscribe_to_outlines(
            nexus.tools, nexus.queue, viewer, file, Wishes(None, None), library, request_id(request)
        )
    except ApiError as error:
        return _list(request, nexus, viewer, error=error)
    return _list(request, nexus, viewer, imported=done)


@router.get("/opml")
def export_opml_on_page(nexus: Nexus, viewer: PageViewer) -> Response:
    with nexus.sessions.read() as session:
        found = subscriptions.list_subscriptions(session, viewer)
    headers = {
        "Content-Disposition": 'attachment; filename="subscriptions.opml"',
        "Cache-Control": "no-store",
    }
    return Response(
        outlines.write_opml("Nexus", found), headers=headers, media_type="text/x-opml; charset=utf-8"
    )


@router.get("/{subscription_id}")
def show_subscription_page(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    subscription_id: UUID,
    show: ItemState = ItemState.ALL,
    cursor: Cursor = None,
) -> Response:
    with nexus.sessions.read() as session:
        view = subscriptions.get_subscription(session, subscription_id, viewer)
        found = list_previews(session, subscription_id, show, cursor)
    return page(
        request,
        "feed.html",
        feed=show_subscription(view),
        show=show,
        items=[show_feed_item(row) for row in found.items],
        next_cursor=found.next_cursor,
    )


@router.post("/{subscription_id}/poll")
def poll_by_form(request: Request, nexus: Nexus, viewer: PageViewer, subscription_id: UUID) -> Response:
    requests.poll_now(nexus.sessions, nexus.queue, viewer, subscription_id, request_id(request))
    return go(f"/following/{subscription_id}")


@router.post("/{subscription_id}/change")
def change_by_form(
    nexus: Nexus,
    viewer: PageViewer,
    subscription_id: UUID,
    paused: Annotated[bool | None, Form()] = None,
    new: Annotated[bool | None, Form()] = None,
) -> Response:
    with nexus.sessions.begin() as session:
        subscribing.change_subscription(session, subscription_id, viewer, new, paused)
    return go(f"/following/{subscription_id}")


@router.post("/{subscription_id}/take")
@waits_for_store
def take_all_by_form(nexus: Nexus, viewer: PageViewer, subscription_id: UUID) -> Response:
    requests.take_all(nexus.sessions, nexus.queue, nexus.tools.limits, viewer, subscription_id)
    return go(f"/following/{subscription_id}")


@router.post("/{subscription_id}/items/{item_id}/take")
def take_by_form(
    request: Request, nexus: Nexus, viewer: PageViewer, subscription_id: UUID, item_id: UUID
) -> Response:
    requests.take_preview(
        nexus.sessions,
        nexus.queue,
        nexus.tools.limits,
        viewer,
        subscription_id,
        item_id,
        request_id(request),
    )
    return go(f"/following/{subscription_id}#taken-{item_id}")


@router.post("/{subscription_id}/unsubscribe")
@waits_for_store
def unsubscribe_by_form(
    nexus: Nexus, viewer: PageViewer, subscription_id: UUID, items: Text = "keep"
) -> Response:
    requests.unsubscribe_and_discard(
        nexus.sessions, nexus.files, subscription_id, viewer, keeps_items=items != "remove"
    )
    return go("/following")


def _list(
    request: Request,
    nexus: App,
    viewer: UUID,
    *,
    url: str = "",
    error: ApiError | None = None,
    preview: FeedPreviewOut | None = None,
    imported: outlines.SubscribedList | None = None,
) -> Response:
    with nexus.sessions.read() as session:
        found = subscriptions.list_subscriptions(session, viewer)
        libraries = [one for one in catalog.list_libraries(session, viewer) if one.role is Role.ADMIN]
    return page(
        request,
        "feeds.html",
        200 if error is None else error.status,
        feeds=[show_subscription(view) for view in found],
        libraries=libraries,
        url=url,
        problem=None if error is None else error.message,
        preview=preview,
        imported=imported,
        takes_first=TAKES_FIRST,
        most_first=MOST_FIRST,
    )
