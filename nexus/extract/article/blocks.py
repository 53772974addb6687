"""Cuts a page into blocks: each is a run of text that no other block interrupts, with what surrounds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lxml.etree import _Element as Element

from nexus.extract.article import embeds
from nexus.extract.article.class_names import groups_of
from nexus.extract.elements import words
from nexus.extract.formulas import write_formula

#: Elements that hold no text for a reader.
SKIPPED = words(
    "script style noscript template svg head iframe object embed applet canvas audio video map area select "
    "option optgroup datalist textarea input progress meter frame frameset noframes link meta base basefont "
    "track param title dialog mjx-math"
)
#: The parser takes a `source` for an element that is closed: the picture is inside it.
INLINE = words(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr output q rp rt ruby s samp "
    "small span strike strong sub sup time tt u var wbr img picture blink marquee tspan rb rtc source "
    "mjx-container mjx-assistive-mml"
)
#: Elements that a reader sees as structure.
STRUCTURE = words(
    "h1 h2 h3 h4 h5 h6 p ul ol li blockquote pre table tr td th caption dl dt dd figure figcaption"
)
#: Tags that say something about everything inside them.
WITHIN = (
    "article",
    "main",
    "nav",
    "aside",
    "footer",
    "header",
    "form",
    "table",
    "ul",
    "blockquote",
    "figure",
    "p",
    "button",
    "section",
    "pre",
    "dl",
)
TAG_BITS = {tag: 1 << at for at, tag in enumerate(WITHIN)}
#: Marks the end of a line within a block.
BREAK = "\u2028"
#: A piece of a block: text, or an inline element that begins here. None ends the innermost one.
Piece: TypeAlias = "str | Element | None"


@dataclass(eq=False, slots=True)
class BlockScope:
    """An element that holds blocks: its names, and where it stands."""

    element: Element
    tag: str
    parent: BlockScope | None
    depth: int
    #: The groups (class_names.py) of its own class and id, and of all elements around it.
    own: int
    around: int
    #: The tags around it, its own included, as bits.
    within: int
    #: Equal for elements with the same tags and classes on their path.
    signature: int
    hidden: bool
    #: Its index among all scopes of the page; outer ones come first.
    order: int


@dataclass(eq=False, slots=True)
class Block:
    scope: BlockScope
    text: str
    linked: int
    links: int
    pieces: list[Piece]
    breaks: int
    images: int
    #: Whether it is something that the page shows in a frame, or a picture that it shows by a script.
    embeds: bool


class _Walk:
    """One walk over a page. Each flush ends a block."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.scopes: list[BlockScope] = []
        self.opened: list[Element] = []
        self.links = 0
        self._start()

    def _start(self) -> None:
        self.pieces: list[Piece] = list(self.opened)
        self.linked = self.link_count = self.breaks = self.images = 0
        self.solid = self.embeds = self.formulas = False

    def say(self, text: str | None) -> None:
        if text:
            self.pieces.append(text)
            if not text.isspace():
                self.solid = True
                if self.links:
                    self.linked += len(text.strip())

    def flush(self, scope: BlockScope) -> None:
        if self.solid or self.images or self.embeds:
            text = " ".join("".join(self._texts()).split())
            if text or self.images or self.embeds:
                block = Block(
                    scope,
                    text,
                    min(self.linked, len(text)),
                    self.link_count,
                    self.pieces,
                    self.breaks,
                    self.images,
                    self.embeds,
                )
                self.blocks.append(block)
        elif len(self.pieces) == len(self.opened):
            return
        self._start()

    def _texts(self) -> list[str]:
        if self.formulas:
            pieces = [_formula_text(piece) for piece in self.pieces]
            return list(filter(None, pieces))
        return [piece for piece in self.pieces if isinstance(piece, str)]

    def enter(self, element: Element, parent: BlockScope | None) -> BlockScope:
        tag = element.tag
        given = dict(element.items())
        own = _own_groups(given) if given else 0
        bit = TAG_BITS.get(tag, 0)
        order = len(self.scopes)
        if parent is None:
            scope = BlockScope(element, tag, None, 0, own, own, bit, hash(tag), False, order)
        else:
            signature = hash((parent.signature, tag, given.get("class")))
            hidden = parent.hidden or (bool(given) and _is_hidden(given))
            around, within = parent.around | own, parent.within | bit
            scope = BlockScope(
                element, tag, parent, parent.depth + 1, own, around, within, signature, hidden, order
            )
        self.scopes.append(scope)
        return scope

    def inside(self, element: Element, scope: BlockScope) -> None:
        self.say(element.text)
        for child in element:
            tag = child.tag
            if tag in INLINE:
                self.inline(child, tag, scope)
            elif tag == "br":
                self.line_break(scope)
            elif tag == "math":
                self.formula(child)
            elif tag in embeds.TAGS or tag == "noscript":
                self.embed(child, scope)
            elif tag not in SKIPPED and isinstance(tag, str):
                self.flush(scope)
                within = self.enter(child, scope)
                self.inside(child, within)
                self.flush(within)
            self.say(child.tail)

    def inline(self, element: Element, tag: str, scope: BlockScope) -> None:
        name = element.get("class", "")
        if tag == "img":
            if "mwe-math-fallback" not in name:  # the formula itself stands beside it
                self.images += 1
                self.pieces += (element, None)
            return
        if "katex-html" in name:  # the same formula once more, as boxes
            return
        self.pieces.append(element)
        self.opened.append(element)
        is_link = tag == "a"
        self.links += is_link
        self.link_count += is_link
        self.inside(element, scope)
        self.links -= is_link
        self.opened.pop()
        self.pieces.append(None)

    def formula(self, element: Element) -> None:
        self.pieces += (element, None)
        self.solid = self.formulas = True

    def embed(self, element: Element, scope: BlockScope) -> None:
        """What stands in a frame is a block of its own."""
        shown = late_picture(element) if element.tag == "noscript" else element
        if shown is None or (shown is element and embeds.find_embed(element) is None):
            return
        self.flush(scope)
        self.pieces += (shown, None)
        self.embeds = True
        self.flush(scope)

    def line_break(self, scope: BlockScope) -> None:
        """One break starts a new line, two start a new block."""
        last = next((piece for piece in reversed(self.pieces) if piece is None or not _is_blank(piece)), None)
        if last == BREAK:
            self.flush(scope)
        else:
            self.breaks += 1
            self.pieces.append(BREAK)


