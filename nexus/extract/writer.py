"""Writes html and plain text side by side: the text content of the html is the text, character for character.

What it writes means the same to every HTML parser: blocks contain only blocks that they may, inline elements are
inside blocks, and everything in a table is inside its cells. An element is written with its first content, so empty
ones leave no trace.
"""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

from nexus.extract import Heading

SPACES = re.compile(r"[ \t\n\r\f]{2,}|[\t\n\r\f]")
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
#: They hold text but no blocks.
FIRM = frozenset({*HEADINGS, "pre"})
#: Every parser moves text that stands here out of the table.
TABLE_PARTS = frozenset({"table", "thead", "tbody", "tfoot", "tr"})
#: The elements that may contain these. Anywhere else they become paragraphs.
PARENTS = {
    "li": frozenset({"ul", "ol"}),
    "dt": frozenset({"dl"}),
    "dd": frozenset({"dl"}),
    "caption": frozenset({"table"}),
    "thead": frozenset({"table"}),
    "tbody": frozenset({"table"}),
    "tfoot": frozenset({"table"}),
    "tr": TABLE_PARTS - {"tr"},
    "td": frozenset({"tr"}),
    "th": frozenset({"tr"}),
    "figcaption": frozenset({"figure"}),
}
#: What separates two pieces, weakest first.
GAPS = ("\t", "\n", "\n\n")
CELL, LINE, PARAGRAPH = range(3)
MOST_BREAKS = 2
NOWHERE = 1 << 30


class Node(NamedTuple):
    """An element to be written. `attributes` begins with a space, or is empty. Nodes are compared by identity: two
    that look alike are two elements."""

    tag: str
    attributes: str = ""
    id: str | None = None


class Nesting:
    """The elements around a piece of content: blocks, then inline elements. A paragraph is always the last block, and
    is closed when another block begins inside it."""

    __slots__ = ("blocks", "firm", "inlines", "last", "path", "verbatim")

    def __init__(self, blocks: tuple[Node, ...], inlines: tuple[Node, ...] = ()) -> None:
        self.blocks = blocks
        self.inlines = inlines
        self.path = blocks + inlines
        self.last = blocks[-1].tag if blocks else ""
        self.firm = self.last in FIRM
        self.verbatim = self.last == "pre"

    def block(self, node: Node) -> Nesting:
        """Return the nesting inside a block that begins here."""
        if self.firm:
            return self
        outer = self._open_blocks()
        here = outer[-1].tag if outer else ""
        parents = PARENTS.get(node.tag)
        if parents is None or here not in parents:
            outer = _before_table(outer)
            node = node if parents is None else Node("p", "", node.id)
        if node.tag == "blockquote":
            return Nesting((*outer, node, Node("p")), self.inlines)
        return Nesting((*outer, node), self.inlines)

    def inline(self, node: Node) -> Nesting:
        """Return the nesting inside an inline element that begins here. None is nested in its own kind."""
        if any(_same_kind(node.tag, outer.tag) for outer in self.inlines):
            return self
        return Nesting(self.blocks, (*self.inlines, node))

    def rule(self) -> Nesting:
        """Return the nesting for a rule between blocks."""
        return Nesting(_before_table(self._open_blocks()))

    def text(self) -> Nesting:
        """Return the nearest nesting that may contain text."""
        if self.last in TABLE_PARTS:
            return Nesting((*_before_table(self.blocks), Node("p")), self.inlines)
        return self

    def _open_blocks(self) -> tuple[Node, ...]:
        return self.blocks[:-1] if self.last == "p" else self.blocks


def _before_table(blocks: tuple[Node, ...]) -> tuple[Node, ...]:
    while blocks and blocks[-1].tag in TABLE_PARTS:
        blocks = blocks[:-1]
    return blocks


def _same_kind(inner: str, outer: str) -> bool:
    return inner == outer or {inner, outer} == {"rt", "rp"}


