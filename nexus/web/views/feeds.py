"""Subscriptions and what they bring, as pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nexus.errors import public_code
from nexus.media.feeds.previews import PreviewRow
from nexus.media.feeds.subscriptions import SubscriptionView
from nexus.states.subscription import SubscriptionStatus
from nexus.urls import host_of
from nexus.web.views.items import KINDS, Badge, Failure, safe_link, told

S = SubscriptionStatus
_BADGES = {
    S.ACTIVE: Badge("Active", "ready"),
    S.FAILING: Badge("Failing", "failed"),
    S.PAUSED: Badge("Paused", "waiting"),
    S.GONE: Badge("Gone", "failed"),
}
_TROUBLE = {
    S.ACTIVE: "The last poll failed",
    S.FAILING: "The last polls failed. Nexus keeps trying, less and less often",
    S.PAUSED: "The last poll failed",
    S.GONE: "This feed no longer exists, so Nexus has stopped polling it",
}


@dataclass(frozen=True)
class ShownSubscription:
    view: SubscriptionView
    title: str
    host: str
    link: str | None
    badge: Badge
    trouble: Failure | None

    @property
    def previews(self) -> int:
        """How many items could still be taken in."""
        return max(self.view.items - self.view.taken - self.view.wanted, 0)


class ShownFeedItem(NamedTuple):
    row: PreviewRow
    title: str
    #: What it becomes when it is taken in; None if it can't be.
    kind: str | None
    link: str | None
    #: Where the item is that it became.
    item: str | None
    may_take: bool


def show_subscription(view: SubscriptionView) -> ShownSubscription:
    trouble = None
    if view.error_code is not None:
        trouble = told(_TROUBLE[view.status], view.error_message or "", public_code(view.error_code) or "")
    return ShownSubscription(
        view=view,
        title=(view.title or "").strip() or host_of(view.url) or view.url,
        host=host_of(view.site_url or view.url),
        link=safe_link(view.site_url),
        badge=_BADGES[view.status],
        trouble=trouble,
    )


def show_feed_item(row: PreviewRow) -> ShownFeedItem:
    return ShownFeedItem(
        row=row,
        title=(row.title or "").strip() or row.url or "Untitled",
        kind=None if row.kind is None else KINDS[row.kind],
        link=safe_link(row.url),
        item=f"/items/{row.media_id}" if row.media_id is not None and row.is_held else None,
        may_take=row.kind is not None and not row.is_held and row.wanted_at is None,
    )
