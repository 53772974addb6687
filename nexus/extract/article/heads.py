"""Reads the parts of a page that nobody sees: meta tags, linked data, the title tag."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml.etree import _Element as Element

from nexus.extract.elements import words
from nexus.extract.markup import unescape_leftovers

#: How many characters of linked data are read. More of it is a catalogue, not a description.
LARGEST = 400_000
DEEPEST = 8
SITES = words("WebSite Organization NewsMediaOrganization")
LONGEST_TITLE = 2000
ARTICLES = words(
    "Article NewsArticle BlogPosting ReportageNewsArticle TechArticle OpinionNewsArticle AnalysisNewsArticle "
    "LiveBlogPosting ScholarlyArticle Report Review SocialMediaPosting DiscussionForumPosting Recipe"
)

_ADDRESS = re.compile(r"https?://[^/\s]+\.[^\s]{1,2000}\Z", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f]+")


@dataclass(frozen=True)
class PageHead:
    language: str | None = None
    title: str | None = None
    #: By name or property in lower case, in the order of the page.
    meta: dict[str, list[str]] = field(default_factory=dict)
    #: Every typed object of the linked data.
    things: tuple[dict[str, Any], ...] = ()
    #: What the page says is its address.
    canonical: str | None = None

    def first(self, *names: str) -> str | None:
        return next((value for name in names for value in self.meta.get(name, ())), None)

    def own_address(self) -> str | None:
        """Return the address that the page gives itself, if it is one: a file has no other."""
        given = (self.canonical, self.first("og:url"))
        return next((one for one in given if one and _ADDRESS.match(one)), None)

    def types(self) -> set[str]:
        return {name for thing in self.things for name in types_of(thing)}

    def articles(self) -> list[dict[str, Any]]:
        return [thing for thing in self.things if types_of(thing) & ARTICLES]

    def site_names(self) -> list[str]:
        named = (entity_name(thing.get("publisher")) for thing in self.things)
        sites = (entity_name(thing) for thing in self.things if types_of(thing) & SITES)
        given = (self.first("og:site_name"), self.first("application-name"), self.first("twitter:site"))
        return [name.lstrip("@") for name in (*given, *named, *sites) if name]


def types_of(thing: dict[str, Any]) -> set[str]:
    given = thing.get("@type")
    return {str(name) for name in (given if isinstance(given, list) else [given])}


def entity_name(thing: object) -> str | None:
    """Return the name of a person or an organisation, in whatever shape the linked data gives it."""
    if isinstance(thing, list):
        return ", ".join(dict.fromkeys(filter(None, map(entity_name, thing[:20])))) or None
    if isinstance(thing, dict):
        return entity_name(thing.get("name"))
    return _tidy(thing) if isinstance(thing, str) else None


def _tidy(text: str | None) -> str | None:
    return " ".join(unescape_leftovers(text or "").split()) or None


def read_head(root: Element) -> PageHead:
    titles = root.iter("title")
    shown = next((one for one in titles if one.getparent() is None or one.getparent().tag != "svg"), None)
    return PageHead(
        language=_tidy(root.get("lang") or root.get("xml:lang")),
        title=_tidy("".join(shown.itertext())[:LONGEST_TITLE]) if shown is not None else None,
        meta=_meta(root),
        things=tuple(_things(root)),
        canonical=_canonical(root),
    )


def _canonical(root: Element) -> str | None:
    """Return what the page says is its address. Several that differ say nothing."""
    links = {link.get("href") or "" for link in root.iterfind(".//head/link[@rel]") if _is_canonical(link)}
    return _tidy(links.pop()) if len(links) == 1 else None


def _is_canonical(link: Element) -> bool:
    return "canonical" in (link.get("rel") or "").lower().split()


def _meta(root: Element) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for element in root.iter("meta"):
        value = _tidy((element.get("content") or "")[:LONGEST_TITLE])
        for key in ("property", "name", "itemprop", "http-equiv"):
            name = element.get(key)
            if name and value:
                found.setdefault(name.strip().lower(), []).append(value)
    return found


def _things(root: Element) -> Iterator[dict[str, Any]]:
    budget = LARGEST
    for script in root.iter("script"):
        if "ld+json" not in (script.get("type") or ""):
            continue
        text = script.text or ""
        budget -= len(text)
        if budget < 0:
            return
        try:
            parsed = json.loads(_CONTROL.sub(" ", text).strip().rstrip(";"))
        except (ValueError, RecursionError):
            continue
        yield from _flat(parsed, 0)


def _flat(node: object, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(node, list) and depth < DEEPEST:
        for item in node:
            yield from _flat(item, depth + 1)
    elif isinstance(node, dict) and depth < DEEPEST:
        if "@type" in node:
            yield node
        for key in ("@graph", "mainEntity", "mainEntityOfPage", "itemReviewed", "review"):
            yield from _flat(node.get(key), depth + 1)
