"""The Atom feed of published stories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from uuid import NAMESPACE_URL, UUID, uuid5
from xml.etree import ElementTree as ET

from markupsafe import Markup

from nexus.draft import StoryClaim
from nexus.editorial.queries import ListedStory
from nexus.editorial.wording import Sections
from nexus.web.api.story_formats import HEADINGS, corrected, doubt_about

ATOM = "http://www.w3.org/2005/Atom"
#: Characters that XML can't hold.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def write_atom_feed(stories: Iterable[ListedStory], viewer: UUID, site: str, now: datetime) -> bytes:
    """A feed, the newest first. `site` is the address of Nexus, with a slash at its end."""
    rows = list(stories)
    feed = ET.Element("feed", xmlns=ATOM)
    _put(feed, "title", "Stories · Nexus")
    _put(feed, "id", uuid5(NAMESPACE_URL, f"nexus-stories-{viewer}").urn)
    _put(feed, "updated", max((row.updated_at for row in rows), default=now).isoformat())
    ET.SubElement(feed, "link", rel="alternate", type="text/html", href=f"{site}admin/stories")
    _put(ET.SubElement(feed, "author"), "name", "Nexus")
    for row in rows:
        _entry(feed, row, site)
    return bytes(ET.tostring(feed, encoding="utf-8", xml_declaration=True))


def _entry(feed: ET.Element, story: ListedStory, site: str) -> None:
    entry = ET.SubElement(feed, "entry")
    _put(entry, "title", story.headline)
    _put(entry, "id", story.id.urn)
    _put(entry, "published", (story.published_at or story.updated_at).isoformat())
    _put(entry, "updated", story.updated_at.isoformat())
    ET.SubElement(entry, "link", rel="alternate", type="text/html", href=f"{site}admin/stories/{story.id}")
    for source in json.loads(story.sources):
        if source["url"]:
            ET.SubElement(entry, "link", rel="via", href=source["url"])
    _put(entry, "summary", story.summary)
    _put(entry, "content", _html(story)).set("type", "html")


def _html(story: ListedStory) -> str:
    sections = Sections.parse(story.sections)
    parts = [Markup("<p>{}</p>").format(story.summary)]
    if story.corrected_at:
        parts.insert(0, Markup("<p><strong>{}</strong></p>").format(corrected(story)))
    for name, text, evidence in (
        ("Headline", story.headline, sections.headline),
        ("Summary", story.summary, sections.summary),
    ):
        if doubt := doubt_about(text, evidence):
            parts.append(Markup("<p><em>({}: {})</em></p>").format(name, doubt))
    for heading, name in HEADINGS:
        claims: tuple[StoryClaim, ...] = getattr(sections, name)
        if claims:
            points = Markup("").join(map(_item, claims))
            parts.append(Markup("<h2>{}</h2><ul>{}</ul>").format(heading, points))
    return str(Markup("").join(parts))


def _item(claim: StoryClaim) -> Markup:
    if doubt := doubt_about(claim.text, [claim.evidence]):
        return Markup("<li>{} <em>({})</em></li>").format(claim.text, doubt)
    return Markup("<li>{}</li>").format(claim.text)


def _put(above: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(above, name)
    element.text = _UNWRITABLE.sub("", text)
    return element