def _formula_text(piece: Piece) -> str | None:
    if piece is None or isinstance(piece, str):
        return piece
    return write_formula(piece).text if piece.tag == "math" else None


def late_picture(element: Element) -> Element | None:
    """Return the picture in a `noscript`, if the page has nothing better to show for it than a placeholder."""
    pictures = list(element.iter("img"))
    before = element.getprevious()
    if len(pictures) != 1 or (before is not None and any(map(_has_source, before.iter("img")))):
        return None
    return pictures[0]


def _has_source(picture: Element) -> bool:
    given = (
        picture.get(name, "") for name in ("src", "data-src", "data-original", "data-lazy-src", "srcset")
    )
    return any(source and not source.startswith("data:") for source in given)


def _is_blank(piece: Piece) -> bool:
    return isinstance(piece, str) and piece != BREAK and piece.isspace()


def _own_groups(given: dict[str, str]) -> int:
    names = " ".join([given[key] for key in ("class", "id", "role", "itemprop") if key in given])
    return groups_of(names) if names else 0


def _is_hidden(given: dict[str, str]) -> bool:
    style = given.get("style", "").replace(" ", "").lower()
    unseen = "display:none" in style or "visibility:hidden" in style
    return unseen or "hidden" in given or given.get("aria-hidden") == "true"


def cut_blocks(body: Element) -> tuple[list[Block], list[BlockScope]]:
    """Return the blocks of a page in reading order, and the elements around them, outer ones first."""
    walk = _Walk()
    scope = walk.enter(body, None)
    walk.inside(body, scope)
    walk.flush(scope)
    return walk.blocks, walk.scopes


def upwards(scope: BlockScope | None) -> Iterator[BlockScope]:
    """Yield a scope and everything around it, from the inside out."""
    while scope is not None:
        yield scope
        scope = scope.parent
