"""Whole requests about subscriptions: what is fetched first, the verb in its transaction, and then the announcement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from nexus.db.session import Sessions
from nexus.libraries import access
from nexus.libraries.quota import Allowances
from nexus.media import deletions
from nexus.media.enqueue import maybe_enqueue_extraction
from nexus.media.feeds import outlines, previews, subscribing, taking
from nexus.media.feeds.lookup import find_feed
from nexus.media.feeds.outlines import SubscribedList
from nexus.media.feeds.polling import POLL
from nexus.media.feeds.share import require_share
from nexus.media.feeds.subscribing import Wishes
from nexus.media.files import Files
from nexus.media.submit import Submitted
from nexus.media.workbench import Tools
from nexus.queue import Queue, Work


class AskedPoll(NamedTuple):
    """Whether a feed is due now, unless it was being polled already, and whether a worker was told."""

    is_due: bool
    told: bool


class TakenItems(NamedTuple):
    """How many items were taken in, and how many more are about to be."""

    taken: int
    left: int


def subscribe_to_address(
    tools: Tools,
    queue: Queue,
    viewer: UUID,
    address: str,
    wishes: Wishes,
    library_id: UUID | None = None,
    request_id: str | None = None,
) -> UUID:
    """Look up the feed of an address, and subscribe to it. Raises as `find_feed`, `subscribe` and `require_share` do.

    A library that the viewer can't change is refused before anything is fetched.
    """
    with tools.sessions.begin() as session:
        library = library_id or access.ensure_user(session, viewer)
        access.require_admin(session, library, viewer)
    found = find_feed(tools, viewer, address)
    with tools.sessions.begin() as session:
        made = subscribing.subscribe(session, viewer, found, wishes, library, request_id)
        require_share(session, tools.subscription_share, viewer)
    announce_polls(queue, [made])
    return made


def subscribe_to_outlines(
    tools: Tools,
    queue: Queue,
    viewer: UUID,
    data: bytes,
    wishes: Wishes,
    library_id: UUID | None = None,
    request_id: str | None = None,
) -> SubscribedList:
    """Subscribe to the feeds of an OPML file. Raises as `read_opml` and `subscribe_to_all` do."""
    named = outlines.read_opml(tools, viewer, data)
    done = outlines.subscribe_to_all(tools, viewer, named, wishes, library_id, request_id)
    announce_polls(queue, done.made)
    return done


def poll_now(
    sessions: Sessions, queue: Queue, viewer: UUID, subscription_id: UUID, request_id: str | None = None
) -> AskedPoll:
    """Have a feed polled as soon as possible. Raises as `ask_for_poll` does."""
    with sessions.begin() as session:
        is_due = subscribing.ask_for_poll(session, subscription_id, viewer, request_id)
    return AskedPoll(is_due, is_due and announce_polls(queue, [subscription_id]))


def announce_polls(queue: Queue, subscription_ids: Iterable[UUID]) -> bool:
    """Tell a worker about subscriptions that are due; return whether it was told. Call it after the commit."""
    told = [queue.announce(Work(POLL, one)) for one in subscription_ids]
    return all(told)


def unsubscribe_and_discard(
    sessions: Sessions, files: Files, subscription_id: UUID, viewer: UUID, *, keeps_items: bool
) -> None:
    """End a subscription, and remove the files of items that no library holds any more."""
    with sessions.begin() as session:
        gone = subscribing.unsubscribe(session, subscription_id, viewer, keeps_items=keeps_items)
    deletions.discard_all(files, gone)


def take_preview(
    sessions: Sessions,
    queue: Queue,
    limits: Allowances,
    viewer: UUID,
    subscription_id: UUID,
    item_id: UUID,
    request_id: str | None = None,
) -> Submitted:
    """Take in one item that a subscription has brought. Raises NotFound, Forbidden for plain members, RateLimited."""
    with sessions.begin() as session:
        subscribing.require_subscription_admin(session, subscription_id, viewer)
        added = taking.take_item(session, limits, subscription_id, item_id, viewer, request_id)
    enqueued = added.due and maybe_enqueue_extraction(queue, added.kind, added.media_id)
    return Submitted(added.media_id, added.created, enqueued)


def take_all(
    sessions: Sessions, queue: Queue, limits: Allowances, viewer: UUID, subscription_id: UUID
) -> TakenItems:
    """Take in everything that a subscription has brought: the latest at once, the others after the next polls."""
    with sessions.begin() as session:
        subscribing.require_subscription_admin(session, subscription_id, viewer)
        previews.want_all(session, subscription_id)
    taken = taking.take_wanted(sessions, limits, subscription_id)
    for added in taken:
        if added.due:
            maybe_enqueue_extraction(queue, added.kind, added.media_id)
    with sessions.read() as session:
        return TakenItems(len(taken), taking.count_wanted(session, subscription_id))
