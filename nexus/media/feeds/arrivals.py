"""What is new in a feed, and what has changed, compared with what a subscription has brought before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, delete, func, literal_column, null, select, update

from nexus.db.feeds import feed_items
from nexus.db.session import Query, Session, Statement
from nexus.db.upserts import insert_or_nothing
from nexus.media.feeds.reading import ToldItem
from nexus.media.feeds.taking import may_be_taken

#: How long an item is kept that has left the feed, if nobody has taken it.
PREVIEW_LIFE = timedelta(days=90)
#: How many of those are kept: a feed can name thousands of others each time.
MOST_MISSING = 10_000
#: How many characters of text and html a subscription keeps for items that have left the feed. Of the others, only the
#: address and a few words stay.
MOST_LEFT_TEXT = 16 * 1024 * 1024
#: How many new items of one poll are taken in unasked; the rest wait as previews.
MOST_NEW = 25
_OWN = ("id", "subscription_id", "seen_at", "wanted_at", "media_id", "taken_at")
_TOLD = tuple(column.name for column in feed_items.c if column.name not in _OWN)


class ItemKey(NamedTuple):
    """What is needed of an item to recognize it."""

    id: UUID
    identity: str
    title: str | None
    url: str | None
    enclosure_url: str | None
    digest: str
    shown_at: datetime
    published_at: datetime | None
    media_id: UUID | None


class _Carrier(NamedTuple):
    """An item with a text, and how long that is."""

    id: UUID
    characters: int


@dataclass(frozen=True)
class Arrivals:
    """What is new, and what has changed, each with the item that it was before."""

    new: list[ToldItem]
    changed: list[tuple[ItemKey, ToldItem]]
    #: What has left the feed, the latest first.
    missing: list[UUID]


_KEYS = Query(
    select(*(feed_items.c[name] for name in ItemKey._fields)).where(
        feed_items.c.subscription_id == bindparam("subscription_id")
    ),
    ItemKey,
)
_NEW = insert_or_nothing(feed_items)
_CHANGE = Statement(
    update(feed_items)
    .where(feed_items.c.id == bindparam("item_id", type_=feed_items.c.id.type))
    .values({name: bindparam(name, type_=feed_items.c[name].type) for name in _TOLD})
)
_TRIM = Statement(
    delete(feed_items).where(
        feed_items.c.id == bindparam("item_id", type_=feed_items.c.id.type),
        feed_items.c.media_id.is_(None),
        feed_items.c.wanted_at.is_(None),
        feed_items.c.seen_at < bindparam("before", type_=feed_items.c.seen_at.type),
    )
)
_CARRIERS = Query(
    select(
        feed_items.c.id,
        (func.length(feed_items.c.text) + func.coalesce(func.length(feed_items.c.html), 0)).label(
            "characters"
        ),
    ).where(
        feed_items.c.subscription_id == bindparam("subscription_id"),
        feed_items.c.wanted_at.is_(None),
        feed_items.c.text.is_not(None),
    ),
    _Carrier,
)
#: If the feed names the item again, it looks as if it had changed, and gets its text back.
_DROP_CARRIED = Statement(
    update(feed_items)
    .where(feed_items.c.id == bindparam("item_id", type_=feed_items.c.id.type))
    .values(html=null(), text=null(), digest=literal_column("''"))
)


def known_items(session: Session, subscription_id: UUID) -> list[ItemKey]:
    return session.all(_KEYS, subscription_id=subscription_id)


def sort_out(known: Sequence[ItemKey], told: Sequence[ToldItem]) -> Arrivals:
    """Compare what a feed says with what is known.

    An item whose guid has changed is recognized by its address, its enclosure and its title, if only one item has them.
    """
    by_identity = {key.identity: key for key in known}
    identities = {item.identity for item in told}
    left = [key for key in known if key.identity not in identities]
    looks = Counter(map(_look, left))
    looks_told = Counter(map(_look, told))
    by_look = {_look(key): key for key in left}
    sorted_out = Arrivals([], [], [])
    seen: set[UUID] = set()
    for item in told:
        look = _look(item)
        key = by_identity.get(item.identity)
        if key is None and looks[look] == looks_told[look] == 1 and any(look):
            key = by_look[look]
        if key is None:
            sorted_out.new.append(item)
            continue
        seen.add(key.id)
        if key.digest != item.digest:
            sorted_out.changed.append((key, item))
    missing = sorted((key for key in known if key.id not in seen), key=lambda key: key.shown_at, reverse=True)
    sorted_out.missing.extend(key.id for key in missing)
    return sorted_out


def write_arrivals(
    session: Session, subscription_id: UUID, arrivals: Arrivals, wanted: Iterable[str] = ()
) -> None:
    """Write what is new and what has changed; the `wanted` identities are to be taken in. Previews that left the feed
    long ago are removed, and so are those beyond the limit."""
    now, chosen = session.now, set(wanted)
    session.run_many(
        _NEW,
        [
            {
                **item._asdict(),
                "id": uuid4(),
                "subscription_id": subscription_id,
                "seen_at": now,
                "wanted_at": now if item.identity in chosen else None,
                "media_id": None,
                "taken_at": None,
            }
            for item in arrivals.new
        ],
    )
    # One without a date keeps the place that it got when it was first seen.
    session.run_many(
        _CHANGE,
        [
            {**item._asdict(), "item_id": key.id, "shown_at": item.published_at or key.shown_at}
            for key, item in arrivals.changed
        ],
    )
    before = now - PREVIEW_LIFE
    rows = [
        {"item_id": item_id, "before": before if place < MOST_MISSING else now}
        for place, item_id in enumerate(arrivals.missing)
    ]
    session.run_many(_TRIM, rows)
    if arrivals.new and arrivals.missing:
        _drop_left_texts(session, subscription_id, arrivals.missing)


def _drop_left_texts(session: Session, subscription_id: UUID, missing: Sequence[UUID]) -> None:
    """Keep the texts of only the latest items that have left the feed."""
    sizes = {row.id: row.characters for row in session.all(_CARRIERS, subscription_id=subscription_id)}
    carriers = [item_id for item_id in missing if item_id in sizes]
    totals = accumulate(sizes[item_id] for item_id in carriers)
    surplus = [item_id for item_id, total in zip(carriers, totals, strict=True) if total > MOST_LEFT_TEXT]
    session.run_many(_DROP_CARRIED, [{"item_id": item_id} for item_id in surplus])


def choose_new(items: Sequence[ToldItem], most: int, *, podcast: bool) -> list[str]:
    """Return the identities of the latest items that can be taken in."""
    fit = [item for item in items if may_be_taken(podcast, item.url, item.enclosure_url)]
    latest = sorted(fit, key=lambda item: item.shown_at, reverse=True)
    return [item.identity for item in latest[:most]]


def _look(item: ItemKey | ToldItem) -> tuple[str | None, ...]:
    return item.url, item.enclosure_url, item.title
