"""The feed behind an address that somebody gives: a feed's own, a page's, a channel's or a playlist's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qs, urljoin, urlsplit
from uuid import UUID

from nexus import urls
from nexus.errors import (
    ExtractionFailed,
    FeedUnreachable,
    FeedUnreadable,
    FetchFailed,
    FetchHttp4xx,
    NoFeed,
    WorkError,
)
from nexus.extract import Hints
from nexus.extract.feeds import CHANNEL_FEED, SITE_READER
from nexus.extract.feeds.results import FeedReading, NamedFeed, SiteFeeds
from nexus.fetch import Download, NotModified
from nexus.media.feeds.reading import ACCEPT_FEED, FeedAnswer, read_answer
from nexus.media.workbench import Tools

#: Where sites have their feeds, if no page names them.
COMMON_PLACES = ("/feed", "/rss", "/feed.xml", "/rss.xml", "/atom.xml", "/index.xml", "/feed.json")
PLAYLIST_FEED = "https://www.youtube.com/feeds/videos.xml?playlist_id={}"
#: How many of the feeds that a page names are tried.
MOST_TRIED = 3
_CHANNEL = re.compile(r"/channel/(UC[\w-]{22})(?:/|$)")
_PLAYLIST = re.compile(r"[\w-]{10,64}")


@dataclass(frozen=True)
class FoundFeed:
    """A feed, and others that the same page names."""

    url: str
    reading: FeedReading
    others: tuple[NamedFeed, ...] = ()


def find_feed(tools: Tools, viewer: UUID, given: str) -> FoundFeed:
    """Fetch and read the feed behind an address.

    Raises InvalidUrl, NoFeed if there is none, FeedUnreachable if its site gives no answer.
    """
    address = address_to_ask(given)
    try:
        answer = _fetch(tools, address)
        try:
            return _found(_read(tools, viewer, answer), address)
        except FeedUnreadable:
            return _from_page(tools, viewer, answer)
    except FetchFailed as error:
        raise FeedUnreachable(error.message) from error
    except ExtractionFailed as error:
        raise NoFeed(error.message) from error


def address_to_ask(given: str) -> str:
    """Return the address to ask: YouTube's channels and playlists have their feeds elsewhere. Raises InvalidUrl."""
    given = re.sub(r"^(?:feed:(?://)?)(?=https?://)", "", given.strip())
    given = re.sub(r"^(?:feed|podcast|itpc|pcast)://", "https://", given)
    canonical = urls.identify_article(urls.with_scheme(given)).canonical_url
    parts = urlsplit(canonical)
    if (parts.hostname or "") not in urls.YOUTUBE_HOSTS:
        return canonical
    channel = _CHANNEL.match(parts.path)
    if channel:
        return CHANNEL_FEED.format(channel[1])
    playlist = parse_qs(parts.query).get("list", [""])[0]
    if parts.path in {"/playlist", "/watch"} and _PLAYLIST.fullmatch(playlist):
        return PLAYLIST_FEED.format(playlist)
    return canonical


def _from_page(tools: Tools, viewer: UUID, page: Download) -> FoundFeed:
    """Raises NoFeed."""
    hints = Hints(page.url, page.content_type_header, page.charset)
    site = tools.read_at_once(viewer, SiteFeeds, SITE_READER, page.body, hints)
    for named in site.feeds[:MOST_TRIED]:
        found = _try(tools, viewer, named.url)
        if found is not None:
            others = tuple(one for one in site.feeds if one.url != named.url)
            return FoundFeed(found.url, found.reading, others)
    for place in COMMON_PLACES:
        found = _try(tools, viewer, urljoin(page.url, place))
        if found is not None:
            return found
    raise NoFeed


def _try(tools: Tools, viewer: UUID, address: str) -> FoundFeed | None:
    """None if there is no feed. A site that gives no answer at all is not asked again: raises FetchFailed."""
    try:
        canonical = urls.identify_article(address).canonical_url
        return _found(_read(tools, viewer, _fetch(tools, canonical)), canonical)
    except (FetchHttp4xx, ExtractionFailed):
        return None
    except WorkError as error:
        if isinstance(error, FetchFailed) and not error.transient:
            return None
        raise


def _fetch(tools: Tools, address: str) -> Download:
    answer = tools.fetcher.get_data(address, ACCEPT_FEED)
    if isinstance(answer, NotModified):
        raise FetchFailed
    return answer


def _read(tools: Tools, viewer: UUID, answer: Download) -> FeedAnswer:
    return read_answer(answer, partial(tools.read_at_once, viewer))


def _found(answer: FeedAnswer, asked: str) -> FoundFeed:
    """A feed that has moved for good is at its new address."""
    return FoundFeed(urls.identify_article(answer.moved_to or asked).canonical_url, answer.reading)
