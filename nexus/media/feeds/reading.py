"""A feed is fetched and read in a parser process; what came of it is checked and made fit for the database."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from nexus.db.tables import UNSTORABLE
from nexus.errors import FeedGone, FetchFailed
from nexus.extract import Hints
from nexus.extract.feeds import FEED_READER
from nexus.extract.feeds.results import FeedEntry, FeedReading
from nexus.extract.safe_html import safe_html
from nexus.fetch import Download, NotModified
from nexus.media.workbench import Tools

ACCEPT_FEED = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, "
    "*/*;q=0.1"
)
WEB = ("http://", "https://")
#: A date that lies further ahead is a mistake.
AHEAD = timedelta(days=1)
LARGEST_NUMBER = 2**31 - 1
GONE = 410


@dataclass(frozen=True)
class FeedAnswer:
    """What a feed says, and where it was found."""

    reading: FeedReading
    #: Where the redirects ended.
    url: str
    #: Where it has moved for good.
    moved_to: str | None
    etag: str | None
    last_modified: str | None


@dataclass(frozen=True)
class NothingNew:
    """The feed says what it said before."""

    moved_to: str | None


def fetch_feed(
    tools: Tools, url: str, etag: str | None = None, last_modified: str | None = None
) -> FeedAnswer | NothingNew:
    """Fetch and read a feed, if it has changed. Raises FetchFailed, FeedUnreadable or kinds of them."""
    try:
        answer = tools.fetcher.get_data(url, ACCEPT_FEED, etag=etag, last_modified=last_modified)
        if isinstance(answer, NotModified):
            if answer.url in {url, answer.moved_to}:
                return NothingNew(answer.moved_to)
            # The address leads elsewhere now, and what it leads to may be older than what was read.
            answer = tools.fetcher.get_data(url, ACCEPT_FEED)
    except FetchFailed as error:
        raise (FeedGone() if error.http_status == GONE else error) from error
    if isinstance(answer, NotModified):
        return NothingNew(None)
    return read_answer(tools, answer)


def read_answer(tools: Tools, answer: Download) -> FeedAnswer:
    """Read what an address answered as a feed. Raises FeedUnreadable, or another ExtractionFailed."""
    hints = Hints(answer.url, answer.content_type_header, answer.charset)
    reading = tools.sandbox.read_as(FeedReading, FEED_READER, answer.body, hints)
    return FeedAnswer(reading, answer.url, answer.moved_to, answer.etag, answer.last_modified)


def feed_values(reading: FeedReading) -> dict[str, Any]:
    """Return what a feed says about itself, by the columns of `feeds`."""
    return {
        **{name: _text(getattr(reading, name)) for name in ("title", "author", "description", "language")},
        **{name: _web(getattr(reading, name)) for name in ("site_url", "picture_url")},
        "is_podcast": is_podcast(reading),
    }


def is_podcast(reading: FeedReading) -> bool:
    """Whether at least half of its items have something to hear or see."""
    return 0 < len(reading.entries) <= 2 * sum(_web(one.enclosure_url) is not None for one in reading.entries)


def item_values(reading: FeedReading, now: datetime, told_by: str | None = None) -> list[dict[str, Any]]:
    """Return each item by the columns of `feed_items`: what the feed says, which host answered with it, and what makes
    two of them the same.

    A guid that different items share says nothing.
    """
    rows = [_item(entry, now, told_by) for entry in reading.entries]
    shared = _shared_guids(rows)
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["guid"] in shared:
            row["guid"] = None
        row["identity"] = _hash(_same_if(row))
        found.setdefault(row["identity"], row)
    return list(found.values())


def _shared_guids(rows: Iterable[dict[str, Any]]) -> set[str]:
    different = {(row["guid"], row["url"], row["enclosure_url"]) for row in rows if row["guid"]}
    counted = Counter(guid for guid, _, _ in different)
    return {guid for guid, many in counted.items() if many > 1}


def _same_if(row: dict[str, Any]) -> list[str | None]:
    if row["guid"]:
        return ["guid", row["guid"]]
    published = row["published_at"] and row["published_at"].isoformat()
    if row["enclosure_url"]:
        return ["enclosure", row["enclosure_url"], published]
    return ["page", row["url"]] if row["url"] else ["text", row["title"], published, row["summary"]]


def _item(entry: FeedEntry, now: datetime, told_by: str | None) -> dict[str, Any]:
    published = _moment(entry.published, now)
    html, text = _checked(entry)
    values = {
        "told_by": told_by,
        **{name: _text(getattr(entry, name)) for name in ("guid", "title", "author", "summary", "language")},
        **{
            name: _web(getattr(entry, name))
            for name in ("url", "picture_url", "enclosure_url", "chapters_url")
        },
        "enclosure_type": _text(entry.enclosure_type),
        "enclosure_bytes": entry.enclosure_bytes,
        "seconds": entry.seconds,
        "season": _small(entry.season),
        "number": _small(entry.number),
        "html": html,
        "text": text,
        "published_at": published,
        "chapters": json.dumps([[one.seconds, _text(one.title)] for one in entry.chapters]),
        "transcripts": json.dumps([one._asdict() for one in entry.transcripts if _web(one.url)]),
    }
    told = [[name, str(value)] for name, value in values.items() if value is not None]
    return {**values, "digest": _hash(told), "shown_at": published or now}


def _checked(entry: FeedEntry) -> tuple[str | None, str | None]:
    text = _text(entry.text)
    if text is None or entry.html is None or text != entry.text:
        return None, text
    return safe_html(entry.html, text), text


def _moment(told: str | None, now: datetime) -> datetime | None:
    if told is None:
        return None
    try:
        found = datetime.fromisoformat(told)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if found <= now + AHEAD else None


def _text(given: str | None) -> str | None:
    return UNSTORABLE.sub("", given).strip() or None if given else None


def _web(address: str | None) -> str | None:
    return _text(address) if address is not None and address.startswith(WEB) else None


def _small(number: int | None) -> int | None:
    return number if number is not None and 0 <= number <= LARGEST_NUMBER else None


def _hash(parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
