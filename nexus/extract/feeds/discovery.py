"""Finds the addresses of feeds: in a page, and in an OPML file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from nexus.errors import FeedUnreadable
from nexus.extract import Hints
from nexus.extract.charsets import decode_page
from nexus.extract.feeds import CHANNEL_FEED
from nexus.extract.feeds.extras import parse_safely
from nexus.extract.feeds.parts import one_line, web_address
from nexus.extract.feeds.results import MOST_OUTLINES, MOST_PARTS, NamedFeed, OutlineFeeds, SiteFeeds

_TYPES = (
    "application/rss+xml",
    "application/atom+xml",
    "application/feed+json",
    "application/rdf+xml",
    "application/json",
)
_COMMENTS = re.compile(r"comment", re.IGNORECASE)
_CHANNEL = re.compile(r'"(?:externalId|channelId)":"(UC[\w-]{22})"|youtube\.com/channel/(UC[\w-]{22})')
_YOUTUBE = re.compile(r"https?://(?:www\.|m\.)?youtube\.com/")
_PAGES = etree.HTMLParser(
    encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=False
)


def read_site(data: bytes, hints: Hints) -> SiteFeeds:
    """Return the feeds that a page names. Those of comments come last."""
    html = decode_page(data, hints.charset)
    # As bytes, because lxml refuses characters after a declaration of their encoding.
    root = etree.HTML(html.encode(errors="replace"), _PAGES) if html.strip() else None
    if root is None:
        return SiteFeeds()
    element = root.find(".//base[@href]")
    base = None if element is None else web_address(element.get("href"), hints.url)
    named = dict.fromkeys([*_channel(html, hints.url), *_alternates(root, base or hints.url)])
    best = sorted(named, key=lambda one: bool(_COMMENTS.search(f"{one.url} {one.title}")))
    return SiteFeeds(one_line(root.findtext(".//title"), 500), tuple(best[:MOST_PARTS]))


def read_outlines(data: bytes, hints: Hints) -> OutlineFeeds:
    """Return the feeds of an OPML file, however deeply they are nested. Raises FeedUnreadable if it is not one."""
    root = parse_safely(decode_page(data, hints.charset).encode(errors="replace"))
    if root is None or not str(root.tag).lower().endswith("opml"):
        raise FeedUnreadable
    found: dict[str, NamedFeed] = {}
    for outline in root.iter("outline"):
        given = {name.lower(): value for name, value in outline.items()}
        url = web_address(given.get("xmlurl"))
        if url is not None and len(found) < MOST_OUTLINES:
            found.setdefault(url, NamedFeed(url, one_line(given.get("title") or given.get("text"))))
    return OutlineFeeds(tuple(found.values()))


def _alternates(root: etree._Element, base: str | None) -> Iterator[NamedFeed]:
    for link in root.iter("link"):
        is_alternate = "alternate" in (link.get("rel") or "").lower().split()
        kind = (link.get("type") or "").partition(";")[0].strip().lower()
        url = web_address(link.get("href"), base)
        is_feed = kind in _TYPES and (kind != "application/json" or "feed" in (url or ""))
        if is_alternate and is_feed and url is not None:
            yield NamedFeed(url, one_line(link.get("title")))


def _channel(html: str, url: str | None) -> Iterator[NamedFeed]:
    """The page of a YouTube channel under its name carries the channel's id."""
    found = _CHANNEL.search(html) if _YOUTUBE.match(url or "") else None
    if found:
        yield NamedFeed(CHANNEL_FEED.format(found[1] or found[2]))
