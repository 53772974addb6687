"""What a subscription has brought, as a viewer sees it: the latest first, a page at a time."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, exists, or_, select, update

from nexus.db.feeds import feed_items, feeds, subscriptions
from nexus.db.rows import FeedItemRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import library_media
from nexus.errors import NotFound
from nexus.media.feeds.taking import may_be_taken
from nexus.media.queries import PAGE, Page, cursor_after, moment_and_id
from nexus.states.media import Kind


class ItemState(StrEnum):
    """Which items of a feed are wanted."""

    ALL = "all"
    PREVIEWS = "previews"  #: not taken in
    TAKEN = "taken"


class PreviewRow(NamedTuple):
    """An item of a feed, without its text."""

    id: UUID
    title: str | None
    author: str | None
    url: str | None
    published_at: datetime | None
    summary: str | None
    picture_url: str | None
    enclosure_url: str | None
    enclosure_type: str | None
    enclosure_bytes: int | None
    seconds: float | None
    season: int | None
    number: int | None
    shown_at: datetime
    seen_at: datetime
    wanted_at: datetime | None
    media_id: UUID | None
    taken_at: datetime | None
    is_podcast: bool
    #: Whether the library holds what it became.
    is_held: bool

    @property
    def kind(self) -> Kind | None:
        """What it becomes when it is taken in; None if there is nothing to open."""
        return may_be_taken(self.is_podcast, self.url, self.enclosure_url)


_HELD = exists(
    select(library_media.c.media_id)
    .where(
        library_media.c.library_id == subscriptions.c.library_id,
        library_media.c.media_id == feed_items.c.media_id,
    )
    .correlate(subscriptions, feed_items)
)
_STORED = [feed_items.c[name] for name in PreviewRow._fields if name not in {"is_podcast", "is_held"}]
_ROWS = (
    select(*_STORED, feeds.c.is_podcast, _HELD.label("is_held"))
    .join_from(feed_items, subscriptions, subscriptions.c.id == feed_items.c.subscription_id)
    .join(feeds, feeds.c.id == subscriptions.c.feed_id)
    .where(feed_items.c.subscription_id == bindparam("subscription_id"))
)
_SHOWN_AT, _ID = feed_items.c.shown_at, feed_items.c.id
_AFTER = or_(
    bindparam("shown_at", type_=_SHOWN_AT.type) > _SHOWN_AT,
    and_(
        bindparam("shown_at", type_=_SHOWN_AT.type) == _SHOWN_AT, bindparam("after_id", type_=_ID.type) > _ID
    ),
)
_STATES: dict[ItemState, list[ColumnElement[bool]]] = {
    ItemState.ALL: [],
    ItemState.PREVIEWS: [feed_items.c.taken_at.is_(None)],
    ItemState.TAKEN: [feed_items.c.taken_at.is_not(None)],
}
_ONE = Query(
    select(feed_items).where(
        feed_items.c.subscription_id == bindparam("subscription_id"),
        feed_items.c.id == bindparam("item_id", type_=_ID.type),
    ),
    FeedItemRow,
)
_ONE_ROW = Query(_ROWS.where(feed_items.c.id == bindparam("item_id", type_=_ID.type)), PreviewRow)
_WANT = Statement(
    update(feed_items)
    .where(
        feed_items.c.subscription_id == bindparam("subscription_id"),
        feed_items.c.taken_at.is_(None),
        feed_items.c.wanted_at.is_(None),
        or_(feed_items.c.url.is_not(None), feed_items.c.enclosure_url.is_not(None)),
    )
    .values(wanted_at=bindparam("now"))
)


@lru_cache
def _page(state: ItemState, begins: bool) -> Query[PreviewRow]:
    rows = _ROWS.where(*_STATES[state], *([] if begins else [_AFTER]))
    return Query(rows.order_by(_SHOWN_AT.desc(), _ID.desc()).limit(bindparam("most")), PreviewRow)


def list_previews(
    session: Session,
    subscription_id: UUID,
    state: ItemState = ItemState.ALL,
    cursor: str | None = None,
    most: int = PAGE,
) -> Page[PreviewRow]:
    """Return a page of what a subscription has brought. The caller has checked who may see it."""
    shown_at, after_id = moment_and_id(cursor)
    place = {} if cursor is None else {"shown_at": shown_at, "after_id": after_id}
    rows = session.all(_page(state, cursor is None), subscription_id=subscription_id, most=most + 1, **place)
    more, rows = len(rows) > most, rows[:most]
    return Page(rows, cursor_after(rows[-1].shown_at.isoformat(), str(rows[-1].id)) if more else None)


def get_preview(session: Session, subscription_id: UUID, item_id: UUID) -> tuple[PreviewRow, FeedItemRow]:
    """Return one item, also with the text that the feed carries. Raises NotFound."""
    given = {"subscription_id": subscription_id, "item_id": item_id}
    row, found = session.first(_ONE_ROW, **given), session.first(_ONE, **given)
    if row is None or found is None:
        raise NotFound
    return row, found


def want_all(session: Session, subscription_id: UUID) -> int:
    """Ask for everything to be taken in that was not yet; return how many items that is."""
    return session.run(_WANT, subscription_id=subscription_id, now=session.now)
