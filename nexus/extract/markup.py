"""Turns html from strangers into clean html for reading, and the plain text that goes with it.

nh3 removes what could do harm, and the writer writes what is left, so that an offset in the text is an offset in the
html. Every id, address and attribute of the source is checked or rewritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from html import escape, unescape
from itertools import islice
from urllib.parse import unquote

import ada_url
import nh3
from lxml import etree

from nexus.extract import Fragment, Heading, formulas
from nexus.extract.elements import BARE, DROPPED, INLINES, KEPT_BLOCKS, LOOSE_BLOCKS, SYNONYMS, VOID
from nexus.extract.nesting import cut_nesting
from nexus.extract.writer import CELL, HEADINGS, LINE, PARAGRAPH, Nesting, Node, Writer

#: Returns where a link leads, or the name that a picture is kept under. None drops the link or the picture.
Resolve = Callable[[str], str | None]

LONGEST_HEADING = 500
LONGEST_URL = 8192
#: How many pieces of an element are searched for its first word.
MOST_CHUNKS = 1000
LARGEST_SIZE = 10_000
LARGEST_SPAN = 1000

#: What separates two elements of these kinds; all others are separated by an empty line.
SMALL_GAPS = dict.fromkeys(("td", "th"), CELL) | dict.fromkeys(
    ("li", "dt", "dd", "tr", "thead", "tbody", "tfoot", "caption"), LINE
)

IMAGE_SOURCES = ("src", "data-src", "data-original", "data-lazy-src")
ATTRIBUTES = {
    "*": {"id", "lang", "dir"},
    "a": {"href", "name"},
    "abbr": {"title"},
    "acronym": {"title"},
    "img": {*IMAGE_SOURCES, "srcset", "data-srcset", "alt", "width", "height", "style", "hidden"},
    "li": {"value"},
    "ol": {"start", "reversed", "type"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
#: The values that attributes may have to be kept unchanged.
PLAIN_ATTRIBUTES = {
    "lang": re.compile(r"[A-Za-z0-9-]{1,35}"),
    "dir": re.compile(r"ltr|rtl|auto"),
    "title": re.compile(r".{1,500}", re.DOTALL),
    "datetime": re.compile(r"[0-9A-Za-z:+. -]{1,40}"),
    "value": re.compile(r"-?\d{1,6}"),
    "start": re.compile(r"-?\d{1,6}"),
    "reversed": re.compile(r".{0,8}"),
    "type": re.compile(r"[1aAiI]"),
    "scope": re.compile(r"col|row|colgroup|rowgroup"),
}

SURROGATE = re.compile("[\ud800-\udfff]")
CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
#: Entities that are common in prose. Angle brackets are left alone: a text that escapes them is about html.
LEFTOVER = re.compile(
    r"&(?:amp|nbsp|quot|apos|[lr][sd]quo|[mn]dash|hellip|#(?:39|160|8\d{3}|x27|xa0|x20[0-9a-f]{2}));",
    re.IGNORECASE,
)
SAFE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:width|height)\s*:\s*[01](?:px)?\s*(?:;|$)", re.IGNORECASE
)

_CLEANER = nh3.Cleaner(
    tags=set(KEPT_BLOCKS | LOOSE_BLOCKS - {"body"} | INLINES | BARE | set(SYNONYMS)) | formulas.HIDDEN_NAMES,
    clean_content_tags=set(DROPPED),
    attributes=ATTRIBUTES | formulas.HIDDEN_ATTRIBUTES,
    link_rel=None,
    url_schemes={"http", "https", "mailto"},
)
_PARSER = etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)


def clean_markup(
    html: str,
    base_url: str | None,
    position: int,
    asset: Resolve | None = None,
    link: Resolve | None = None,
) -> tuple[Fragment, tuple[Heading, ...]]:
    """Return the fragment for a position, whose text may be empty, and its headings in order.

    Pictures keep their address, or are called `asset:` and the name that `asset` returns. Links are resolved against
    `base_url`, or by `link`; with `link` every id is kept, because other fragments may link here.
    """
    html = formulas.hide_formulas(SURROGATE.sub("\ufffd", html))
    safe = CONTROL.sub("", _CLEANER.clean(cut_nesting(html)))
    # Cleaning can make disordered html deeper than its source, and the parser drops what is too deep for it.
    root = etree.HTML(f"<body>{cut_nesting(safe)}</body>", _PARSER)
    page = _CleanPage(root, base_url, position, asset, link)
    page.walk(root)
    clean_html, text = page.writer.finish()
    return Fragment(text, clean_html), tuple(page.writer.headings)


def absolute_url(
    address: str, base_url: str | None, schemes: tuple[str, ...] = ("http:", "https:")
) -> str | None:
    """Return the absolute address, or None if it is not valid or has another scheme."""
    if len(address) > LONGEST_URL:
        return None
    try:
        url = ada_url.join_url(base_url, address) if base_url else ada_url.normalize_url(address)
    except ValueError:
        return None
    return str(url) if url.startswith(schemes) and len(url) <= LONGEST_URL else None


def outbound_url(href: str, base_url: str | None = None) -> str | None:
    """Return the absolute address of a link that may leave the document: http, https or mailto."""
    return absolute_url(href, base_url, ("http:", "https:", "mailto:"))


def unescape_leftovers(text: str) -> str:
    """Replace entities that a page has escaped twice, and that a reader would see as they are written."""
    return LEFTOVER.sub(lambda found: unescape(found[0]), text) if "&" in text else text


def safe_id(name: str) -> str:
    """Return an id for the source's own id that is safe in html, the same each time."""
    return name if SAFE_ID.fullmatch(name) else "x" + hashlib.sha256(name.encode()).hexdigest()[:16]


