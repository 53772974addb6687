"""Footnotes: what a mark in the text leads to, and what leads back to the mark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from lxml.etree import _Element as Element

from nexus.extract.article.blocks import INLINE, Block, upwards

#: A longer text is not a note.
LONGEST_NOTE = 5000
#: How far around an id its text may reach.
STEPS = 4
_NAMES = re.compile(r"foot-?notes?\b|end-?notes?\b|doc-(?:foot|end)note|reflist|references\b", re.IGNORECASE)


def links_within(blocks: list[Block]) -> Iterator[tuple[Element, str]]:
    """Yield the links of blocks that lead to a place on the same page, with the name of that place."""
    for block in blocks:
        for piece in block.pieces:
            if piece is not None and not isinstance(piece, str) and piece.tag == "a":
                href = (piece.get("href") or "").strip()
                if href[:1] == "#" and len(href) > 1:
                    yield piece, unquote(href[1:])


def notes_of(blocks: list[Block], kept: list[Block], body: Element) -> set[Block]:
    """Return the blocks of the notes that kept blocks refer to."""
    marks = list(links_within(kept))
    if not marks:
        return set()
    places = {str(one.get("id") or one.get("name")): one for one in body.xpath(".//*[@id] | .//a[@name]")}
    notes = {
        note
        for mark, name in marks
        if name in places and (note := _note(places[name])) is not None and _is_note(note, mark, places)
    }
    return {
        block for block in blocks if notes and any(scope.element in notes for scope in upwards(block.scope))
    }


def _note(place: Element) -> Element | None:
    """Return the block that a place is in, if it is not too long for a note."""
    while place is not None and place.tag in INLINE:
        place = place.getparent()
    if place is None or place.tag == "body" or len("".join(map(str, place.itertext()))) > LONGEST_NOTE:
        return None
    return place


def _is_note(note: Element, mark: Element, places: dict[str, Element]) -> bool:
    """Whether it leads back to its mark, or is called a note."""
    if mark in note.iter("a"):
        return False
    for link in note.iter("a"):
        href = (link.get("href") or "").strip()
        back = places.get(unquote(href[1:])) if href[:1] == "#" else None
        if back is not None and (back in _around(mark) or mark in back.iter("a")):
            return True
    return any(
        _NAMES.search(" ".join(filter(None, map(one.get, ("class", "id", "role"))))) for one in _around(note)
    )


def _around(element: Element) -> list[Element]:
    """Return an element and the few around it."""
    found: list[Element] = []
    while element is not None and len(found) < STEPS and element.tag != "body":
        found.append(element)
        element = element.getparent()
    return found
