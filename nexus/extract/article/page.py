"""Parses a page within limits: parsers lose text below a certain depth, and take minutes over some shapes of markup."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from lxml import etree
from lxml.etree import _Element as Element
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from nexus.extract.elements import words

#: The parser stops at 256 and drops what follows.
DEEPEST = 120
#: A page with more elements keeps its text and loses its markup.
MOST_ELEMENTS = 60_000
#: A tag with more attributes loses them: the parser compares each one with all others.
MOST_ATTRIBUTES = 250

VOID = words("area base br col embed hr img input link meta source track wbr param frame")
#: They end when the next one begins.
SELF_CLOSING = words("p li dt dd tr td th thead tbody tfoot colgroup caption option optgroup rt rp")
UNSEEN = re.compile(
    r"<(script|style|svg|template|noscript)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL | re.IGNORECASE
)

_LINKED = re.compile(r"\A<script[^>]*json", re.IGNORECASE)
_DATA = re.compile(r"data:[a-z0-9.+/-]{1,100}+[;,][^\"'\s<>)]{200,}+", re.IGNORECASE)

#: One class for all elements. lxml.html would look one up by tag, in Python, whenever an element is touched.
_PLAIN = etree.ElementDefaultClassLookup(element=HtmlElement)
_NO_CONTROLS = bytes(code if code >= 32 or code in b"\t\n\r" else 32 for code in range(256))
_LONG_TAG = re.compile(r"<[a-zA-Z][^<>]{2000}")
_ATTRIBUTE = r"""[\s/]++[^\s=>/]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+))?+"""
_CROWDED = re.compile(rf"(<[a-zA-Z][^\s/>]*+)(?:{_ATTRIBUTE}){{{MOST_ATTRIBUTES},}}+")
_TAG = re.compile(r"<(/?[a-zA-Z][^\s/>]*+)[^>]*+>?")
_BLOCK_TAG = re.compile(
    r"</?(?:p|div|li|tr|h[1-6]|br|section|article|blockquote|ul|ol|table|pre)\b[^>]*>", re.IGNORECASE
)
_ANY_TAG = re.compile(r"<[/!?a-zA-Z][^>]*>?")


def parse_page(html: str) -> tuple[Element | None, str]:
    """Return the tree of a page, or None if the page is empty, and the markup that the tree was made of."""
    html = _writable(html)
    if _LONG_TAG.search(html):
        html = _CROWDED.sub(r"\1", html)
    if html.count("<") > 2 * MOST_ELEMENTS:
        html = _bare(html)
    root, lost = _tree(html)
    if lost:
        html = _TAG.sub(_DepthLimit(), html)
        root, _ = _tree(html)
    return root, html


def without_ballast(html: str) -> str:
    """Remove scripts, styles, comments and pictures in addresses, which can be most of a page.

    Linked data stays: it may hold the only copy of the text. The time grows with the length of the page alone.
    """
    return _DATA.sub(
        "data:,", UNSEEN.sub(lambda found: found[0] if _LINKED.search(found[0][:200]) else " ", html)
    )


def _writable(html: str) -> str:
    """Drop characters that no tree can hold. A byte table is 1.9 times as fast as a regular expression."""
    html = html.encode("utf-8", "replace").translate(_NO_CONTROLS).decode()
    return html.replace("\ufffe", " ").replace("\uffff", " ")


def lighten(root: Element) -> None:
    """Remove what nobody reads, once the head is read: the referees copy the tree several times."""
    etree.strip_elements(root, "style", "svg", "template", with_tail=False)
    for script in list(root.iter("script")):
        # Linked data may hold the only copy of the text.
        if "json" not in (script.get("type") or "") and script.getparent() is not None:
            script.drop_tree()


def _tree(html: str) -> tuple[Element | None, bool]:
    """Return the tree, and whether the parser gave up because of its depth."""
    parser = HTMLParser(
        collect_ids=False, default_doctype=False, encoding="utf-8", remove_comments=True, remove_pis=True
    )
    parser.set_element_class_lookup(_PLAIN)
    try:
        root = document_fromstring(html.encode(), parser=parser)
    except (etree.ParserError, ValueError):
        return None, False
    return root, any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log)


def body_of(root: Element) -> Element:
    found = root.find("body")
    return root if found is None else found


class _DepthLimit:
    """Removes the tags of elements that are too deep. Their content stays."""

    def __init__(self) -> None:
        self._depth = 0
        self._opened: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()

    def __call__(self, found: re.Match[str]) -> str:
        name = found[1].lstrip("/").lower()
        if name in VOID or name in SELF_CLOSING:
            return found[0]
        kept = self._end(name) if found[1][0] == "/" else self._start(name)
        return found[0] if kept else " "

    def _start(self, name: str) -> bool:
        if self._depth >= DEEPEST and name not in {"script", "style"}:
            self._skipped[name] += 1
            return False
        self._opened[name] += 1
        self._depth += 1
        return True

    def _end(self, name: str) -> bool:
        if self._skipped[name]:
            self._skipped[name] -= 1
            return False
        if self._opened[name]:
            self._opened[name] -= 1
            self._depth -= 1
        return True


def _bare(html: str) -> str:
    """Reduce a page with more elements than anybody would write to plain paragraphs."""
    head, _, rest = html.partition("<body") if "<body" in html else ("", "", html)
    return f"{head[:100_000]}<body>{''.join(_paragraphs(rest))}"


def _paragraphs(html: str) -> Iterator[str]:
    """Join lines of text into paragraphs."""
    held: list[str] = []
    size = 0
    for line in _BLOCK_TAG.split(UNSEEN.sub(" ", html)):
        text = " ".join(_ANY_TAG.sub(" ", line).split())
        if text:
            held.append(text.replace("<", "&lt;"))
            size += len(text)
        if size > 500:
            yield f"<p>{' '.join(held)}</p>"
            held, size = [], 0
    if held:
        yield f"<p>{' '.join(held)}</p>"
