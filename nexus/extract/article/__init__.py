"""A web page, read as an article.

charset   bytes into characters          page      characters into a tree, within limits
blocks    the tree as a row of blocks    referees  what other extractors keep
features  blocks as numbers              forest    which blocks are content
render    those blocks as html           gates     pages that must not be saved
titles, facts, dates, heads              what the page says of itself
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from urllib.parse import urljoin

from lxml.etree import _Element as Element

from nexus.errors import EmptyContent, PageTooLarge
from nexus.extract import Extraction, Hints
from nexus.extract.article import facts, features, forest, gates, referees
from nexus.extract.article.blocks import Block, Scope, cut, upwards
from nexus.extract.article.charset import decode
from nexus.extract.article.heads import Head, read_head
from nexus.extract.article.page import body_of, lighten, parse
from nexus.extract.article.render import render
from nexus.extract.article.titles import title
from nexus.extract.markup import clean

LARGEST = 2 * 1024 * 1024
CELLS = frozenset({"td", "th"})
LONGEST_CELL = 200

MODEL = forest.load()


@dataclass(frozen=True)
class Reading:
    """What was made of a page, and what the gates judge it by."""

    extraction: Extraction
    seen: gates.Seen


def read(data: bytes, hints: Hints) -> Extraction:
    """Raises PageTooLarge, EmptyContent, BlockedPage or LoginWall where there is no article to be had."""
    if len(data) > LARGEST:
        raise PageTooLarge
    reading = look(decode(data, hints.charset), hints.url)
    gates.check(reading.seen)
    return reading.extraction


def look(html: str, url: str | None) -> Reading:
    """What an article would be made of this page, whatever the page is."""
    root, html = parse(html)
    if root is None:
        raise EmptyContent
    head, base_url, body = read_head(root), _base(root, url), body_of(root)
    lighten(root)
    blocks, scopes = cut(body)
    kept_by = referees.ask(root, html)
    content = _content(blocks, _judged(blocks, scopes, head, url, kept_by), kept_by)
    fragment, outline = clean(content, base_url, 0)
    name, text = title(head, body), fragment.text
    visible = " ".join(block.text for block in blocks)
    return Reading(
        Extraction(
            name, (fragment,), facts.gather(facts.Source(root, head, blocks, text, url, base_url)), outline
        ),
        gates.Seen(text, visible, name or "", html, root, head),
    )


def _base(root: Element, url: str | None) -> str | None:
    """Where the page's own links lead from."""
    element = root.find(".//base[@href]")
    given = str(element.get("href")) if element is not None else None
    if not given:
        return url
    try:
        return urljoin(url or "", given)
    except ValueError:
        return url


def _judged(
    blocks: list[Block], scopes: list[Scope], head: Head, url: str | None, kept_by: tuple[str, ...]
) -> dict[Block, float]:
    """How likely each block with text is content."""
    texts = [block for block in blocks if block.text]
    if not texts:
        return {}
    page = features.Page(
        features.squeeze(head.title or ""), tuple(map(features.squeeze, kept_by)), features.kinds(head, url)
    )
    likely = MODEL.judge(features.describe(texts, scopes, page))
    return dict(zip(texts, likely, strict=True))


def _content(blocks: list[Block], likely: dict[Block, float], kept_by: tuple[str, ...]) -> str:
    """The html of what is kept. Never nothing where there is text."""
    for threshold in (MODEL.threshold, MODEL.threshold / 3):
        kept = _visible({block for block in likely if likely[block] > threshold})
        if _size(kept) >= gates.LEAST:
            return render(_with_pictures(blocks, kept | _rest_of_tables(likely, kept)))
    # What a page carries in scripts alone is in no block.
    elsewhere = max(kept_by, key=len)
    if len(elsewhere) > max(_size(kept), gates.LEAST):
        return "".join(f"<p>{escape(line)}</p>" for line in elsewhere.splitlines() if line.strip())
    return render(_with_pictures(blocks, _likeliest(likely)))


def _size(kept: Iterable[Block]) -> int:
    return sum(len(block.text) for block in kept)


def _visible(kept: set[Block]) -> set[Block]:
    """Without what the page hides, where the rest is enough: it is for later, or for machines."""
    seen = {block for block in kept if not block.scope.hidden}
    return seen if _size(seen) >= gates.LEAST else kept


def _rest_of_tables(blocks: Iterable[Block], kept: set[Block]) -> set[Block]:
    """Every cell of a table of which a third is kept: one cell says nothing alone. Tables that lay out a page hold more
    than short texts."""
    tables: dict[Scope, list[Block]] = {}
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
    """The best blocks of a page without any good ones, until they are enough."""
    kept: set[Block] = set()
    for block in sorted(likely, key=likely.__getitem__, reverse=True):
        if _size(kept) >= gates.LEAST:
            break
        kept.add(block)
    return kept


def _with_pictures(blocks: list[Block], kept: set[Block]) -> list[Block]:
    """A picture belongs to the text around it: it is kept between two blocks that are."""
    followed = [False] * len(blocks)
    after = False
    for at in range(len(blocks) - 1, -1, -1):
        followed[at] = after
        if blocks[at].text:
            after = blocks[at] in kept
    shown, preceded = [], False
    for block, is_followed in zip(blocks, followed, strict=True):
        if block.text:
            preceded = block in kept
        if block in kept or (not block.text and preceded and is_followed):
            shown.append(block)
    return shown
