"""Reads web pages as articles.

page      parses a page, within limits       blocks       cuts the tree into blocks
referees  what other extractors keep         features     describes blocks in numbers
forest    judges which blocks are content    render       writes those blocks as html
figures   pictures with their captions       notes        footnotes
embeds    players and posts in frames        heads        meta tags and linked data
facts     title, author, date and the like   class_names  what classes and ids say
gates     refuses pages that are no article  cues         words of the lines around articles
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from urllib.parse import urljoin

from lxml.etree import _Element as Element

from nexus.errors import EmptyContent, PageTooLarge
from nexus.extract import Extraction, Hints
from nexus.extract.article import features, gates
from nexus.extract.article.blocks import Block, BlockScope, cut_blocks, upwards
from nexus.extract.article.facts import (
    LONGEST_BYLINE,
    FactSources,
    gather_facts,
    page_title,
    repeats_byline,
    stated_byline,
)
from nexus.extract.article.figures import with_figures
from nexus.extract.article.forest import Forest, load_forest
from nexus.extract.article.heads import read_head
from nexus.extract.article.notes import notes_of
from nexus.extract.article.page import body_of, lighten, parse_page, without_ballast
from nexus.extract.article.referees import ask_libraries
from nexus.extract.article.render import render_blocks
from nexus.extract.charsets import decode_page
from nexus.extract.markup import clean_markup

LARGEST = 2 * 1024 * 1024
CELLS = frozenset({"td", "th"})
LONGEST_CELL = 200
#: With a smaller share of the article in sight, what is hidden is the article.
LEAST_SEEN = 0.3
LONGEST_ADDRESS = 2048

FOREST = load_forest()
#: A page of the usual kind, and one that marks neither its article nor its date: together they need most of what the
#: libraries make or import only when it is needed.
SAMPLES = (
    """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>High tide</title><meta name="author"
content="Ada Harbour"><meta property="article:published_time" content="2026-01-31T08:00:00Z"><script
type="application/ld+json">{"@type": "NewsArticle", "headline": "High tide", "datePublished": "2026-01-31"}</script>
</head><body><nav><ul><li><a href="/">Home</a></li><li><a href="/news">News</a></li></ul></nav><article><h1>High
tide</h1><p class="byline">By Ada Harbour, 31 January 2026</p>"""
    + "<p>The water rose for <em>six hours</em>, as it does, and then <a href='/tides'>fell again</a>.</p>"
    * 12
    + """<h2>Heights</h2><table><tr><th>Port</th><td>5.31</td></tr></table><ul><li>A post</li></ul><figure><img
src="/a.png" alt="A post"></figure><pre>one</pre></article><footer><p>© The Coast</p></footer></body></html>""",
    """<html><head><title>Low tide</title><script type="application/ld+json">{"@type": "NewsArticle",
"datePublished": "2026-01-31T08:00:00Z"}</script></head><body><div><h1>Low tide</h1>"""
    + "<div>The water rose for six hours, as it does, and then fell again.</div>" * 12
    + "</div></body></html>",
)


@dataclass(frozen=True)
class PageReading:
    """An extraction, and what the gates judge it by."""

    extraction: Extraction
    gated: gates.GatedPage


@dataclass(frozen=True)
class PageBlocks:
    """A page cut into blocks, and the elements that they stand in."""

    body: Element
    blocks: list[Block]
    scopes: list[BlockScope]

    def render(self, kept: set[Block]) -> str:
        """Return the html of the kept texts, with the notes that they refer to and the figures among them."""
        noted = kept | notes_of(self.blocks, [block for block in self.blocks if block in kept], self.body)
        return render_blocks(with_figures(self.blocks, self.scopes, noted))


def read_article(data: bytes, hints: Hints) -> Extraction:
    """Raises PageTooLarge, EmptyContent, BlockedPage or LoginWall if there is no article to be had."""
    html = decode_page(data, hints.charset)
    if len(data) > LARGEST:
        html = without_ballast(html)
        if len(html.encode("utf-8", "replace")) > LARGEST:
            raise PageTooLarge
    reading = read_page(html, hints.url)
    gates.require_article(reading.gated)
    return reading.extraction


def warm_up() -> None:
    """Do once what the first page of a process would wait for: every later process is a copy of this one."""
    for sample in SAMPLES:
        read_article(sample.encode(), Hints("https://example.com/tides", "text/html", "utf-8"))


def read_page(html: str, url: str | None, forest: Forest = FOREST) -> PageReading:
    """Read a page as an article, whatever it is; the gates come after. Raises EmptyContent if nothing is there."""
    root, html = parse_page(html)
    if root is None:
        raise EmptyContent
    head, base_url, body = read_head(root), _base(root, url), body_of(root)
    url = url or head.own_address()
    lighten(root)
    blocks, scopes = cut_blocks(body)
    kept_by = ask_libraries(root, html)
    texts = [block for block in blocks if block.text]
    judged = forest.likelihoods(
        features.describe_blocks(texts, scopes, features.describe_page(head, url, kept_by))
    )
    likely = dict(zip(texts, judged, strict=True))
    likely |= dict.fromkeys(_signatures(likely, stated_byline(head), forest.threshold), 0.0)
    content = _content(PageBlocks(body, blocks, scopes), likely, kept_by, forest.threshold)
    fragment, outline = clean_markup(content, base_url, 0)
    title, text = page_title(head, body, url), fragment.text
    visible = " ".join(block.text for block in blocks)
    facts = gather_facts(FactSources(root, head, blocks, text, url, base_url))
    return PageReading(
        Extraction(title, (fragment,), facts, outline, canonical_url=_absolute(head.canonical, base_url)),
        gates.GatedPage(text, visible, title or "", html, root, head),
    )


def _absolute(address: str | None, base_url: str | None) -> str | None:
    """Return an address of the page's own; None if it has none, or one that makes no sense."""
    if address is None or len(address) > LONGEST_ADDRESS:
        return None
    try:
        return urljoin(base_url or "", address)
    except ValueError:
        return None