class _CleanPage:
    """One walk over a cleaned tree."""

    def __init__(
        self,
        root: etree._Element,
        base_url: str | None,
        position: int,
        asset: Resolve | None,
        link: Resolve | None,
    ) -> None:
        self.prefix = f"f{position}-"
        self.writer = Writer(self.prefix)
        self._base_url = base_url
        self._asset = asset
        self._link = link
        names = {str(name) for name in root.xpath("//@id | //a/@name")}
        linked = {self._within(str(href).strip()) for href in root.xpath("//a/@href")}
        self._targets = names if link else names & linked
        self._taken = {safe_id(name) for name in names}
        self._headings = 0

    def walk(self, root: etree._Element) -> None:
        writer = self.writer
        place = Nesting((Node("p"),))
        around: list[tuple[Nesting, int]] = []
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            if event == "start" and element.tag == formulas.HIDDEN_FORMULA:
                around.append((place, -1))
                writer.formula(place.text(), *formulas.write_formula(element))
                walk.skip_subtree()
                continue
            if event == "start":
                gap = _gap(element)
                around.append((place, gap))
                place = self._enter(element, place, gap, len(around))
                content = element.text
            else:
                depth = len(around)
                place, gap = around.pop()
                if gap >= 0:
                    writer.border(depth, gap)
                content = element.tail
            if content:
                writer.text(place, content if _is_code(place) else unescape_leftovers(content))

    def _enter(self, element: etree._Element, place: Nesting, gap: int, depth: int) -> Nesting:
        tag = SYNONYMS.get(element.tag, element.tag)
        if tag in VOID:
            self._bare(element, place, depth)
            return place
        name = self._name(element) if self._targets else None
        if gap >= 0:
            self.writer.border(depth, gap)
            return place if place.firm else place.block(self._block(element, name))
        if tag not in INLINES:
            return place
        attributes = self._link_attributes(element) if tag == "a" else _attributes(element)
        return place if attributes is None else place.inline(Node(tag, attributes, name))

    def _block(self, element: etree._Element, name: str | None) -> Node:
        if element.tag in HEADINGS and _is_heading(element):
            return Node(element.tag, _attributes(element), name or self._heading_name())
        if element.tag in HEADINGS or element.tag in LOOSE_BLOCKS or not _is_block(element):
            return Node("p", "", name)
        return Node(element.tag, _attributes(element), name)

    def _bare(self, element: etree._Element, place: Nesting, depth: int) -> None:
        if element.tag == "br":
            self.writer.line_break()
        elif element.tag == "hr" and not place.firm:
            self.writer.border(depth, PARAGRAPH)
            self.writer.picture(place.rule(), "<hr>")
            self.writer.border(depth, PARAGRAPH)
        elif element.tag == "img":
            self._image(element, place)

    def _image(self, element: etree._Element, place: Nesting) -> None:
        source = None if _is_tracker(element) else self._image_source(element)
        if source is None:
            return
        alt = escape(" ".join((element.get("alt") or "").split())[:1000])
        size = "".join(_number(element, name, LARGEST_SIZE) for name in ("width", "height"))
        self.writer.picture(
            place.text(),
            f'<img src="{escape(source)}" alt="{alt}"{size} loading="lazy" referrerpolicy="no-referrer">',
        )

    def _image_source(self, element: etree._Element) -> str | None:
        candidates = [element.get(name) for name in IMAGE_SOURCES]
        candidates += [(element.get(name) or "").strip().split(" ")[0] for name in ("srcset", "data-srcset")]
        for candidate in filter(None, candidates):
            if self._asset is not None:
                name = self._asset(candidate)
                found = name and f"asset:{name}"
            else:
                found = absolute_url(candidate, self._base_url)
            if found:
                return found
        return None

    def _name(self, element: etree._Element) -> str | None:
        name = element.get("id") or (element.get("name") if element.tag == "a" else None)
        if not name or name not in self._targets:
            return None
        return safe_id(name) if self.writer.anchor(safe_id(name)) else None

    def _heading_name(self) -> str:
        self._headings += 1
        while f"h{self._headings}" in self._taken:
            self._headings += 1
        return f"h{self._headings}"

    def _link_attributes(self, element: etree._Element) -> str | None:
        """Return None if the link leads nowhere; its text stays."""
        href = (element.get("href") or "").strip()
        leads = (self._link or self._lead)(href) if href else None
        if not leads:
            return None
        return f' href="{escape(leads)}" rel="noopener noreferrer nofollow"'

    def _lead(self, href: str) -> str | None:
        name = self._within(href)
        if href == "#":
            return None
        if name in self._targets:
            return f"#{self.prefix}{safe_id(name)}"
        return outbound_url(href, self._base_url)

    def _within(self, href: str) -> str:
        """Return the id that a link names, if it leads to this page, else an empty string."""
        page, _, name = href.partition("#")
        here = (self._base_url or "").partition("#")[0]
        if name and page and (not self._base_url or absolute_url(page, self._base_url) != here):
            return ""
        return unquote(name)


