"""What feedparser drops: several transcripts of an episode, its chapters, and how often a feed wants to be polled.

The same bytes are read once more, as plain XML: no entities, no network, no document type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from nexus.extract.feeds.parts import one_line, start_time, web_address, whole_number
from nexus.extract.feeds.results import MOST_PARTS
from nexus.extract.recording import NamedTranscript, TimedChapter

_PARSER_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "huge_tree": False,
    "recover": True,
    "remove_comments": True,
    "remove_pis": True,
    "encoding": "utf-8",
}
_PODCAST = ("https://podcastindex.org/namespace/1.0", "github.com/podcastindex-org/podcast-namespace")
_SIMPLE_CHAPTERS = "podlove.org/simple-chapters"
_SYNDICATION = "purl.org/rss/1.0/modules/syndication"
_ITEMS = frozenset({"item", "entry"})
_PERIODS = {"hourly": 3600, "daily": 86400, "weekly": 604800, "monthly": 2592000, "yearly": 31536000}
LONGEST_PACE = 31536000


@dataclass
class ItemExtras:
    guid: str | None = None
    chapters_url: str | None = None
    chapters: list[TimedChapter] = field(default_factory=list)
    transcripts: list[NamedTranscript] = field(default_factory=list)


@dataclass
class FeedExtras:
    pace_seconds: int | None = None
    items: list[ItemExtras] = field(default_factory=list)


def read_extras(utf8: bytes, base_url: str | None) -> FeedExtras:
    """Return what is there; nothing for a document that is not XML."""
    root = parse_safely(utf8)
    found = FeedExtras()
    if root is None:
        return found
    periods: dict[str, str] = {}
    for element in root.iter(etree.Element):
        space, name = _names(element)
        if name in _ITEMS:
            found.items.append(_item(element, base_url))
        elif name in {"ttl", "updatePeriod", "updateFrequency"} and (name == "ttl" or _SYNDICATION in space):
            periods.setdefault(name, (element.text or "").strip())
    found.pace_seconds = _pace(periods)
    return found


def parse_safely(utf8: bytes) -> etree._Element | None:
    """Return the root of an XML document, mended where that is possible."""
    try:
        return etree.fromstring(utf8, etree.XMLParser(**_PARSER_OPTIONS))
    except (etree.XMLSyntaxError, ValueError):
        return None


def _item(item: etree._Element, base_url: str | None) -> ItemExtras:
    found = ItemExtras()
    for element in item:
        space, name = _names(element)
        if name in {"guid", "id"} and found.guid is None:
            found.guid = (element.text or "").strip() or None
        elif name == "transcript" and space.startswith(_PODCAST):
            found.transcripts += _transcript(element, base_url)
        elif name == "chapters" and space.startswith(_PODCAST):
            found.chapters_url = found.chapters_url or web_address(element.get("url"), base_url)
        elif name == "chapters" and _SIMPLE_CHAPTERS in space:
            found.chapters += _chapters(element)
    found.transcripts = found.transcripts[:MOST_PARTS]
    found.chapters = sorted(found.chapters[:MOST_PARTS])
    return found


def _transcript(element: etree._Element, base_url: str | None) -> Iterator[NamedTranscript]:
    url = web_address(element.get("url"), base_url)
    if url is not None:
        kind = one_line(element.get("rel"), 20)
        yield NamedTranscript(
            url, one_line(element.get("type"), 100), one_line(element.get("language"), 35), kind
        )


def _chapters(element: etree._Element) -> Iterator[TimedChapter]:
    for one in element:
        seconds, title = start_time(one.get("start")), one_line(one.get("title"))
        if seconds is not None and title:
            yield TimedChapter(seconds, title)


def _pace(periods: dict[str, str]) -> int | None:
    minutes = whole_number(periods.get("ttl"), LONGEST_PACE)
    if minutes:
        return min(minutes * 60, LONGEST_PACE)
    period = _PERIODS.get(periods.get("updatePeriod", "").lower())
    if period is None and "updateFrequency" not in periods:
        return None
    return (period or _PERIODS["daily"]) // max(whole_number(periods.get("updateFrequency"), 10_000) or 1, 1)


def _names(element: etree._Element) -> tuple[str, str]:
    """Return the namespace and the name of an element."""
    space, _, name = str(element.tag).rpartition("}")
    return space.removeprefix("{"), name
