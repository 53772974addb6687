"""Subscriptions as the members of their libraries see them, with their health."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, func, select

from nexus.db.feeds import feed_items, feeds, subscriptions
from nexus.db.session import Query, Session
from nexus.db.tables import libraries, memberships
from nexus.errors import NotFound
from nexus.libraries import access
from nexus.libraries.access import Role
from nexus.states.subscription import POLLED, SubscriptionStatus


class SubscriptionView(NamedTuple):
    """A subscription as a member of its library sees it."""

    id: UUID
    library_id: UUID
    library_name: str
    url: str
    title: str | None
    author: str | None
    description: str | None
    site_url: str | None
    picture_url: str | None
    is_podcast: bool
    status: SubscriptionStatus
    takes_new: bool
    takes_first: int
    error_code: str | None
    error_message: str | None
    failures: int
    interval_seconds: int
    polled_at: datetime | None
    succeeded_at: datetime | None
    brought_at: datetime | None
    run_after: datetime
    created_at: datetime
    updated_at: datetime
    role: Role
    #: How many items it has brought, how many of them were taken in, and how many are about to be.
    items: int
    taken: int
    wanted: int

    @property
    def may_change(self) -> bool:
        return self.role is Role.ADMIN

    @property
    def next_poll_at(self) -> datetime | None:
        return self.run_after if self.status in POLLED else None


def _count(name: str, *conditions: ColumnElement[bool]) -> ColumnElement[int]:
    return (
        select(func.count())
        .select_from(feed_items)
        .where(feed_items.c.subscription_id == subscriptions.c.id, *conditions)
        .correlate(subscriptions)
        .scalar_subquery()
        .label(name)
    )


_COLUMNS: dict[str, ColumnElement[Any]] = {
    **{name: subscriptions.c[name] for name in SubscriptionView._fields if name in subscriptions.c},
    **{
        name: feeds.c[name]
        for name in ("url", "title", "author", "description", "site_url", "picture_url", "is_podcast")
    },
    "library_name": libraries.c.name.label("library_name"),
    "role": memberships.c.role,
    "items": _count("items"),
    "taken": _count("taken", feed_items.c.taken_at.is_not(None)),
    "wanted": _count("wanted", feed_items.c.wanted_at.is_not(None)),
}
_VIEWS = (
    select(*(_COLUMNS[name] for name in SubscriptionView._fields))
    .join_from(subscriptions, feeds, feeds.c.id == subscriptions.c.feed_id)
    .join(libraries, libraries.c.id == subscriptions.c.library_id)
    .join(
        memberships,
        and_(
            memberships.c.library_id == subscriptions.c.library_id,
            memberships.c.user_id == bindparam("viewer"),
        ),
    )
)
_IN_ORDER = (func.lower(func.coalesce(feeds.c.title, feeds.c.url)), subscriptions.c.id)
_ALL = Query(_VIEWS.order_by(*_IN_ORDER), SubscriptionView)
_OF_LIBRARY = Query(
    _VIEWS.where(subscriptions.c.library_id == bindparam("library_id")).order_by(*_IN_ORDER), SubscriptionView
)
_ONE = Query(_VIEWS.where(subscriptions.c.id == bindparam("subscription_id")), SubscriptionView)


def list_subscriptions(
    session: Session, viewer: UUID, library_id: UUID | None = None
) -> list[SubscriptionView]:
    """Return the subscriptions of the viewer's libraries, or of one of them, by title.

    Raises NotFound if the viewer does not belong to that library.
    """
    if library_id is None:
        return session.all(_ALL, viewer=viewer)
    access.require_member(session, library_id, viewer)
    return session.all(_OF_LIBRARY, viewer=viewer, library_id=library_id)


def get_subscription(session: Session, subscription_id: UUID, viewer: UUID) -> SubscriptionView:
    """Raises NotFound unless the viewer belongs to its library."""
    found = session.first(_ONE, subscription_id=subscription_id, viewer=viewer)
    if found is None:
        raise NotFound
    return found
