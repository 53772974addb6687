"""Reads Atom, RSS and RDF: by feedparser, which is given bytes alone, and by a pass of our own for what it drops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import feedparser

from nexus.errors import FeedIsPage, FeedUnreadable
from nexus.extract import Hints
from nexus.extract.charsets import decode_marked
from nexus.extract.feeds import parts
from nexus.extract.feeds.dates import feed_date
from nexus.extract.feeds.extras import ItemExtras, read_extras
from nexus.extract.feeds.results import MOST_ENTRIES, FeedEntry, FeedReading
from nexus.extract.recording import SOUND_TYPES
from nexus.urls import recording_type

_PLAIN = "text/plain"
_PAGE_MARKS = (b"<!doctype html", b"<html")
_LOOKED_AT = 2048
MOST_SEASONS = 100_000
_PERIODS = {"hourly": 3600, "daily": 86400, "weekly": 604800, "monthly": 2592000, "yearly": 31536000}
LONGEST_PACE = 31536000
#: No file is larger than this.
MOST_BYTES = 2**50


def read_syndication(data: bytes, hints: Hints) -> FeedReading:
    """Raises FeedIsPage or FeedUnreadable if it is not a feed."""
    found = feedparser.parse(
        BytesIO(data),
        response_headers={"content-type": _content_type(data, hints)},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    if not found.get("version") and not found.entries:
        start = data[:_LOOKED_AT].lower()
        raise FeedIsPage if any(mark in start for mark in _PAGE_MARKS) else FeedUnreadable
    extras = read_extras(_as_utf8(data, found.get("encoding")), hints.url)
    feed, base = found.feed, hints.url
    beside = _beside(found.entries, extras)
    return FeedReading(
        title=parts.line_of_html(feed.get("title"), parts.LONGEST_TITLE),
        author=parts.one_line(feed.get("author")),
        description=parts.line_of_html(feed.get("subtitle"), parts.LONGEST_SUMMARY),
        site_url=parts.web_address(feed.get("link"), base),
        picture_url=parts.web_address(_value(feed.get("image"), "href"), base),
        language=parts.one_line(feed.get("language"), 35),
        pace_seconds=_pace(feed),
        new_feed_url=parts.web_address(feed.get("itunes_new-feed-url"), base),
        entries=tuple(
            _entry(one, more, base) for one, more in zip(found.entries[:MOST_ENTRIES], beside, strict=False)
        ),
    )


def _pace(feed: Any) -> int | None:
    """Return how many seconds the feed asks to wait between two polls."""
    minutes = parts.whole_number(feed.get("ttl"), LONGEST_PACE)
    if minutes:
        return min(minutes * 60, LONGEST_PACE)
    times = feed.get("sy_updatefrequency")
    period = _PERIODS.get(str(feed.get("sy_updateperiod")).strip().lower())
    if period is None and times is None:
        return None
    return (period or _PERIODS["daily"]) // max(parts.whole_number(times, 10_000) or 1, 1)


def _content_type(data: bytes, hints: Hints) -> str:
    """What is valid UTF-8 is UTF-8, and a byte order mark tells the encoding, whatever a server says."""
    try:
        data.decode()
    except UnicodeDecodeError:
        is_told = hints.charset and decode_marked(data[:4]) is None
        return f"application/xml; charset={hints.charset}" if is_told else "application/xml"
    return "application/xml; charset=utf-8"


def _as_utf8(data: bytes, encoding: str | None) -> bytes:
    if not encoding or encoding.lower() in {"utf-8", "utf8"}:
        return data
    try:
        return data.decode(encoding, "replace").encode(errors="replace")
    except LookupError:
        return data


def _beside(entries: list[Any], extras: list[ItemExtras]) -> list[ItemExtras]:
    """Return what else is known about each entry: by its place, or by its guid if the two passes see different ones."""
    if len(entries) == len(extras):
        return extras
    by_guid = {one.guid: one for one in extras if one.guid}
    return [by_guid.get(entry.get("id"), ItemExtras()) for entry in entries]


def _entry(entry: Any, extras: ItemExtras, base: str | None) -> FeedEntry:
    url = parts.web_address(_link(entry), base)
    html, text, language = _content(entry, url or base)
    enclosure = _enclosure(entry, base) or {}
    return FeedEntry(
        guid=_guid(extras.guid or entry.get("id")),
        title=_title(entry),
        author=parts.one_line(entry.get("author")),
        url=url,
        published=_published(entry),
        summary=_summary(entry, text),
        html=html,
        text=text,
        picture_url=_picture(entry, base),
        language=language,
        enclosure_url=parts.web_address(enclosure.get("href"), base),
        enclosure_type=parts.one_line(enclosure.get("type"), 100),
        enclosure_bytes=parts.whole_number(enclosure.get("length"), MOST_BYTES) or None,
        seconds=parts.duration(entry.get("itunes_duration")),
        season=parts.whole_number(entry.get("itunes_season"), MOST_SEASONS),
        number=parts.whole_number(entry.get("itunes_episode"), MOST_SEASONS),
        chapters_url=extras.chapters_url,
        chapters=tuple(extras.chapters),
        transcripts=tuple(extras.transcripts),
    )


def _link(entry: Any) -> Any:
    """A guid without a link is its address, but only if it is written as one: many are plain numbers."""
    link = entry.get("feedburner_origlink") or entry.get("link")
    is_address = str(link).startswith(("http://", "https://"))
    return None if entry.get("guidislink") and link == entry.get("id") and not is_address else link


def _guid(guid: Any) -> str | None:
    """As it is written: feedparser takes it for an address, which would change with that of the feed."""
    if not isinstance(guid, str) or not guid.strip() or len(guid) > parts.LONGEST_GUID:
        return None
    return guid.strip()


def _title(entry: Any) -> str | None:
    title, detail = entry.get("title"), entry.get("title_detail") or {}
    if detail.get("type") == _PLAIN:
        return parts.one_line(title, parts.LONGEST_TITLE)
    return parts.line_of_html(title, parts.LONGEST_TITLE)


def _published(entry: Any) -> str | None:
    for name in ("published", "updated", "created"):
        if name in entry:
            found = feed_date(entry.get(f"{name}_parsed"), entry.get(name))
            if found is not None:
                return found
    return None


def _content(entry: Any, base: str | None) -> tuple[str | None, str | None, str | None]:
    """Return the html, text and language of the longest text that the entry carries."""
    candidates = [one for one in entry.get("content") or () if isinstance(one.get("value"), str)]
    candidates += [{**(entry.get("summary_detail") or {}), "value": entry.get("summary") or ""}]
    best = max(candidates, key=lambda one: len(one["value"]))
    html, text = parts.clean_text(best["value"], base, is_plain=best.get("type") == _PLAIN)
    return html, text, parts.one_line(best.get("language"), 35)


def _summary(entry: Any, text: str | None) -> str | None:
    summary = entry.get("summary")
    said = parts.line_of_html(summary, parts.LONGEST_SUMMARY) if entry.get("content") else None
    return said or parts.one_line(text, parts.LONGEST_SUMMARY)


def _enclosure(entry: Any, base: str | None) -> Mapping[str, Any] | None:
    """Return the first sound or film that comes with an entry."""
    for one in _mappings(entry.get("enclosures")):
        address = parts.web_address(one.get("href"), base)
        if address is None:
            continue
        if str(one.get("type") or "").lower().startswith(SOUND_TYPES) or recording_type(address):
            return one
    return None


def _picture(entry: Any, base: str | None) -> str | None:
    named = [_value(entry.get("image"), "href")]
    named += [one.get("url") for one in _mappings(entry.get("media_thumbnail"))]
    found = (parts.web_address(one, base) for one in named)
    return next((one for one in found if one), None)


def _mappings(given: Any) -> Iterable[Mapping[str, Any]]:
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []


def _value(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else None
