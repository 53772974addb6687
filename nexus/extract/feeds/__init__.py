"""Reads feeds, in a parser process: Atom, RSS and RDF, and JSON Feed; and what names feeds, pages and OPML files.

results      what is read                       naming     the feeds that pages and OPML files name
syndication  Atom, RSS and RDF                  json_feed  JSON Feed
extras       what feedparser drops              dates      dates in the forms that feeds really have
parts        texts, addresses and numbers, within limits
"""

from __future__ import annotations

from nexus.extract import Hints
from nexus.extract.feeds.json_feed import looks_like_json, read_json_feed
from nexus.extract.feeds.results import FeedReading
from nexus.extract.feeds.syndication import read_syndication

#: How the sandbox calls the readers.
FEED_READER = "nexus.extract.feeds:read_feed"
SITE_READER = "nexus.extract.feeds.naming:read_site"
OPML_READER = "nexus.extract.feeds.naming:read_outlines"


def read_feed(data: bytes, hints: Hints) -> FeedReading:
    """Raises FeedIsPage or FeedUnreadable if it is no feed."""
    return read_json_feed(data, hints) if looks_like_json(data) else read_syndication(data, hints)
