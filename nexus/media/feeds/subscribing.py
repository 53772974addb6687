"""Who subscribes to what. A subscription belongs to a library: its members see it, its admins change it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import (
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    null,
    select,
    update,
)

from nexus import urls
from nexus.db.feeds import episodes, feed_items, feeds, subscriptions
from nexus.db.moves import SUBSCRIPTION_ROWS, Missed, Move, log_created
from nexus.db.rows import IdRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import history, library_media
from nexus.db.upserts import upsert_returning
from nexus.errors import Conflict, InvalidRequest, InvalidState, NotFound, RateLimited
from nexus.libraries import access, audit, catalog
from nexus.libraries.audit import AuditEvent
from nexus.libraries.catalog import Gone
from nexus.media.feeds import pace
from nexus.media.feeds.lookup import FoundFeed
from nexus.media.feeds.reading import ToldFeed, told_feed
from nexus.media.feeds.subscriptions import get_subscription
from nexus.states import subscription as edges
from nexus.states.machine import Verdict
from nexus.states.subscription import POLLED

#: How many items a new subscription takes in, unless somebody says otherwise.
TAKES_FIRST = 3
MOST_FIRST = 200
#: Nobody asks a feed by hand more often than this.
LEAST_PAUSE = timedelta(seconds=60)
ALREADY = "This library has this feed already. Open its subscription instead."
NOT_POLLED = "This subscription is not polled at the moment. Resume it first."


@dataclass(frozen=True)
class Wishes:
    """What somebody wants of a subscription; None leaves it to Nexus, or as it is."""

    #: Whether new items are taken in unasked. By default those of podcasts are.
    takes_new: bool | None = None
    #: How many of the items that the feed has now are taken in.
    takes_first: int | None = None

    def __post_init__(self) -> None:
        if self.takes_first is not None and not 0 <= self.takes_first <= MOST_FIRST:
            raise InvalidRequest(f"Take in between 0 and {MOST_FIRST} items at first.")


class _SubscribedPlace(NamedTuple):
    library_id: UUID
    feed_id: UUID
    polled_at: datetime | None


class _BroughtItem(NamedTuple):
    media_id: UUID


_GET_OR_CREATE = upsert_returning(
    IdRow,
    feeds,
    {feeds.c[name]: bindparam(name) for name in ("id", "url", "is_podcast", "created_at")},
    # Locks the row of a feed that is there: nobody can remove it before it has a subscription.
    lambda new: new.on_conflict_do_update(
        index_elements=[feeds.c.url], set_={"url": new.excluded.url}
    ).returning(feeds.c.id),
)
_NEW_NAMES = (
    "id",
    "library_id",
    "feed_id",
    "created_by_user_id",
    "takes_new",
    "takes_first",
    "run_after",
    "interval_seconds",
    "created_at",
    "updated_at",
    "request_id",
)
_SUBSCRIBE = upsert_returning(
    IdRow,
    subscriptions,
    {subscriptions.c[name]: bindparam(name) for name in _NEW_NAMES},
    lambda new: new.on_conflict_do_nothing().returning(subscriptions.c.id),
)
_DESCRIBE = Statement(
    update(feeds)
    .where(feeds.c.id == bindparam("feed_id"), feeds.c.title.is_(None))
    .values({name: bindparam(name, type_=feeds.c[name].type) for name in ToldFeed._fields})
)
_PLACE = Query(
    select(subscriptions.c.library_id, subscriptions.c.feed_id, subscriptions.c.polled_at).where(
        subscriptions.c.id == bindparam("subscription_id")
    ),
    _SubscribedPlace,
)


_BROUGHT = Query(
    select(library_media.c.media_id)
    .join_from(feed_items, subscriptions, subscriptions.c.id == feed_items.c.subscription_id)
    .join(
        library_media,
        and_(
            library_media.c.library_id == subscriptions.c.library_id,
            library_media.c.media_id == feed_items.c.media_id,
            # What the library had before, or somebody added again, was not brought by the subscription.
            library_media.c.added_at == feed_items.c.taken_at,
        ),
    )
    .where(subscriptions.c.id == bindparam("subscription_id"))
    .order_by(feed_items.c.media_id),
    _BroughtItem,
)
_LOCK = Query(
    select(subscriptions.c.id).where(subscriptions.c.id == bindparam("subscription_id")).with_for_update(),
    IdRow,
)
_END = Statement(delete(subscriptions).where(subscriptions.c.id == bindparam("subscription_id")))
_FORGET_HISTORY = Statement(
    delete(history).where(
        history.c.subject == "subscription", history.c.subject_id == bindparam("subscription_id")
    )
)
#: Deleting a library deletes its subscriptions, too.
_FORGET_ENDED = Statement(
    delete(history).where(
        history.c.subject == "subscription",
        ~exists(
            select(subscriptions.c.id).where(subscriptions.c.id == history.c.subject_id).correlate(history)
        ),
    )
)
_LOCK_FEED = Query(select(feeds.c.id).where(feeds.c.id == bindparam("feed_id")).with_for_update(), IdRow)
_UNUSED = and_(
    ~exists(select(subscriptions.c.id).where(subscriptions.c.feed_id == feeds.c.id).correlate(feeds)),
    ~exists(select(episodes.c.media_id).where(episodes.c.feed_id == feeds.c.id).correlate(feeds)),
)
_REMOVE_UNUSED = Statement(delete(feeds).where(feeds.c.id == bindparam("feed_id"), _UNUSED))
_UNUSED_FEEDS = Query(
    select(feeds.c.id).where(_UNUSED).order_by(feeds.c.id).limit(literal_column("1000")), IdRow
)
_WISH = Statement(
    update(subscriptions)
    .where(subscriptions.c.id == bindparam("subscription_id"))
    .values(
        takes_new=func.coalesce(
            bindparam("takes_new", type_=subscriptions.c.takes_new.type), subscriptions.c.takes_new
        ),
        updated_at=bindparam("now"),
    )
)
_DUE_NOW = Statement(
    update(subscriptions)
    .where(subscriptions.c.id == bindparam("subscription_id"), subscriptions.c.lease_expires_at.is_(None))
    .values(run_after=bindparam("now"), tries=literal_column("0"), request_id=bindparam("request_id"))
)
_PAUSE = Move(SUBSCRIPTION_ROWS, edges.PAUSE, sets={"lease_expires_at": null()})
_RESUME = Move(
    SUBSCRIPTION_ROWS,
    edges.RESUME,
    sets={
        "failures": literal_column("0"),
        "error_code": null(),
        "error_message": null(),
        "tries": literal_column("0"),
        "run_after": bindparam("now"),
    },
)


def subscribe(
    session: Session,
    viewer: UUID,
    found: FoundFeed,
    wishes: Wishes,
    library_id: UUID | None = None,
    request_id: str | None = None,
) -> UUID:
    """Subscribe a library to a feed that was looked up, by default the viewer's default library. Returns the id.

    Raises NotFound, Forbidden for a plain member, Conflict if the library has the feed already.
    """
    about = told_feed(found.reading)
    takes_new = about.is_podcast if wishes.takes_new is None else wishes.takes_new
    takes_first = wishes.takes_first
    if takes_first is None:
        takes_first = TAKES_FIRST if takes_new else 0
    made = subscribe_unseen(
        session, viewer, found.url, Wishes(takes_new, takes_first), library_id, request_id
    )
    if made is None:
        raise Conflict(ALREADY)
    subscription_id, feed_id = made
    session.run(_DESCRIBE, feed_id=feed_id, **about._asdict())
    return subscription_id


class NewSubscription(NamedTuple):
    id: UUID
    feed_id: UUID


def subscribe_unseen(
    session: Session,
    viewer: UUID,
    url: str,
    wishes: Wishes,
    library_id: UUID | None = None,
    request_id: str | None = None,
) -> NewSubscription | None:
    """Subscribe to an address that nobody has looked at. None if the library has the feed already."""
    default = access.ensure_user(session, viewer)
    library = library_id or default
    access.require_admin(session, library, viewer)
    access.keep_library(session, library)
    feed_id, subscription_id = hold_feed(session, url), uuid4()
    made = session.first(
        _SUBSCRIBE,
        id=subscription_id,
        library_id=library,
        feed_id=feed_id,
        created_by_user_id=viewer,
        takes_new=bool(wishes.takes_new),
        takes_first=wishes.takes_first or 0,
        run_after=session.now,
        interval_seconds=pace.FIRST,
        created_at=session.now,
        updated_at=session.now,
        request_id=request_id,
    )
    if made is None:
        return None
    log_created(session, SUBSCRIPTION_ROWS, subscription_id, actor=str(viewer))
    audit.record(
        session,
        AuditEvent.SUBSCRIBED,
        viewer,
        library_id=library,
        subject_id=subscription_id,
        about=urls.host_of(url),
    )
    return NewSubscription(subscription_id, feed_id)


def hold_feed(session: Session, url: str, *, is_podcast: bool = False) -> UUID:
    """Return the feed at an address, locked against removal; it is made if there is none."""
    (feed,) = session.all(_GET_OR_CREATE, id=uuid4(), url=url, is_podcast=is_podcast, created_at=session.now)
    return feed.id


def require_subscription_admin(session: Session, subscription_id: UUID, viewer: UUID) -> UUID:
    """Return its library. Raises NotFound for strangers, Forbidden for plain members of its library."""
    place = session.first(_PLACE, subscription_id=subscription_id)
    if place is None:
        raise NotFound
    access.require_admin(session, place.library_id, viewer)
    return place.library_id


def change_subscription(
    session: Session,
    subscription_id: UUID,
    viewer: UUID,
    takes_new: bool | None = None,
    is_paused: bool | None = None,
) -> None:
    """Change what is taken in, pause or resume. Raises NotFound, or Forbidden for plain members."""
    access.keep_library(session, require_subscription_admin(session, subscription_id, viewer))
    session.run(_WISH, subscription_id=subscription_id, takes_new=takes_new, now=session.now)
    if is_paused is not None:
        move = _PAUSE if is_paused else _RESUME
        moved = move(session, subscription_id, actor=str(viewer))
        if isinstance(moved, Missed) and moved.verdict is Verdict.REFUSE:
            raise InvalidState("This feed is gone. Resume it to check whether it is back, or unsubscribe.")


def ask_for_poll(
    session: Session, subscription_id: UUID, viewer: UUID, request_id: str | None = None
) -> bool:
    """Make a subscription due now; False if it is being polled already.

    Raises NotFound, InvalidState if it is not polled at all, RateLimited if it was polled a moment ago.
    """
    found = get_subscription(session, subscription_id, viewer)
    if found.status not in POLLED:
        raise InvalidState(NOT_POLLED)
    if found.polled_at is not None and session.now - found.polled_at < LEAST_PAUSE:
        left = LEAST_PAUSE - (session.now - found.polled_at)
        raise RateLimited(
            "This feed was polled less than a minute ago. Wait a moment, then try again.",
            int(left.total_seconds()) + 1,
        )
    given = {"subscription_id": subscription_id, "now": session.now, "request_id": request_id}
    return session.run(_DUE_NOW, **given) > 0


def unsubscribe(session: Session, subscription_id: UUID, viewer: UUID, *, keeps_items: bool) -> list[Gone]:
    """End a subscription. What it has brought stays in the library, or leaves it.

    Returns the deleted items: once this is committed, their files have to be removed from storage. Raises NotFound, or
    Forbidden for plain members.
    """
    library_id = require_subscription_admin(session, subscription_id, viewer)
    access.keep_library(session, library_id)
    found = get_subscription(session, subscription_id, viewer)
    place = session.first(_PLACE, subscription_id=subscription_id)
    # What a poll takes in, it takes in before this, or not at all.
    if place is None or session.first(_LOCK, subscription_id=subscription_id) is None:
        raise NotFound
    brought = [] if keeps_items else session.all(_BROUGHT, subscription_id=subscription_id)
    session.run(_END, subscription_id=subscription_id)
    session.run(_FORGET_HISTORY, subscription_id=subscription_id)
    gone = [
        each for one in brought for each in catalog.remove_media(session, library_id, one.media_id, viewer)
    ]
    remove_feed_if_unused(session, place.feed_id)
    audit.record(
        session,
        AuditEvent.UNSUBSCRIBED,
        viewer,
        library_id=library_id,
        subject_id=subscription_id,
        about=urls.host_of(found.url),
    )
    return gone


def remove_feed_if_unused(session: Session, feed_id: UUID) -> bool:
    """Remove a feed that has neither subscriptions nor episodes; return whether it is gone."""
    session.first(_LOCK_FEED, feed_id=feed_id)
    return session.run(_REMOVE_UNUSED, feed_id=feed_id) > 0


def unused_feeds(session: Session) -> list[UUID]:
    """List feeds that can be removed."""
    return [row.id for row in session.all(_UNUSED_FEEDS)]


def forget_ended(session: Session) -> int:
    """Remove the history of subscriptions that are gone; return how many rows that were."""
    return session.run(_FORGET_ENDED)
