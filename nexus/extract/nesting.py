"""Flattens html that is nested too deep for parsers."""

from __future__ import annotations

import re

from nexus.extract.elements import DROPPED, INLINES, KEPT_BLOCKS, LOOSE_BLOCKS, SELF_CLOSING, VOID

DEEPEST = 100
TAG = re.compile(r"</?[a-zA-Z][^\s/>]*")
BLOCKS = KEPT_BLOCKS | LOOSE_BLOCKS
TABLE_TAGS = frozenset({"table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th"})
#: The end of a block outside of one of these does not close what is inside.
WALLS = frozenset({"table", "caption", "td", "th", "object", "applet", "marquee", "template", "svg", "math"})


def cut_nesting(html: str) -> str:
    """Return the html with nothing nested deeper than parsers can handle in a short time.

    It looks only at the names of tags. In well-formed html nothing escapes it. What a page hides in comments,
    attributes and disorder costs time, which the limit of the parser process bounds.
    """
    return html if _is_neat(TAG.findall(html)) else TAG.sub(_Flattener(), html)


def _is_neat(tags: list[str]) -> bool:
    """Whether every element is closed in its place and none is too deep."""
    opened: list[str] = []
    for tag in tags:
        if tag[1] == "/":
            if not opened or opened.pop() != tag[2:]:
                return False
        elif tag[1:] not in VOID:
            opened.append(tag[1:])
            if len(opened) > DEEPEST:
                return False
    return True


class _Flattener:
    """Turns each tag of an element that is too deep into an empty element. The content stays.

    It mostly does what parsers do with tags that don't match.
    """

    def __init__(self) -> None:
        self._opened: list[str] = []

    def __call__(self, found: re.Match[str]) -> str:
        tag = found[0]
        name = tag.lstrip("</").lower()
        if name in VOID:
            return tag
        return self._end(tag, name) if tag[1] == "/" else self._start(tag, name)

    def _start(self, tag: str, name: str) -> str:
        self._close_by_itself(name)
        if len(self._opened) >= DEEPEST and name not in DROPPED:
            return "<wbr" if name in INLINES else "<br"
        self._opened.append(name)
        return tag

    def _close_by_itself(self, name: str) -> None:
        if name == "p" and self._opened[-1:] == ["p"]:
            self._opened.pop()
        elif name in SELF_CLOSING and name != "p":
            while self._opened and self._opened[-1] in SELF_CLOSING:
                self._opened.pop()

    def _end(self, tag: str, name: str) -> str:
        """Drop an end tag whose start tag was cut or is out of reach: a parser ignores it."""
        for depth in range(len(self._opened) - 1, -1, -1):
            if self._opened[depth] == name:
                del self._opened[depth : depth + 1 if name in INLINES else None]
                return tag
            if self._stops(self._opened[depth], name):
                break
        return tag if name in INLINES else "</x"

    def _stops(self, outer: str, name: str) -> bool:
        if name not in BLOCKS:
            return outer in BLOCKS or outer in WALLS
        return outer in WALLS and name not in TABLE_TAGS
