"""Writes the kept blocks as html, inside the structural elements they stood in and no others."""

from __future__ import annotations

from html import escape

from lxml import etree
from lxml.etree import _Element as Element

from nexus.extract.article.blocks import BREAK, STRUCTURE, TAG_BITS, Block, BlockScope, upwards
from nexus.extract.article.embeds import TAGS, find_embed
from nexus.extract.article.notes import links_within
from nexus.extract.elements import words

INLINE = {
    "b": "strong",
    "i": "em",
    "kbd": "code",
    "samp": "code",
    "tt": "code",
    "strike": "s",
    **{
        tag: tag
        for tag in words("a em strong code sub sup s del ins mark q cite abbr time u var small ruby rt rp")
    },
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
WHOLE = TAGS | {"img", "math"}
#: They hold text directly. In other elements it stands in paragraphs.
HOLDERS = words("li td th dd")
LEAVES = words("h1 h2 h3 h4 h5 h6 pre figcaption caption dt")
#: A cell with more than this in it is a column of the page, not of a table.
MOST_IN_CELL = 4
LONGEST_CELL = 1500


def render_blocks(blocks: list[Block]) -> str:
    writer = _Writer({name for _, name in links_within(blocks)})
    for block in blocks:
        writer.write(block)
    writer.close(0)
    return "".join(writer.out)


class _Writer:
    def __init__(self, targets: set[str]) -> None:
        self.out: list[str] = []
        #: The ids that links lead to, and that are still to be written.
        self._targets = targets
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
        begun = [scope.element for scope in upwards(block.scope)][::-1] if self._targets else []
        text = "".join(map(self._anchor, begun)) + self._inline(block)
        if leaf is None and around and around[-1].tag in HOLDERS and around[-1].order not in self._begun:
            self._begun.add(around[-1].order)
            self.out.append(text)
        else:
            self.out.append(f"<{leaf or 'p'}>{text}</{leaf or 'p'}>")

    def close(self, shared: int) -> None:
        while len(self._open) > shared:
            self.out.append(f"</{self._open.pop().tag}>")

    def _anchor(self, element: Element) -> str:
        """Write the id of an element that begins here, if something leads there."""
        name = element.get("id") or element.get("name")
        if name is None or name not in self._targets:
            return ""
        self._targets.remove(name)
        return f'<span id="{escape(name)}"></span>'

    def _inline(self, block: Block) -> str:
        end_of_line = "\n" if block.scope.within & TAG_BITS["pre"] else "<br>"
        out: list[str] = []
        ends: list[str] = []
        for piece in block.pieces:
            if piece is None:
                out.append(ends.pop() if ends else "")
            elif isinstance(piece, str):
                out.append(end_of_line if piece == BREAK else escape(piece, quote=False))
            else:
                tag = INLINE.get(piece.tag)
                begin = f"<{tag}{_attributes(piece, KEPT.get(tag, ()))}>" if tag else ""
                out.append(self._anchor(piece) + (_whole(piece) if piece.tag in WHOLE else begin))
                ends.append(f"</{tag}>" if tag else "")
        return "".join([*out, *reversed(ends)]).removesuffix("<br>").strip()

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


def _whole(element: Element) -> str:
    """Write an element of which nothing else in the block is a part."""
    if element.tag == "img":
        return f"<img{_picture_attributes(element)}>"
    if element.tag == "math":
        return str(etree.tostring(element, encoding="unicode", with_tail=False))
    embed = find_embed(element)
    return f'<a href="{escape(embed.href)}">{escape(embed.label)}</a>' if embed else ""


def _picture_attributes(element: Element) -> str:
    """A picture in several sizes may have its addresses in the elements beside it."""
    around = next(element.iterancestors("picture"), None)
    beside = () if around is None else around.iter("source")
    given = next((one.get("srcset") or one.get("data-srcset") for one in beside), None)
    more = f' srcset="{escape(given)}"' if given and not element.get("srcset") else ""
    return _attributes(element, PICTURE) + more
