"""What requests and answers about subscriptions look like."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from nexus.db.rows import FeedItemRow
from nexus.media.feeds.lookup import FoundFeed
from nexus.media.feeds.previews import PreviewRow
from nexus.media.feeds.reading import told_feed, told_items
from nexus.media.feeds.subscribing import MOST_FIRST, TAKES_FIRST, Wishes
from nexus.media.feeds.subscriptions import SubscriptionView
from nexus.media.queries import Page
from nexus.web.api.schemas import EXAMPLE_ID, Body, PublicCode
from nexus.web.http.envelope import Answer, Moment

_EXAMPLE_FEED = "https://example.com/feed.xml"
_EXAMPLE_OPML = '<opml version="2.0"><body><outline xmlUrl="https://example.com/feed.xml"/></body></opml>'
#: So many of its items show what a feed is like.
SHOWN_BEFORE = 10


class FeedBody(Body):
    url: str = Field(
        examples=["https://example.com/"],
        description="Of a feed, of a page that names its feed, or of a YouTube channel or playlist.",
    )


class _WishesBody(Body):
    library_id: UUID | None = Field(
        None, examples=[EXAMPLE_ID], description="Without it, your default library subscribes."
    )
    takes_new: bool | None = Field(
        None,
        description="Whether new items are taken in automatically, with their full text. If you don't say, those of "
        "podcasts are, and other items wait as previews.",
    )
    takes_first: int | None = Field(
        None,
        ge=0,
        le=MOST_FIRST,
        description=f"How many of the items that the feed has now are taken in. If you don't say, {TAKES_FIRST}, or "
        "none if new items are not taken in either.",
    )

    def wishes(self) -> Wishes:
        return Wishes(self.takes_new, self.takes_first)


class SubscribeBody(_WishesBody, FeedBody):
    pass


class OutlinesBody(_WishesBody):
    opml: str = Field(examples=[_EXAMPLE_OPML], description="The content of an OPML file.")


class SubscriptionChangeBody(Body):
    """What to change; everything else stays."""

    takes_new: bool | None = None
    status: Literal["active", "paused"] | None = Field(
        None, description="`paused` stops polling; `active` resumes, also after a failure."
    )


class FeedOut(Answer):
    url: str = Field(examples=[_EXAMPLE_FEED])
    title: str | None
    author: str | None
    description: str | None
    site_url: str | None
    picture_url: str | None = Field(
        description="Outside of Nexus: a reader who asks there is seen by the site."
    )
    is_podcast: bool


class GlimpseOut(Answer):
    """An item of a feed before anybody subscribes."""

    title: str | None
    author: str | None
    url: str | None
    published_at: Moment | None
    summary: str | None
    seconds: float | None


class NamedFeedOut(Answer):
    url: str
    title: str | None


class FeedPreviewOut(FeedOut):
    items: list[GlimpseOut] = Field(description="The latest ones.")
    others: list[NamedFeedOut] = Field(description="Other feeds that the same page names.")

    @classmethod
    def of(cls, found: FoundFeed, now: datetime) -> FeedPreviewOut:
        latest = sorted(told_items(found.reading, now), key=lambda item: item.shown_at, reverse=True)
        items = [item._asdict() for item in latest[:SHOWN_BEFORE]]
        others = [one._asdict() for one in found.others]
        about = {**told_feed(found.reading)._asdict(), "url": found.url}
        return cls.model_validate({**about, "items": items, "others": others})


class SubscriptionOut(FeedOut):
    id: UUID
    library_id: UUID
    library_name: str
    status: str = Field(
        examples=["active"],
        description="`active`; `failing` after a few failures in a row, still polled; `paused`; or `gone`.",
    )
    takes_new: bool
    takes_first: int
    error_code: PublicCode = Field(description="Why the last poll failed; null if it did not.")
    error_message: str | None
    failures: int = Field(description="How many polls in a row have failed.")
    interval_seconds: int = Field(description="How long after a poll the next one is due.")
    polled_at: Moment | None
    succeeded_at: Moment | None
    brought_at: Moment | None = Field(description="When a poll last found something new.")
    next_poll_at: Moment | None
    created_at: Moment
    may_change: bool = Field(description="Whether you administer its library.")
    items: int = Field(description="How many items it has brought, previews included.")
    taken: int = Field(description="How many of them were taken in.")
    wanted: int = Field(description="How many are about to be taken in.")

    @classmethod
    def of(cls, view: SubscriptionView) -> SubscriptionOut:
        return cls.model_validate(
            {**view._asdict(), "may_change": view.may_change, "next_poll_at": view.next_poll_at}
        )


class SubscriptionList(Answer):
    items: list[SubscriptionOut]


class FeedItemOut(Answer):
    id: UUID
    kind: str | None = Field(
        examples=["web_article"], description="What it becomes when it is taken in; null if it can't be."
    )
    title: str | None
    author: str | None
    url: str | None
    published_at: Moment | None
    summary: str | None
    picture_url: str | None
    enclosure_url: str | None
    enclosure_type: str | None
    enclosure_bytes: int | None
    seconds: float | None
    season: int | None
    number: int | None
    seen_at: Moment = Field(description="When a poll first found it.")
    is_wanted: bool = Field(description="Whether it is about to be taken in.")
    taken_at: Moment | None
    media_id: UUID | None = Field(description="The item that it became, if the library holds that.")

    @classmethod
    def values_of(cls, row: PreviewRow) -> dict[str, Any]:
        return {
            **row._asdict(),
            "kind": row.kind,
            "is_wanted": row.wanted_at is not None,
            "media_id": row.media_id if row.is_held else None,
        }


class FeedItemPage(Answer):
    items: list[FeedItemOut]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[PreviewRow]) -> FeedItemPage:
        items = [FeedItemOut.model_validate(FeedItemOut.values_of(row)) for row in page.items]
        return cls(items=items, next_cursor=page.next_cursor)


class FeedItemTextOut(FeedItemOut):
    """An item with the text that the feed carries."""

    text: str | None
    html: str | None = Field(description="Clean, and its text content is exactly `text`.")

    @classmethod
    def of(cls, row: PreviewRow, stored: FeedItemRow) -> FeedItemTextOut:
        return cls.model_validate({**cls.values_of(row), "text": stored.text, "html": stored.html})


class PollAskedOut(Answer):
    asked: bool = Field(description="False if it is being polled just now.")
    enqueued: bool


class TakenOut(Answer):
    taken: int = Field(description="How many items were taken in.")
    left: int = Field(
        description="How many more are about to be: after the next polls, or when you may add more."
    )


class OutlinesOut(Answer):
    subscription_ids: list[UUID]
    known: list[str] = Field(description="Feeds that the library had already.")
    refused: list[str] = Field(description="Addresses that can't be those of feeds.")
    left_out: list[str] = Field(description="Feeds beyond the number that you may subscribe to.")
