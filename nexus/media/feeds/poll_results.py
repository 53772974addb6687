"""Writes what came of a poll, under its fence: what is new, and where the feed stands now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, case, exists, literal_column, null, or_, select, update

from nexus import urls
from nexus.db.feeds import POLL_WAITING, episodes, feed_items, feeds, subscriptions
from nexus.db.moves import SUBSCRIPTION_ROWS, Move
from nexus.db.rows import FeedItemRow, FeedRow, IdRow, SubscriptionRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import memberships
from nexus.errors import FeedGone, InvalidUrl, NotFound, WorkError
from nexus.libraries import access, catalog
from nexus.libraries.access import Role
from nexus.media.feeds import arrivals, pace
from nexus.media.feeds.episodes import update_episode
from nexus.media.feeds.reading import FeedAnswer, NothingNew, ToldFeed, ToldItem, told_feed, told_items
from nexus.media.feeds.subscribing import hold_feed
from nexus.states import subscription as edges
from nexus.states.subscription import SubscriptionStatus
from nexus.work.backlog import Backlog
from nexus.work.errands import Errands, held_by
from nexus.work.handler import WORKER, Hold

BACKLOG = Backlog(
    subscriptions,
    key=subscriptions.c.id,
    fence=subscriptions.c.attempt,
    user=subscriptions.c.created_by_user_id,
    waiting=POLL_WAITING,
)
ERRANDS = Errands(BACKLOG, SubscriptionRow)
#: After this many failures in a row a subscription is failing.
FEW = 3


@dataclass(frozen=True)
class CheckedFeed:
    """What a feed says, made fit for the database before a transaction is open."""

    answer: FeedAnswer
    about: ToldFeed
    items: list[ToldItem]

    @classmethod
    def of(cls, answer: FeedAnswer, now: datetime) -> CheckedFeed:
        items = told_items(answer.reading, now, urls.host_of(answer.url))
        return cls(answer, told_feed(answer.reading), items)


@dataclass(frozen=True)
class DueFeed:
    """A subscription that is polled, and the address of its feed."""

    row: SubscriptionRow
    url: str
    #: Whether items wait to be taken in.
    has_wanted: bool
    #: Whether the one who subscribed is still in the library.
    is_there: bool

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the poll itself is to be written if the feed has nothing new."""
        return self.is_there and self.row.status is SubscriptionStatus.ACTIVE


class _Admin(NamedTuple):
    user_id: UUID


class WrittenPoll(NamedTuple):
    """What a poll has come to, and whether there are items to take in before its lease is let go."""

    outcome: str
    has_wanted: bool
    run_after: datetime


def _given(name: str) -> ColumnElement[Any]:
    return bindparam(name, type_=subscriptions.c[name].type)


_NOW = bindparam("now", type_=subscriptions.c.polled_at.type)
#: With items to take in, the poll is not over, and is tried again if its worker is lost.
_GOES_ON = bindparam("keeps", type_=feeds.c.is_podcast.type)
_POLLED = {
    "tries": case((_GOES_ON, subscriptions.c.tries), else_=literal_column("0")),
    "polled_at": _NOW,
    "updated_at": _NOW,
    "run_after": _given("run_after"),
    "lease_expires_at": case((_GOES_ON, subscriptions.c.lease_expires_at)),
}
_SUCCEEDED = {
    **_POLLED,
    "succeeded_at": _NOW,
    "failures": literal_column("0"),
    "error_code": null(),
    "error_message": null(),
    "interval_seconds": _given("interval_seconds"),
}
_NOTHING_NEW = Statement(update(subscriptions).where(*ERRANDS.held).values(_SUCCEEDED))
_READ = Statement(
    update(subscriptions)
    .where(*ERRANDS.held)
    .values(
        {
            **_SUCCEEDED,
            "etag": _given("etag"),
            "last_modified": _given("last_modified"),
            "brought_at": case(
                (bindparam("brought", type_=feeds.c.is_podcast.type), _NOW), else_=subscriptions.c.brought_at
            ),
        }
    )
)
_FAILED = Statement(
    update(subscriptions)
    .where(*ERRANDS.held)
    .values({**_POLLED, **{name: _given(name) for name in ("failures", "error_code", "error_message")}})
)
_LET_GO = Statement(
    update(subscriptions)
    .where(*ERRANDS.held)
    .values(lease_expires_at=null(), tries=literal_column("0"), run_after=_given("run_after"))
)
_TROUBLE = Move(SUBSCRIPTION_ROWS, edges.TROUBLE, sets={}, fenced=True)
_RECOVER = Move(SUBSCRIPTION_ROWS, edges.RECOVER, sets={}, fenced=True)
_VANISH = Move(SUBSCRIPTION_ROWS, edges.VANISH, sets={}, fenced=True)

