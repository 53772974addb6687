"""Writes the kept blocks as html, inside the structural elements they stood in and no others."""

from __future__ import annotations

from html import escape

from lxml.etree import _Element as Element

from nexus.extract.article.blocks import BREAK, STRUCTURE, TAG_BITS, Block, BlockScope, upwards
from nexus.extract.elements import words

INLINE = {
    "b": "strong",
    "i": "em",
    "kbd": "code",
    "samp": "code",
    "tt": "code",
    "strike": "s",
    **{tag: tag for tag in words("a em strong code sub sup s del ins mark q cite abbr time u var small")},
}
PICTURE = ("src", "data-src", "data-original", "data-lazy-src", "srcset", "data-srcset", "alt", "width", "height", "style")  # fmt: skip  # noqa: E501
KEPT = {
    "a": ("href",),
    "abbr": ("title",),
    "ol": ("start", "type"),
    "td": ("colspan", "rowspan"),
    "th": ("colspan", "rowspan"),
    "time": ("datetime",),
}
#: They hold text directly. In other elements it stands in paragraphs.
HOLDERS = words("li td th dd")
LEAVES = words("h1 h2 h3 h4 h5 h6 pre figcaption caption dt")
#: A cell with more than this in it is a column of the page, not of a table.
MOST_IN_CELL = 4
LONGEST_CELL = 1500


def render_blocks(blocks: list[Block]) -> str:
    writer = _Writer()
    for block in blocks:
        writer.write(block)
    writer.close(0)
    return "".join(writer.out)


class _Writer:
    def __init__(self) -> None:
        self.out: list[str] = []
        self._open: list[BlockScope] = []
        self._begun: set[int] = set()
        self._layout: dict[int, bool] = {}

    def write(self, block: Block) -> None:
        around, leaf = self._around(block)
        shared = 0
        while shared < min(len(around), len(self._open)) and around[shared] is self._open[shared]:
            shared += 1
        self.close(shared)
        for scope in around[shared:]:
            self._open.append(scope)
            self.out.append(f"<{scope.tag}{_attributes(scope.element, KEPT.get(scope.tag, ()))}>")
        text = _inline(block, bool(block.scope.within & TAG_BITS["pre"]))
        if leaf is None and around and around[-1].tag in HOLDERS and around[-1].order not in self._begun:
            self._begun.add(around[-1].order)
            self.out.append(text)
        else:
            self.out.append(f"<{leaf or 'p'}>{text}</{leaf or 'p'}>")

    def close(self, shared: int) -> None:
        while len(self._open) > shared:
            self.out.append(f"</{self._open.pop().tag}>")

    def _around(self, block: Block) -> tuple[list[BlockScope], str | None]:
        """Return the elements to open around a block, outermost first, and the tag of the block itself."""
        chain = [
            scope for scope in upwards(block.scope) if scope.tag in STRUCTURE and self._is_structure(scope)
        ]
        leaf = chain[0].tag if chain and chain[0].tag in LEAVES else None
        kept = [scope for scope in chain if scope.tag not in LEAVES and scope.tag != "p"]
        return kept[::-1], leaf

    def _is_structure(self, scope: BlockScope) -> bool:
        """Whether the element is structure to a reader. Tables that only lay out the page are not."""
        if scope.tag not in {"table", "tr", "td", "th", "caption"}:
            return True
        table = next((up for up in upwards(scope) if up.tag == "table"), None)
        return table is not None and not self._is_layout(table)

    def _is_layout(self, table: BlockScope) -> bool:
        known = self._layout.get(table.order)
        if known is None:
            rows = table.element.iter("td", "th", "table")
            known = self._layout[table.order] = any(_is_column(one, table.element) for one in rows)
        return known


def _is_column(element: Element, table: Element) -> bool:
    if element.tag == "table":
        return element is not table
    return len(element.findall(".//p")) > MOST_IN_CELL or len("".join(element.itertext())) > LONGEST_CELL


def _attributes(element: Element, names: tuple[str, ...]) -> str:
    given = ((name, element.get(name)) for name in names)
    return "".join(f' {name}="{escape(value)}"' for name, value in given if value)


def _inline(block: Block, is_pre: bool) -> str:
    out: list[str] = []
    ends: list[str] = []
    for piece in block.pieces:
        if piece is None:
            out.append(ends.pop() if ends else "")
        elif isinstance(piece, str):
            out.append(("\n" if is_pre else "<br>") if piece == BREAK else escape(piece, quote=False))
        elif piece.tag == "img":
            out.append(f"<img{_attributes(piece, PICTURE)}>")
            ends.append("")
        else:
            tag = INLINE.get(piece.tag)
            out.append(f"<{tag}{_attributes(piece, KEPT.get(tag, ()))}>" if tag else "")
            ends.append(f"</{tag}>" if tag else "")
    return "".join([*out, *reversed(ends)]).removesuffix("<br>").strip()
