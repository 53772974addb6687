"""How much of what an author made is kept? Pages of our own, with everything in them counted."""

from __future__ import annotations

from collections import Counter

from bench.places import Place
from bench.readers import trafilatura
from bench.table import Line
from nexus.extract.article import read_page
from tests.kit.rich_pages import RichPage, rich_pages

#: How much of each kind has to be kept, if the text around it is.
LEAST = 0.95


def ask(_: Place) -> list[Line]:
    pages = list(rich_pages())
    there = Counter(thing.kind for page in pages for thing in page.things)
    ours, theirs = Counter[str](), Counter[str]()
    for page in pages:
        ours += kept(page)
        theirs += kept_by_trafilatura(page)
    return [
        Line(
            f"{kind} kept",
            f"{ours[kind]} of {count}",
            f"{theirs[kind]} trafilatura",
            ours[kind] / count,
            LEAST,
        )
        for kind, count in sorted(there.items())
    ]


def kept(page: RichPage) -> Counter[str]:
    """Count the things of each kind that are in the text and in the html that Nexus makes of a page."""
    (fragment,) = read_page(page.html, page.url).extraction.fragments
    return Counter(thing.kind for thing in page.things if thing.is_in(fragment.text, fragment.html or ""))


def kept_by_trafilatura(page: RichPage) -> Counter[str]:
    """By the text alone: it returns no html."""
    text = str(trafilatura(page.html, page.url)["text"] or "")
    return Counter(
        thing.kind for thing in page.things if all(part in " ".join(text.split()) for part in thing.in_text)
    )