_ADMIN = Query(
    select(memberships.c.user_id)
    .join(subscriptions, subscriptions.c.library_id == memberships.c.library_id)
    .where(subscriptions.c.id == bindparam("row_id"), memberships.c.role == Role.ADMIN.value)
    .order_by(memberships.c.created_at, memberships.c.user_id)
    .limit(literal_column("1")),
    _Admin,
)
_INHERIT = Statement(
    update(subscriptions)
    .where(subscriptions.c.id == bindparam("row_id"))
    .values(created_by_user_id=bindparam("user_id"))
)
_FEED = Query(
    select(feeds)
    .join(subscriptions, subscriptions.c.feed_id == feeds.c.id)
    .where(subscriptions.c.id == bindparam("row_id")),
    FeedRow,
)
_DESCRIBE = Statement(
    update(feeds)
    .where(feeds.c.id == bindparam("feed_id"))
    .values({name: bindparam(name, type_=feeds.c[name].type) for name in ToldFeed._fields})
)
_other = feeds.alias("other")
#: An episode that is being made holds its feed: it is there once this has the feed.
_LOCK_FEED = Query(select(feeds.c.id).where(feeds.c.id == bindparam("feed_id")).with_for_update(), IdRow)
#: A feed that has episodes or other subscriptions stays at its address: those who subscribe to the new one must not get
#: what the old one has told, because anybody can redirect to a podcast of others. That an address is now asked by https
#: changes nothing.
_MOVE = Statement(
    update(feeds)
    .where(
        feeds.c.id == bindparam("feed_id"),
        feeds.c.url == bindparam("from_url"),
        or_(
            bindparam("is_same", type_=feeds.c.is_podcast.type),
            and_(
                ~exists(select(episodes.c.media_id).where(episodes.c.feed_id == feeds.c.id).correlate(feeds)),
                ~exists(
                    select(subscriptions.c.id)
                    .where(subscriptions.c.feed_id == feeds.c.id, subscriptions.c.id != bindparam("row_id"))
                    .correlate(feeds)
                ),
            ),
        ),
        ~exists(select(_other.c.id).where(_other.c.url == bindparam("to_url"))),
    )
    .values(url=bindparam("to_url"))
)
_twin = subscriptions.alias("twin")
#: The subscription goes to the feed at the new address, unless its library has that one, too. What is known of the old
#: one says nothing about the new one.
_FOLLOW = Statement(
    update(subscriptions)
    .where(
        subscriptions.c.id == bindparam("row_id"),
        ~exists(
            select(_twin.c.id).where(
                _twin.c.library_id == subscriptions.c.library_id, _twin.c.feed_id == bindparam("to_feed")
            )
        ),
    )
    .values(feed_id=bindparam("to_feed"), etag=null(), last_modified=null())
)
#: What the old address told and the new one does not is no episode of the new one. Read again, it looks as if it had
#: changed.
_FORGET_SOUND = Statement(
    update(feed_items)
    .where(feed_items.c.id == bindparam("item_id", type_=feed_items.c.id.type))
    .values(enclosure_url=null(), wanted_at=null(), digest=literal_column("''"))
)
_EPISODES = Query(
    select(feed_items).where(
        feed_items.c.id == bindparam("item_id", type_=feed_items.c.id.type),
        feed_items.c.media_id.is_not(None),
    ),
    FeedItemRow,
)


def write_poll(
    session: Session, hold: Hold, due: DueFeed, result: CheckedFeed | NothingNew | WorkError
) -> WrittenPoll | None:
    """Write what came of a poll; None if it is no longer the present one.

    Libraries are locked before subscriptions, and those before items. A row that is updated twice needs its library as
    well: then PostgreSQL looks whether that is still there.
    """
    if not (due.is_plain and isinstance(result, NothingNew)):
        try:
            access.keep_library(session, due.row.library_id)
        except NotFound:
            return None
    written = _write_result(session, hold, due, result)
    if written is not None and not due.is_there:
        _inherit(session, due.row.id)
    return written


def _write_result(
    session: Session, hold: Hold, due: DueFeed, result: CheckedFeed | NothingNew | WorkError
) -> WrittenPoll | None:
    if isinstance(result, WorkError):
        return write_failure(session, hold, due, result)
    if isinstance(result, NothingNew):
        written = _write_nothing_new(session, hold, due)
    else:
        written = _write_reading(session, hold, due, result)
    if written is not None and due.row.status is SubscriptionStatus.FAILING:
        _RECOVER(session, due.row.id, actor=WORKER, fence=hold.attempt)
    return written


def _inherit(session: Session, subscription_id: UUID) -> None:
    """The subscriber has left the library: the subscription continues in the name of its oldest admin, on their
    allowance."""
    admin = session.first(_ADMIN, row_id=subscription_id)
    if admin is not None:
        session.run(_INHERIT, row_id=subscription_id, user_id=admin.user_id)


def let_go_of_poll(session: Session, hold: Hold, run_after: datetime) -> None:
    """End a poll whose items are taken in."""
    session.run(_LET_GO, run_after=run_after, **held_by(hold))


