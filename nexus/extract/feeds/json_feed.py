"""Reads JSON Feed, versions 1 and 1.1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nexus.errors import FeedUnreadable
from nexus.extract import Hints
from nexus.extract.feeds import parts
from nexus.extract.feeds.dates import feed_date
from nexus.extract.feeds.results import MOST_ENTRIES, FeedEntry, FeedReading
from nexus.extract.recording import SOUND_TYPES

_VERSION = "jsonfeed.org/version/"


def looks_like_json(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def read_json_feed(data: bytes, hints: Hints) -> FeedReading:
    """Raises FeedUnreadable if it is not one."""
    try:
        found = json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        raise FeedUnreadable from error
    if not isinstance(found, dict) or _VERSION not in str(found.get("version")):
        raise FeedUnreadable
    items = found.get("items")
    entries = items[:MOST_ENTRIES] if isinstance(items, list) else []
    base = hints.url
    return FeedReading(
        title=parts.one_line(found.get("title"), parts.LONGEST_TITLE),
        author=_author(found),
        description=parts.one_line(found.get("description"), parts.LONGEST_SUMMARY),
        site_url=parts.web_address(found.get("home_page_url"), base),
        picture_url=parts.web_address(found.get("icon"), base),
        language=parts.one_line(found.get("language"), 35),
        entries=tuple(_json_entry(one, base) for one in entries if isinstance(one, dict)),
    )


def _json_entry(item: Mapping[str, Any], base: str | None) -> FeedEntry:
    url = parts.web_address(item.get("url"), base) or parts.web_address(item.get("external_url"), base)
    html, text = _json_content(item, url or base)
    attached = _attached(item, base)
    guid = item.get("id")
    guid = str(guid).strip() if isinstance(guid, str | int | float) else ""
    return FeedEntry(
        guid=guid if 0 < len(guid) <= parts.LONGEST_GUID else None,
        title=parts.one_line(item.get("title"), parts.LONGEST_TITLE),
        author=_author(item),
        url=url,
        published=_json_date(item),
        summary=parts.one_line(item.get("summary"), parts.LONGEST_SUMMARY)
        or parts.one_line(text, parts.LONGEST_SUMMARY),
        html=html,
        text=text,
        picture_url=parts.web_address(item.get("image"), base)
        or parts.web_address(item.get("banner_image"), base),
        language=parts.one_line(item.get("language"), 35),
        enclosure_url=parts.web_address(attached.get("url"), base),
        enclosure_type=parts.one_line(attached.get("mime_type"), 100),
        enclosure_bytes=parts.whole_number(attached.get("size_in_bytes"), 2**50) or None,
        seconds=parts.duration(attached.get("duration_in_seconds")),
    )


def _json_content(item: Mapping[str, Any], base: str | None) -> tuple[str | None, str | None]:
    html, plain = item.get("content_html"), item.get("content_text")
    if isinstance(html, str) and html.strip():
        return parts.clean_text(html, base)
    return parts.clean_text(plain, base, is_plain=True) if isinstance(plain, str) else (None, None)


def _json_date(item: Mapping[str, Any]) -> str | None:
    given = (item.get("date_published"), item.get("date_modified"))
    dates = (feed_date(None, one) for one in given if isinstance(one, str))
    return next((one for one in dates if one), None)


def _attached(item: Mapping[str, Any], base: str | None) -> Mapping[str, Any]:
    given = item.get("attachments")
    for one in given if isinstance(given, list) else []:
        is_sound = isinstance(one, dict) and str(one.get("mime_type")).lower().startswith(SOUND_TYPES)
        if is_sound and parts.web_address(one.get("url"), base):
            return dict(one)
    return {}


def _author(found: Mapping[str, Any]) -> str | None:
    many = found.get("authors")
    authors = many if isinstance(many, list) else [found.get("author")]
    names = [parts.one_line(one.get("name")) for one in authors if isinstance(one, dict)]
    return parts.one_line(", ".join(name for name in names if name))
