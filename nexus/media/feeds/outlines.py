"""OPML: the list of feeds that other readers import and export."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from uuid import UUID

from nexus import urls
from nexus.errors import ExtractionFailed, InvalidRequest, InvalidUrl, TooManySubscriptions
from nexus.extract.feeds import OPML_READER
from nexus.extract.feeds.results import NamedFeed, OutlineFeeds
from nexus.media.feeds.lookup import address_to_ask
from nexus.media.feeds.share import require_share
from nexus.media.feeds.subscribing import Wishes, subscribe_unseen
from nexus.media.feeds.subscriptions import SubscriptionView
from nexus.media.workbench import Tools

NO_LIST = "This is not an OPML file, or it names no feeds. Export one from your feed reader, and try again."


@dataclass(frozen=True)
class SubscribedList:
    """What came of the feeds of an OPML file."""

    made: list[UUID]
    #: Addresses of feeds that the library had already, and those that are none.
    known: list[str]
    refused: list[str]
    #: Addresses that the user's share has no room for.
    left_out: list[str]


def read_opml(tools: Tools, viewer: UUID, data: bytes) -> list[NamedFeed]:
    """Return the feeds that an OPML file names, each once. Raises InvalidRequest if there are none."""
    try:
        found = tools.read_at_once(viewer, OutlineFeeds, OPML_READER, data)
    except ExtractionFailed as error:
        raise InvalidRequest(NO_LIST) from error
    if not found.feeds:
        raise InvalidRequest(NO_LIST)
    return list(found.feeds)


def subscribe_to_all(
    tools: Tools,
    viewer: UUID,
    named: Iterable[NamedFeed],
    wishes: Wishes,
    library_id: UUID | None = None,
    request_id: str | None = None,
) -> SubscribedList:
    """Subscribe a library to each feed, in a transaction of its own. Nobody looks at them before they are polled.

    As many as the user may have are taken, the first ones first; those that the library has already take no room.
    """
    done = SubscribedList([], [], [], [])
    for one in named:
        try:
            address = urls.identify_article(address_to_ask(one.url)).canonical_url
        except InvalidUrl:
            done.refused.append(one.url)
            continue
        try:
            with tools.sessions.begin() as session:
                made = subscribe_unseen(session, viewer, address, wishes, library_id, request_id)
                if made is not None:
                    require_share(session, tools.subscription_share, viewer)
        except TooManySubscriptions:
            done.left_out.append(address)
            continue
        if made is None:
            done.known.append(address)
        else:
            done.made.append(made.id)
    return done


def write_opml(title: str, views: Iterable[SubscriptionView]) -> str:
    """Return an OPML file of subscriptions."""
    lines = (_outline(view) for view in views)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0">\n'
        f"<head><title>{escape(title)}</title></head>\n<body>\n{''.join(lines)}</body>\n</opml>\n"
    )


def _outline(view: SubscriptionView) -> str:
    name = escape(view.title or view.url)
    site = f' htmlUrl="{escape(view.site_url)}"' if view.site_url else ""
    return f'<outline type="rss" text="{name}" title="{name}" xmlUrl="{escape(view.url)}"{site}/>\n'
