"""What a page is called, without the name of its site."""

from __future__ import annotations

import re
import unicodedata

from lxml.etree import _Element as Element

from nexus.extract.article.heads import Head

LONGEST = 500
#: What sites put between a title and their name.
_SEAM = re.compile(r"\s+[|–—\-·•»«›‹:/~]+\s+|\s*[|｜_]\s*|:\s+|\s*[–—]\s+|\s+[–—]\s*")


def title(head: Head, body: Element) -> str | None:
    """og:title, twitter:title, the title tag, the first h1: the first of them that says anything."""
    headings = [text for text in (plain(one) for one in _first_headings(body)) if text]
    given = head.first("og:title") or head.first("twitter:title") or head.title
    if not given:
        return headings[0] if headings else None
    return _without_site(given, headings, head.site_names())[:LONGEST].strip() or None


def _first_headings(body: Element) -> list[Element]:
    found = []
    for element in body.iter("h1"):
        found.append(element)
        if len(found) == 5:
            break
    return found


def plain(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _without_site(given: str, headings: list[str], sites: list[str]) -> str:
    """Without what stands beside a seam, where a heading or the site's own name shows that it is only that."""
    whole = _folded(given)
    if any(_folded(heading) == whole for heading in headings):
        return given
    known = {_folded(site) for site in sites} - {""}
    for seam in _SEAM.finditer(given):
        left, right = given[: seam.start()].strip(), given[seam.end() :].strip()
        if _is_heading(left, headings) or (_folded(right) in known and left):
            return left
        if _is_heading(right, headings) or (_folded(left) in known and right):
            return right
    return given


def _is_heading(part: str, headings: list[str]) -> bool:
    """A word alone may be the name of a section, so it needs to be the heading of more than that."""
    folded = _folded(part)
    return len(folded) > 3 and any(_folded(heading) == folded for heading in headings)


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(letter for letter in text if letter.isalnum())
