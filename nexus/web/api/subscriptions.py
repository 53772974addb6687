"""Subscriptions to feeds, and what they bring."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query, Request, Response

from nexus.app import App
from nexus.libraries import catalog
from nexus.media import queries
from nexus.media.feeds import outlines, requests, subscribing, subscriptions
from nexus.media.feeds.lookup import find_feed
from nexus.media.feeds.previews import ItemState, get_preview, list_previews
from nexus.web.api.schemas import Done, SubmittedOut
from nexus.web.api.subscription_schemas import (
    FeedBody,
    FeedItemPage,
    FeedItemTextOut,
    FeedPreviewOut,
    OutlinesBody,
    OutlinesOut,
    PollAskedOut,
    SubscribeBody,
    SubscriptionChangeBody,
    SubscriptionList,
    SubscriptionOut,
    TakenOut,
)
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer
from nexus.web.http.envelope import Data, answer, answers, refusals, request_id
from nexus.web.http.routing import Router
from nexus.web.http.threads import waits_for_site, waits_for_store

router = Router(prefix="/subscriptions", tags=["subscriptions"])
feeds = Router(prefix="/feeds", tags=["subscriptions"])

OfLibrary = Annotated[UUID | None, Query(description="Only those of this library.")]
Wanted = Annotated[ItemState, Query(description="`previews` were not taken in yet, `taken` were.")]
Fate = Annotated[
    Literal["keep", "remove"],
    Query(description="Whether what it has brought stays in the library."),
]


@router.get("", responses=answers(Data[SubscriptionList], 404), summary="List subscriptions")
def list_subscriptions(nexus: Nexus, viewer: Viewer, library_id: OfLibrary = None) -> Response:
    """Those of all libraries that you belong to, or of one of them, by title, with their health."""
    with nexus.sessions.read() as session:
        found = subscriptions.list_subscriptions(session, viewer, library_id)
    return answer(SubscriptionList(items=[SubscriptionOut.of(view) for view in found]))


@router.post("", responses=answers(Data[SubscriptionOut], 404, 409, 413), summary="Subscribe to a feed")
@waits_for_site
def subscribe(nexus: Nexus, viewer: Viewer, body: SubscribeBody, request: Request) -> Response:
    """The feed behind the address is looked up first, and polled for the first time soon after.

    For admins of the library. `E_NO_FEED`: there is none. `E_FEED_UNREACHABLE`: the site gives no answer.
    `E_TOO_MANY_SUBSCRIPTIONS`: you have reached the limit.
    """
    made = requests.subscribe_to_address(
        nexus.tools, nexus.queue, viewer, body.url, body.wishes(), body.library_id, request_id(request)
    )
    return _answer_one(nexus, viewer, made)


@feeds.post(
    "/preview", responses=answers(Data[FeedPreviewOut], 413), summary="Look at a feed before subscribing"
)
@waits_for_site
def preview_feed(nexus: Nexus, viewer: Viewer, body: FeedBody) -> Response:
    """What the feed behind an address is called, and its latest items. Nothing is kept."""
    found = find_feed(nexus.tools, viewer, body.url)
    return answer(FeedPreviewOut.of(found, nexus.sessions.clock()))


@feeds.get(
    "/opml",
    responses={200: {"content": {"text/x-opml": {}}, "description": "An OPML file."}, **refusals(404)},
    summary="Export subscriptions as OPML",
)
def export_opml(nexus: Nexus, viewer: Viewer, library_id: OfLibrary = None) -> Response:
    """The feeds of all libraries that you belong to, or of one of them: any feed reader imports the file."""
    with nexus.sessions.read() as session:
        name = "Nexus" if library_id is None else catalog.get_library(session, library_id, viewer).name
        found = subscriptions.list_subscriptions(session, viewer, library_id)
    headers = {"Content-Disposition": 'attachment; filename="subscriptions.opml"'}
    return Response(
        outlines.write_opml(name, found), headers=headers, media_type="text/x-opml; charset=utf-8"
    )


@feeds.post(
    "/opml", responses=answers(Data[OutlinesOut], 404, 413), summary="Subscribe to the feeds of an OPML file"
)
@waits_for_site
def import_opml(nexus: Nexus, viewer: Viewer, body: OutlinesBody, request: Request) -> Response:
    """Nested outlines are read, too. Feeds are polled one after the other; one that is not a feed is shown as failing.

    Unless you ask for more, their items wait as previews. If there are more feeds than you may subscribe to, the first
    ones are taken, and the answer names the others.
    """
    done = requests.subscribe_to_outlines(
        nexus.tools,
        nexus.queue,
        viewer,
        body.opml.encode(),
        body.wishes(),
        body.library_id,
        request_id(request),
    )
    return answer(
        OutlinesOut(
            subscription_ids=done.made, known=done.known, refused=done.refused, left_out=done.left_out
        )
    )


@router.get("/{subscription_id}", responses=answers(Data[SubscriptionOut], 404), summary="Get a subscription")
def get_subscription(nexus: Nexus, viewer: Viewer, subscription_id: UUID) -> Response:
    return _answer_one(nexus, viewer, subscription_id)


@router.patch(
    "/{subscription_id}",
    responses=answers(Data[SubscriptionOut], 404, 409, 413),
    summary="Change, pause or resume a subscription",
)
def change_subscription(
    nexus: Nexus, viewer: Viewer, subscription_id: UUID, body: SubscriptionChangeBody
) -> Response:
    """For admins of its library. `E_INVALID_STATE`: a feed that is gone can't be paused."""
    is_paused = None if body.status is None else body.status == "paused"
    with nexus.sessions.begin() as session:
        subscribing.change_subscription(session, subscription_id, viewer, body.takes_new, is_paused)
    return _answer_one(nexus, viewer, subscription_id)


