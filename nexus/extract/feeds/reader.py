"""Reads a feed, whatever its format."""

from __future__ import annotations

from nexus.extract import Hints
from nexus.extract.feeds.json_feed import looks_like_json, read_json_feed
from nexus.extract.feeds.results import FeedReading
from nexus.extract.feeds.syndication import read_syndication


def read_feed(data: bytes, hints: Hints) -> FeedReading:
    """Raises FeedIsPage or FeedUnreadable if it is not a feed."""
    return read_json_feed(data, hints) if looks_like_json(data) else read_syndication(data, hints)
