"""Takes items of feeds into the library, as episodes, videos or articles."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, func, literal_column, null, select, update

from nexus.db.feeds import feed_items, feeds, subscriptions
from nexus.db.rows import FeedItemRow, FeedRow, IdRow
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import media
from nexus.errors import Conflict, InvalidRequest, InvalidUrl, NotFound, RateLimited
from nexus.libraries import access, quota
from nexus.libraries.catalog import hold_media
from nexus.libraries.quota import Allowances, Operation
from nexus.media.add import Added, get_or_create_media, guess_kind, identify_url
from nexus.media.addresses import Known, find_by_other_address
from nexus.media.feeds.episodes import get_or_create_episode
from nexus.media.lifecycle import reset_failed
from nexus.states.media import Kind, MediaStatus

#: How many are taken in after one poll, or by one request. The others follow after the next poll.
MOST_AT_ONCE = 200
NOTHING_TO_OPEN = "This item has neither an address nor a file to play, so there is nothing to take in."


class _SubscribedLibrary(NamedTuple):
    """The part of a subscription that decides where an item goes, and in whose name."""

    library_id: UUID
    feed_id: UUID
    user_id: UUID


class _WantedItems(NamedTuple):
    """How many items wait to be taken in."""

    wanted: int


_OF_SUBSCRIPTION = feed_items.c.subscription_id == bindparam("subscription_id")
_SUBSCRIPTION = select(
    subscriptions.c.library_id,
    subscriptions.c.feed_id,
    subscriptions.c.created_by_user_id.label("user_id"),
).where(subscriptions.c.id == bindparam("subscription_id"))
_LOOK = Query(_SUBSCRIPTION, _SubscribedLibrary)
_LOCK = Query(_SUBSCRIPTION.with_for_update(), _SubscribedLibrary)
_FEED = Query(select(feeds).where(feeds.c.id == bindparam("feed_id")), FeedRow)
_ITEM = Query(
    select(feed_items)
    .where(_OF_SUBSCRIPTION, feed_items.c.id == bindparam("item_id", type_=feed_items.c.id.type))
    .with_for_update(),
    FeedItemRow,
)
_KNOWN = Query(
    select(media.c.id, media.c.processing_status, media.c.run_after)
    .where(media.c.id == bindparam("media_id"))
    .with_for_update(key_share=True),
    Known,
)
_NEXT = Query(
    select(feed_items.c.id)
    .where(_OF_SUBSCRIPTION, feed_items.c.wanted_at.is_not(None))
    .order_by(feed_items.c.shown_at.desc(), feed_items.c.id)
    .limit(literal_column("1")),
    IdRow,
)
_WANTED = Query(
    select(func.count().label("wanted")).where(_OF_SUBSCRIPTION, feed_items.c.wanted_at.is_not(None)),
    _WantedItems,
)
_TAKEN = Statement(
    update(feed_items)
    .where(feed_items.c.id == bindparam("item_id", type_=feed_items.c.id.type))
    .values(media_id=bindparam("media_id"), taken_at=bindparam("now"), wanted_at=null())
)
_UNWANTED = Statement(
    update(feed_items)
    .where(feed_items.c.id == bindparam("item_id", type_=feed_items.c.id.type))
    .values(wanted_at=null())
)


def may_be_taken(is_podcast: bool, url: str | None, enclosure_url: str | None) -> Kind | None:
    """Return what an item of a feed becomes; None if there is nothing to open."""
    if enclosure_url is not None and (is_podcast or url is None):
        return Kind.PODCAST_EPISODE
    if url is None:
        return None
    kind = guess_kind(url)
    try:
        identify_url(kind, url)
    except InvalidUrl:
        return None
    return kind


def take_item(
    session: Session,
    limits: Allowances,
    subscription_id: UUID,
    item_id: UUID,
    user_id: UUID | None = None,
    request_id: str | None = None,
) -> Added:
    """Take in one item of a feed, in the name and on the allowance of the user or, without one, of the subscriber.

    An item that was taken in before, and is still there, is returned as it is. Raises NotFound, RateLimited, or
    InvalidRequest if there is nothing to open.
    """
    # Libraries are locked before subscriptions, and those before items.
    looked = session.first(_LOOK, subscription_id=subscription_id)
    if looked is None:
        raise NotFound
    access.keep_library(session, looked.library_id)
    holder = session.first(_LOCK, subscription_id=subscription_id)
    item = session.first(_ITEM, subscription_id=subscription_id, item_id=item_id)
    if holder is None or item is None:
        raise NotFound
    (feed,) = session.all(_FEED, feed_id=holder.feed_id)
    kind = may_be_taken(feed.is_podcast, item.url, item.enclosure_url)
    if kind is None:
        raise InvalidRequest(NOTHING_TO_OPEN)
    taker = user_id or holder.user_id
    known, created = _media(session, feed, item, kind, taker, holder.library_id, request_id)
    is_new = created or not access.can_read(session, known.id, taker)
    hold_media(session, holder.library_id, known.id)
    if is_new:
        quota.require_quota(session, limits, taker, Operation.INGEST_URLS, 1)
        quota.record_usage(session, taker, Operation.INGEST_URLS, 1, known.id)
    if is_new or item.media_id != known.id:
        session.run(_TAKEN, item_id=item.id, media_id=known.id, now=session.now)
    status, run_after = known.processing_status, known.run_after
    if user_id is not None and status is MediaStatus.FAILED:
        again = reset_failed(session, known.id, user_id, request_id)
        status, run_after = again.processing_status, again.run_after
    return Added(known.id, kind, is_new, status is MediaStatus.PENDING and run_after <= session.now)


def take_wanted(
    sessions: Sessions, limits: Allowances, subscription_id: UUID, most: int = MOST_AT_ONCE
) -> list[Added]:
    """Take in what is wanted, the latest first, each in a transaction of its own: no two of these lock items in a
    different order. What exceeds the allowance waits for the next time."""
    taken: list[Added] = []
    while len(taken) < most:
        try:
            added = _take_next(sessions, limits, subscription_id)
        except (RateLimited, NotFound, Conflict):
            break
        if added is None:
            break
        taken.append(added)
    return taken


def _take_next(sessions: Sessions, limits: Allowances, subscription_id: UUID) -> Added | None:
    """None if nothing is wanted. What can't be taken in is no longer wanted."""
    while True:
        with sessions.begin() as session:
            chosen = session.first(_NEXT, subscription_id=subscription_id)
            if chosen is None:
                return None
            try:
                return take_item(session, limits, subscription_id, chosen.id)
            except InvalidRequest:
                session.run(_UNWANTED, item_id=chosen.id)


def count_wanted(session: Session, subscription_id: UUID) -> int:
    (found,) = session.all(_WANTED, subscription_id=subscription_id)
    return found.wanted


def _media(
    session: Session,
    feed: FeedRow,
    item: FeedItemRow,
    kind: Kind,
    taker: UUID,
    library_id: UUID,
    request_id: str | None,
) -> tuple[Known, bool]:
    taken_before = item.media_id and session.first(_KNOWN, media_id=item.media_id)
    if taken_before:
        return taken_before, False
    if kind is Kind.PODCAST_EPISODE:
        return get_or_create_episode(session, feed, item, taker, request_id)
    source = identify_url(kind, item.url or "")
    # Other addresses of what somebody has are theirs alone: they say nothing to a library that others share.
    if access.default_library(session, taker) == library_id:
        found = find_by_other_address(session, taker, kind, source.canonical_url)
        if found is not None:
            return found, False
    return get_or_create_media(session, taker, kind, source, request_id)