class Writer:
    """Takes content in reading order, each piece with its nesting."""

    def __init__(self, prefix: str = "") -> None:
        #: Begins every id.
        self.prefix = prefix
        self.headings: list[Heading] = []
        self._html: list[str] = []
        self._text: list[str] = []
        self._place = Nesting(())
        self._ids: set[str] = set()
        self._anchors: list[str] = []
        #: The outermost block border since the last content, and the gap that it asks for.
        self._border = NOWHERE
        self._gap = -1
        self._breaks = 0
        self._space = False
        #: Gaps written since the last text. They are removed if no text follows.
        self._loose: list[tuple[int, int]] = []
        self._heading_at = 0

    def border(self, depth: int, gap: int) -> None:
        """A block begins or ends here. The outermost border between two pieces decides the gap between them."""
        if depth < self._border:
            self._border, self._gap = depth, gap
        elif depth == self._border and gap > self._gap:
            self._gap = gap
        self._breaks, self._space = 0, False

    def anchor(self, name: str) -> bool:
        """Give an id to what comes next, because something links to it. If no element can carry the id, it gets one of
        its own. False if the id is taken."""
        if name in self._ids:
            return False
        self._ids.add(name)
        self._anchors.append(name)
        return True

    def line_break(self) -> None:
        self._breaks += 1
        self._space = False

    def text(self, place: Nesting, chunk: str) -> None:
        if place.verbatim:
            self._preformatted(place, chunk)
            return
        if chunk.isspace():
            self._space = self._space or not self._breaks
            return
        words = SPACES.sub(" ", chunk)
        if words[0] == " " and not self._breaks:
            self._space = True
        self._reach(place.text())
        self._put_text(words.strip(" "))
        self._space = words[-1] == " "

    def picture(self, place: Nesting, tag: str) -> None:
        """Write an element that has no text."""
        self._reach(place)
        self._html.append(tag)

    def formula(self, place: Nesting, html: str, text: str) -> None:
        """Write an element whose text content is this text."""
        if text:
            self._reach(place)
            self._html.append(html)
            self._text.append(text)
            self._loose.clear()

    def finish(self) -> tuple[str, str]:
        """Return the html and its text."""
        for html_at, text_at in self._loose:
            self._html[html_at] = self._text[text_at] = ""
        self._close(0)
        self._put_anchors()
        return "".join(self._html), "".join(self._text)

    def _preformatted(self, place: Nesting, chunk: str) -> None:
        lines = chunk.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "")
        body = lines.strip("\n")
        if not body:
            self._breaks += len(lines)
            return
        self._breaks += len(lines) - len(lines.lstrip("\n"))
        self._reach(place)
        self._put_text(body)
        self._breaks = len(lines) - len(lines.rstrip("\n"))

    def _put_text(self, text: str) -> None:
        self._html.append(escape(text, quote=False))
        self._text.append(text)
        self._loose.clear()

    def _reach(self, place: Nesting) -> None:
        """Close the elements that ended, write the gap, and open the elements that began."""
        if place is not self._place or self._gap >= 0:
            self._move(place)
        elif self._breaks or self._space:
            self._put_gap(*self._within(place))
        if self._anchors:
            self._put_anchors()
        self._border, self._gap, self._breaks, self._space = NOWHERE, -1, 0, False

    def _move(self, place: Nesting) -> None:
        kept = _common(self._place.path, place.path)
        blocks = len(place.blocks)
        same_block = kept >= blocks == len(self._place.blocks)
        if same_block and self._gap >= 0 and place.last == "p":
            same_block, kept = False, blocks - 1
        self._close(kept)
        if same_block:
            self._put_gap(*self._within(place))
        elif self._text:
            self._put_gap(GAPS[self._gap], GAPS[self._gap])
        for node in place.path[kept:]:
            self._begin(node)
        self._place = place

    def _within(self, place: Nesting) -> tuple[str, str]:
        """Return what separates two pieces of the same block, as html and as text."""
        if place.verbatim:
            lines = "\n" * max(self._breaks, int(self._gap >= 0))
            return lines, lines
        if self._gap >= 0 and place.firm:
            return " ", " "
        breaks = min(self._breaks, MOST_BREAKS) or int(self._gap >= 0)
        if breaks:
            return "<br>\n" * breaks, "\n" * breaks
        return (" ", " ") if self._space else ("", "")

    def _put_gap(self, html: str, text: str) -> None:
        """Write a gap, but none before the first text, so that the text begins at once."""
        if not self._text:
            self._html.append(html.replace("\n", "").strip())
        elif html:
            self._loose.append((len(self._html), len(self._text)))
            self._html.append(html)
            self._text.append(text)

    def _begin(self, node: Node) -> None:
        tag, attributes, name = node
        if name in self._anchors:
            self._anchors.remove(name)
            attributes = f' id="{self.prefix}{name}"{attributes}'
        elif tag in HEADINGS:
            attributes = f' id="{self.prefix}{name}"{attributes}'
        if tag in HEADINGS:
            self._heading_at = len(self._text)
        self._html.append(f"<{tag}{attributes}>")

    def _close(self, kept: int) -> None:
        for node in reversed(self._place.path[kept:]):
            self._html.append(f"</{node.tag}>")
            if node.tag in HEADINGS:
                self._put_heading(node)

    def _put_heading(self, node: Node) -> None:
        title = " ".join("".join(self._text[self._heading_at :]).split())
        if title:
            self.headings.append(Heading(title, int(node.tag[1]), f"{self.prefix}{node.id}"))

    def _put_anchors(self) -> None:
        self._html += [f'<span id="{self.prefix}{name}"></span>' for name in self._anchors]
        self._anchors.clear()


def _common(opened: tuple[Node, ...], path: tuple[Node, ...]) -> int:
    """Return how many of the open elements stay open."""
    for count, (left, right) in enumerate(zip(opened, path, strict=False)):
        if left is not right:
            return count
    return min(len(opened), len(path))
