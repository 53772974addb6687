"""Which address is asked for the feed that somebody means."""

from __future__ import annotations

import pytest

from nexus.errors import InvalidUrl
from nexus.media.feeds.lookup import address_to_ask

CHANNEL = "UCaaaaaaaaaaaaaaaaaaaaaa"
CHANNEL_FEED = f"https://www.youtube.com/feeds/videos.xml?channel_id={CHANNEL}"
PLAYLIST_FEED = "https://www.youtube.com/feeds/videos.xml?playlist_id=PLabcdefghijk"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("https://example.com/feed.xml", "https://example.com/feed.xml"),
        ("example.com/feed", "https://example.com/feed"),
        ("  https://example.com/feed?utm_source=x#top ", "https://example.com/feed"),
        ("feed://example.com/feed", "https://example.com/feed"),
        ("feed:https://example.com/feed", "https://example.com/feed"),
        ("podcast://example.com/feed", "https://example.com/feed"),
        (f"https://www.youtube.com/channel/{CHANNEL}", CHANNEL_FEED),
        (f"https://m.youtube.com/channel/{CHANNEL}/videos", CHANNEL_FEED),
        ("https://www.youtube.com/playlist?list=PLabcdefghijk", PLAYLIST_FEED),
        ("https://www.youtube.com/watch?v=aaaaaaaaaaa&list=PLabcdefghijk", PLAYLIST_FEED),
        (CHANNEL_FEED, CHANNEL_FEED),
        ("https://www.youtube.com/@somebody", "https://www.youtube.com/@somebody"),
        (f"https://example.com/channel/{CHANNEL}", f"https://example.com/channel/{CHANNEL}"),
    ],
)
def test_the_feed_behind_an_address_is_asked(given: str, asked: str) -> None:
    assert address_to_ask(given) == asked


@pytest.mark.parametrize(
    "given", ["", "feed://", "feed:", "ftp://example.com/", "http://a:b@example.com/", "\x00"]
)
def test_what_is_no_address_is_not_asked(given: str) -> None:
    with pytest.raises(InvalidUrl):
        address_to_ask(given)
