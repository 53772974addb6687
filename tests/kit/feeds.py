"""Feeds of the tests, and Nexus subscribed to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any
from uuid import UUID

from nexus.app import App, kernel_for
from nexus.media.feeds import requests, subscriptions
from nexus.media.feeds.polling import POLL
from nexus.media.feeds.previews import ItemState, PreviewRow, get_preview, list_previews
from nexus.media.feeds.subscribing import Wishes, change_subscription
from nexus.media.feeds.subscriptions import SubscriptionView
from nexus.queue import Work
from nexus.queue.local import LocalQueue
from tests.kit.servers.web_pages import Answer, Pages

RSS = "application/rss+xml; charset=utf-8"
NAMESPACES = (
    'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" '
    'xmlns:content="http://purl.org/rss/1.0/modules/content/" '
    'xmlns:podcast="https://podcastindex.org/namespace/1.0" '
    'xmlns:psc="http://podlove.org/simple-chapters" '
    'xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"'
)


@dataclass(frozen=True)
class Story:
    """An item of a feed. What is None is left out."""

    name: str
    guid: str | None = ""
    link: str | None = ""
    date: str | None = "Wed, 01 Jan 2020 10:00:00 GMT"
    html: str = "<p>A few words.</p>"
    enclosure: str | None = None
    more: str = ""

    def xml(self) -> str:
        guid = self.name if self.guid == "" else self.guid
        link = f"https://example.com/{self.name}" if self.link == "" else self.link
        parts = [f"<title>{escape(self.name)}</title>", f"<description>{escape(self.html)}</description>"]
        parts += [f'<guid isPermaLink="false">{escape(guid)}</guid>'] if guid is not None else []
        parts += [f"<link>{escape(link)}</link>"] if link is not None else []
        parts += [f"<pubDate>{self.date}</pubDate>"] if self.date is not None else []
        if self.enclosure is not None:
            parts.append(f'<enclosure url="{escape(self.enclosure)}" type="audio/mpeg" length="1000"/>')
        return f"<item>{''.join(parts)}{self.more}</item>"


def episode(name: str, **more: Any) -> Story:
    return Story(name, enclosure=more.pop("enclosure", f"https://cdn.example.com/{name}.mp3"), **more)


def rss(stories: Iterable[Story], title: str = "The feed", more: str = "") -> bytes:
    items = "".join(story.xml() for story in stories)
    return (
        f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0" {NAMESPACES}><channel>'
        f"<title>{escape(title)}</title><link>https://example.com/</link>{more}{items}</channel></rss>"
    ).encode()


def dated(day: int) -> str:
    """A day of January 2020, as feeds write it."""
    return f"{day:02} Jan 2020 10:00:00 GMT"


class Reader:
    """Somebody who subscribes to feeds of a small site."""

    def __init__(self, app: App, pages: Pages, user: UUID) -> None:
        self.app, self.pages, self.user = app, pages, user

    def publish(
        self, *stories: Story, path: str = "/feed", title: str = "The feed", more: str = "", **headers: str
    ) -> None:
        """The feed says this from now on."""
        self.pages[path] = Answer(rss(stories, title, more), RSS, headers=headers)

    def subscribe(
        self,
        path: str = "/feed",
        takes_new: bool | None = None,
        takes_first: int | None = None,
        library_id: UUID | None = None,
    ) -> UUID:
        return requests.subscribe_to_address(
            self.app.tools,
            LocalQueue(),
            self.user,
            self.pages.url(path),
            Wishes(takes_new, takes_first),
            library_id,
        )

    def poll(self, subscription_id: UUID) -> str | None:
        """How it ended; None if it was not due."""
        return kernel_for(self.app.tools).run(Work(POLL, subscription_id))

    def poll_later(self, subscription_id: UUID, clock: Any) -> str | None:
        """After two days every feed is due again."""
        clock.forward(days=2)
        return self.poll(subscription_id)

    def view(self, subscription_id: UUID) -> SubscriptionView:
        with self.app.sessions.read() as session:
            return subscriptions.get_subscription(session, subscription_id, self.user)

    def items(self, subscription_id: UUID, state: ItemState = ItemState.ALL) -> list[PreviewRow]:
        with self.app.sessions.read() as session:
            return list_previews(session, subscription_id, state, most=200).items

    def titles(self, subscription_id: UUID, state: ItemState = ItemState.ALL) -> list[str | None]:
        return [row.title for row in self.items(subscription_id, state)]

    def texts(self, subscription_id: UUID) -> dict[str | None, bool]:
        """Which items still have their text, by title."""
        with self.app.sessions.read() as session:
            rows = list_previews(session, subscription_id, most=200).items
            return {
                row.title: get_preview(session, subscription_id, row.id)[1].text is not None for row in rows
            }

    def pause(self, subscription_id: UUID, *, is_paused: bool = True) -> None:
        with self.app.sessions.begin() as session:
            change_subscription(session, subscription_id, self.user, is_paused=is_paused)
