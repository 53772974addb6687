"""What is read out of a feed, a page that names feeds, and a list of feeds."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

from nexus.extract.recording import NamedTranscript, TimedChapter
from nexus.extract.results import ParserResult

#: Of a longer feed, the first are read: feeds begin with the latest.
MOST_ENTRIES = 10_000
MOST_PARTS = 1_000
MOST_OUTLINES = 5_000
_PARTS = msgspec.Meta(max_length=MOST_PARTS)


class FeedEntry(ParserResult, frozen=True):
    guid: str | None = None
    title: str | None = None
    author: str | None = None
    url: str | None = None
    #: As ISO 8601, in UTC.
    published: str | None = None
    #: Plain text.
    summary: str | None = None
    #: What the feed carries of the text: html, and its characters.
    html: str | None = None
    text: str | None = None
    picture_url: str | None = None
    language: str | None = None
    enclosure_url: str | None = None
    enclosure_type: str | None = None
    enclosure_bytes: int | None = None
    seconds: float | None = None
    season: int | None = None
    number: int | None = None
    chapters_url: str | None = None
    chapters: Annotated[tuple[TimedChapter, ...], _PARTS] = ()
    transcripts: Annotated[tuple[NamedTranscript, ...], _PARTS] = ()


class FeedReading(ParserResult, frozen=True):
    title: str | None = None
    author: str | None = None
    description: str | None = None
    site_url: str | None = None
    picture_url: str | None = None
    language: str | None = None
    #: How long the feed asks to wait between two visits.
    pace_seconds: int | None = None
    #: Where a podcast says that it has moved.
    new_feed_url: str | None = None
    entries: Annotated[tuple[FeedEntry, ...], msgspec.Meta(max_length=MOST_ENTRIES)] = ()


class NamedFeed(NamedTuple):
    """A feed that a page or a list names."""

    url: str
    title: str | None = None


class SiteFeeds(ParserResult, frozen=True):
    """The feeds that a page names, the best one first."""

    title: str | None = None
    feeds: Annotated[tuple[NamedFeed, ...], _PARTS] = ()


class OutlineFeeds(ParserResult, frozen=True):
    """The feeds of an OPML file, in its order."""

    feeds: Annotated[tuple[NamedFeed, ...], msgspec.Meta(max_length=MOST_OUTLINES)] = ()