def _is_code(place: Nesting) -> bool:
    return place.verbatim or any(node.tag in {"code", "kbd", "samp"} for node in place.inlines)


def _is_heading(element: etree._Element) -> bool:
    """Whether it is short enough for a heading. One that is never closed swallows the rest of the page."""
    length = 0
    for chunk in element.itertext():
        length += len(chunk)
        if length > LONGEST_HEADING:
            return False
    return True


def _is_block(element: etree._Element) -> bool:
    """Whether it can stay the block it is. A `pre` that is never closed swallows the page; without text, it is an
    empty frame."""
    if element.tag != "pre":
        return True
    chunks = islice(element.itertext(), MOST_CHUNKS)
    return any(map(str.strip, chunks)) and next(element.iter("p", *HEADINGS), None) is None


def _gap(element: etree._Element) -> int:
    """Return the gap around a block, or -1 if the element is not a block."""
    tag = element.tag
    if tag in SMALL_GAPS:
        return SMALL_GAPS[tag]
    if tag in {"ul", "ol"} and element.getparent().tag == "li":
        return LINE
    return PARAGRAPH if tag in KEPT_BLOCKS or tag in LOOSE_BLOCKS else -1


def _attributes(element: etree._Element) -> str:
    given = element.items()
    if not given:
        return ""
    kept = [
        f' {name}="{escape(value)}"'
        for name, value in given
        if name in PLAIN_ATTRIBUTES and PLAIN_ATTRIBUTES[name].fullmatch(value)
    ]
    kept += [_number(element, name, LARGEST_SPAN) for name in ("colspan", "rowspan")]
    return "".join(kept)


def _number(element: etree._Element, name: str, largest: int) -> str:
    value = (element.get(name) or "").strip().removesuffix("px")
    fits = value.isascii() and value.isdigit() and len(value) < 6 and 1 <= int(value) <= largest
    return f' {name}="{int(value)}"' if fits else ""


def _is_tracker(element: etree._Element) -> bool:
    sizes = [(element.get(name) or "").strip().removesuffix("px") for name in ("width", "height")]
    return (
        any(size in {"0", "1"} for size in sizes)
        or element.get("hidden") is not None
        or HIDDEN.search(element.get("style") or "") is not None
    )