def _base(root: Element, url: str | None) -> str | None:
    """Return the address that the page's own links are relative to."""
    element = root.find(".//base[@href]")
    given = str(element.get("href")) if element is not None else None
    if not given:
        return url
    try:
        return urljoin(url or "", given)
    except ValueError:
        return url


def _signatures(likely: dict[Block, float], byline: str | None, threshold: float) -> Iterator[Block]:
    """Yield the lines between title and text that repeat the byline, which is shown above the text."""
    for block, likelihood in likely.items():
        if len(block.text) > LONGEST_BYLINE and likelihood > threshold:
            return
        if repeats_byline(block, byline):
            yield block


def _content(page: PageBlocks, likely: dict[Block, float], kept_by: tuple[str, ...], threshold: float) -> str:
    """Return the html of what is kept: never nothing, if the page has text."""
    for least in (threshold, threshold / 3):
        kept = _visible({block for block in likely if likely[block] > least})
        if _size(kept) >= gates.LEAST:
            return page.render(kept | _rest_of_tables(likely, kept))
    # Text that a page carries only in scripts is in no block.
    elsewhere = max(kept_by, key=len)
    if len(elsewhere) > max(_size(kept), gates.LEAST):
        return "".join(f"<p>{escape(line)}</p>" for line in elsewhere.splitlines() if line.strip())
    return page.render(_likeliest(likely))


def _size(kept: Iterable[Block]) -> int:
    return sum(len(block.text) for block in kept)


def _visible(kept: set[Block]) -> set[Block]:
    """Drop what the page hides, if the rest is enough. It is for later, or for machines.

    If nearly everything is hidden, a script would show it: to leave it out would be to leave out the article.
    """
    seen = {block for block in kept if not block.scope.hidden}
    return seen if _size(seen) >= max(gates.LEAST, LEAST_SEEN * _size(kept)) else kept


def _rest_of_tables(blocks: Iterable[Block], kept: set[Block]) -> set[Block]:
    """Return every cell of the tables of which a third is kept: one cell alone says nothing. Tables with long texts lay
    out a page, and are left out."""
    tables: dict[BlockScope, list[Block]] = {}
    for block in blocks:
        if block.scope.tag in CELLS:
            table = next((scope for scope in upwards(block.scope) if scope.tag == "table"), block.scope)
            tables.setdefault(table, []).append(block)
    return {
        cell
        for cells in tables.values()
        if max(len(cell.text) for cell in cells) <= LONGEST_CELL
        and 3 * _size(kept.intersection(cells)) >= _size(cells)
        for cell in cells
    }


def _likeliest(likely: dict[Block, float]) -> set[Block]:
    """Return the best blocks of a page that has no good ones, until they are enough."""
    kept: set[Block] = set()
    for block in sorted(likely, key=likely.__getitem__, reverse=True):
        if _size(kept) >= gates.LEAST:
            break
        kept.add(block)
    return kept