def write_failure(session: Session, hold: Hold, due: DueFeed, error: WorkError) -> WrittenPoll | None:
    """Write why a poll brought nothing. A few of those in a row, and the subscription is failing."""
    row, failures = due.row, due.row.failures + 1
    run_after = session.now + pace.wait_after_failure(row.interval_seconds, failures, error.retry_after)
    values = {
        "failures": failures,
        "error_code": error.code,
        "error_message": error.message,
        "run_after": run_after,
        "keeps": due.has_wanted,
    }
    if session.run(_FAILED, now=session.now, **values, **held_by(hold)) == 0:
        return None
    move = _VANISH if isinstance(error, FeedGone) else _TROUBLE if failures >= FEW else None
    if move is not None:
        move(session, row.id, actor=WORKER, error_code=error.code, fence=hold.attempt)
    return WrittenPoll(f"failed: {error.code}", due.has_wanted, run_after)


def _write_nothing_new(session: Session, hold: Hold, due: DueFeed) -> WrittenPoll | None:
    row = due.row
    interval = pace.next_interval(row.interval_seconds, brought=False, asked=None)
    run_after = session.now + pace.with_jitter(interval)
    values = {"interval_seconds": interval, "run_after": run_after, "keeps": due.has_wanted}
    if session.run(_NOTHING_NEW, now=session.now, **values, **held_by(hold)) == 0:
        return None
    return WrittenPoll("unchanged", due.has_wanted, run_after)


def _write_reading(session: Session, hold: Hold, due: DueFeed, result: CheckedFeed) -> WrittenPoll | None:
    row, now = due.row, session.now
    answer, about = result.answer, result.about
    arrived = arrivals.sort_out(arrivals.known_items(session, row.id), result.items)
    wanted = _wanted(row, arrived, is_podcast=about.is_podcast)
    interval = pace.next_interval(
        row.interval_seconds,
        brought=bool(arrived.new) and row.succeeded_at is not None,
        asked=answer.reading.pace_seconds,
    )
    run_after, has_wanted = now + pace.with_jitter(interval), due.has_wanted or bool(wanted)
    is_direct = answer.url in {due.url, answer.moved_to}
    values = {
        "interval_seconds": interval,
        "run_after": run_after,
        "keeps": has_wanted,
        "brought": bool(arrived.new),
        "etag": answer.etag if is_direct else None,
        "last_modified": answer.last_modified if is_direct else None,
    }
    if session.run(_READ, now=now, **values, **held_by(hold)) == 0:
        return None
    if _follow(session, due, answer.moved_to):
        session.run_many(_FORGET_SOUND, [{"item_id": item_id} for item_id in arrived.missing])
    _describe(session, row, about, has_items=bool(result.items))
    taken = {key.media_id: key.id for key, _ in arrived.changed if key.media_id is not None}
    present = [taken[media_id] for media_id in sorted(taken) if catalog.lock_media(session, media_id)]
    arrivals.write_arrivals(session, row.id, arrived, wanted)
    _update_episodes(session, row, present)
    return WrittenPoll(f"{len(arrived.new)} new", has_wanted, run_after)


def _wanted(row: SubscriptionRow, arrived: arrivals.Arrivals, *, is_podcast: bool) -> list[str]:
    """Return what is to be taken in: the first time as many as were asked for, later what is new."""
    if row.succeeded_at is None:
        return arrivals.choose_new(arrived.new, row.takes_first, podcast=is_podcast)
    if not row.takes_new:
        return []
    return arrivals.choose_new(arrived.new, arrivals.MOST_NEW, podcast=is_podcast)


def _describe(session: Session, row: SubscriptionRow, about: ToldFeed, *, has_items: bool) -> None:
    """A feed that is empty at the moment stays what it was; one that does not say its title keeps the one it has."""
    known = session.first(_FEED, row_id=row.id)
    if known is None:
        return
    given = about._replace(
        title=about.title or known.title, is_podcast=about.is_podcast if has_items else known.is_podcast
    )
    if any(getattr(known, name) != value for name, value in given._asdict().items()):
        session.run(_DESCRIBE, feed_id=known.id, **given._asdict())


def _update_episodes(session: Session, row: SubscriptionRow, item_ids: list[UUID]) -> None:
    feed = session.first(_FEED, row_id=row.id) if item_ids else None
    if feed is None:
        return
    for item in (item for item_id in item_ids for item in session.all(_EPISODES, item_id=item_id)):
        update_episode(session, feed, item)


def _follow(session: Session, due: DueFeed, moved_to: str | None) -> bool:
    """The feed has another address from now on. Returns whether that is one of another feed."""
    try:
        moved_to = moved_to and urls.identify_article(moved_to).canonical_url
    except InvalidUrl:
        return False
    if moved_to is None or moved_to == due.url:
        return False
    feed_id = due.row.feed_id
    known = session.first(_FEED, row_id=due.row.id)
    if known is None or session.first(_LOCK_FEED, feed_id=feed_id) is None:
        return False
    is_same = moved_to == due.url.replace("http://", "https://", 1)
    given = {"feed_id": feed_id, "from_url": due.url, "to_url": moved_to, "is_same": is_same}
    if session.run(_MOVE, row_id=due.row.id, **given) == 0:
        to_feed = hold_feed(session, moved_to, is_podcast=known.is_podcast)
        session.run(_FOLLOW, row_id=due.row.id, to_feed=to_feed)
        return True
    return not is_same
