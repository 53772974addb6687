"""What feedparser drops: the guid of an item as it is written, several transcripts of an episode, and its chapters.

The same bytes are read once more, as plain XML: no entities, no network, no document type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from nexus.extract.feeds.parts import one_line, start_time, web_address
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
_ITEMS = frozenset({"item", "entry"})


@dataclass
class ItemExtras:
    guid: str | None = None
    chapters_url: str | None = None
    chapters: list[TimedChapter] = field(default_factory=list)
    transcripts: list[NamedTranscript] = field(default_factory=list)


def read_extras(utf8: bytes, base_url: str | None) -> list[ItemExtras]:
    """Return what each item has; nothing for a document that is not XML."""
    root = parse_safely(utf8)
    elements = [] if root is None else root.iter(etree.Element)
    return [_item(element, base_url) for element in elements if _names(element)[1] in _ITEMS]


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


def _names(element: etree._Element) -> tuple[str, str]:
    """Return the namespace and the name of an element."""
    space, _, name = str(element.tag).rpartition("}")
    return space.removeprefix("{"), name