@router.delete("/{subscription_id}", responses=answers(Data[Done], 404), summary="Unsubscribe")
@waits_for_store
def unsubscribe(nexus: Nexus, viewer: Viewer, subscription_id: UUID, items: Fate = "keep") -> Response:
    """For admins of its library. What it has brought stays, unless you say `items=remove`; previews go."""
    requests.unsubscribe_and_discard(
        nexus.sessions, nexus.files, subscription_id, viewer, keeps_items=items == "keep"
    )
    return answer(Done(done=True))


@router.get(
    "/{subscription_id}/items", responses=answers(Data[FeedItemPage], 404), summary="List what it has brought"
)
def list_feed_items(
    nexus: Nexus,
    viewer: Viewer,
    subscription_id: UUID,
    state: Wanted = ItemState.ALL,
    cursor: Cursor = None,
    limit: Limit = queries.PAGE,
) -> Response:
    """The latest first: previews, and items that were taken in."""
    with nexus.sessions.read() as session:
        subscriptions.get_subscription(session, subscription_id, viewer)
        page = list_previews(session, subscription_id, state, cursor, limit)
    return answer(FeedItemPage.of(page))


@router.get(
    "/{subscription_id}/items/{item_id}",
    responses=answers(Data[FeedItemTextOut], 404),
    summary="Get one of them with its text",
)
def get_feed_item(nexus: Nexus, viewer: Viewer, subscription_id: UUID, item_id: UUID) -> Response:
    """With the text that the feed carries, which may be all of it or a few words."""
    with nexus.sessions.read() as session:
        subscriptions.get_subscription(session, subscription_id, viewer)
        row, stored = get_preview(session, subscription_id, item_id)
    return answer(FeedItemTextOut.of(row, stored))


@router.post(
    "/{subscription_id}/poll", responses=answers(Data[PollAskedOut], 404, 409), summary="Poll a feed now"
)
def poll_subscription(nexus: Nexus, viewer: Viewer, subscription_id: UUID, request: Request) -> Response:
    """At most once a minute. `E_INVALID_STATE`: it is paused or gone, so resume it first."""
    asked = requests.poll_now(nexus.sessions, nexus.queue, viewer, subscription_id, request_id(request))
    return answer(PollAskedOut(asked=asked.is_due, enqueued=asked.told))


@router.post(
    "/{subscription_id}/items/{item_id}/take",
    responses=answers(Data[SubmittedOut], 404),
    summary="Take one of them in",
)
def take_feed_item(
    nexus: Nexus, viewer: Viewer, subscription_id: UUID, item_id: UUID, request: Request
) -> Response:
    """Its library gets the item. For admins of the library; it counts towards your allowance of URLs."""
    done = requests.take_preview(
        nexus.sessions,
        nexus.queue,
        nexus.tools.limits,
        viewer,
        subscription_id,
        item_id,
        request_id(request),
    )
    return answer(SubmittedOut(media_id=done.media_id, created=done.created, enqueued=done.enqueued))


@router.post(
    "/{subscription_id}/take",
    responses=answers(Data[TakenOut], 404),
    summary="Take in everything it has brought",
)
@waits_for_store
def take_feed_items(nexus: Nexus, viewer: Viewer, subscription_id: UUID) -> Response:
    """For admins of its library. The latest are taken in at once, the others after the next polls."""
    done = requests.take_all(nexus.sessions, nexus.queue, nexus.tools.limits, viewer, subscription_id)
    return answer(TakenOut(taken=done.taken, left=done.left))


def _answer_one(nexus: App, viewer: UUID, subscription_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        return answer(SubscriptionOut.of(subscriptions.get_subscription(session, subscription_id, viewer)))
