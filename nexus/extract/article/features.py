"""Describes each block in numbers: the block itself, what is around it, and what the referees kept.

Only the words of the lines around articles (cues.py) depend on a language. The order of the numbers is part of the
model: retrain it after a change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from nexus.extract.article import referees
from nexus.extract.article.blocks import TAG_BITS, Block, BlockScope, upwards
from nexus.extract.article.class_names import BIT
from nexus.extract.article.cues import count_cues
from nexus.extract.article.heads import ARTICLES, PageHead
from nexus.extract.article.referees import RivalVerdict
from nexus.extract.article.tally import Tally, count_commas, tally_scopes

HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
#: The tag of a block as a number. Tags that are not here count as 0.
TAGS = {
    **dict.fromkeys(HEADINGS, 1),
    "p": 2,
    "li": 3,
    "td": 4,
    "th": 4,
    "dd": 5,
    "dt": 5,
    "pre": 6,
    "blockquote": 7,
    "figcaption": 8,
    "button": 9,
    "article": 10,
    "section": 10,
    "address": 11,
    "footer": 12,
    "nav": 12,
    "header": 12,
    "aside": 12,
}
#: A shorter text proves nothing by being in another.
SHORT = 12
#: What an address says about its page.
ADDRESSES = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        r"forum|thread|topic|viewtopic|question|discuss|showthread|community|/t/|/r/|board",
        r"product|/shop|/store|/item|/dp/|/buy|/p/",
        r"categor|collection|/tags?/|archive|/list|search|/c/|/all|browse|directory",
        r"docs?[./]|/api|guide|reference|manual|wiki|/help|tutorial|learn|support|readthedocs",
        r"blog|news|article|/post|story|/20\d\d/|\d{5,}|\.html?$",
        r"service|solution|about|company|pricing|/features?",
    )
)

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_DIGIT = re.compile(r"\d")
_UPPER = re.compile(r"[A-ZÄÖÜ]")
#: The lookahead lists the characters that a match can begin with, so that other characters cost one test.
_ODD = re.compile(
    r"(?=[©|»›•→@hw€$£¥\d])(?:©|\||»|›|•|→|@|https?:|www\.|[€$£¥]\s?\d|\d\s?[€$£¥]|\d{1,2}:\d\d|\d{4})"
)


@dataclass(frozen=True)
class PageFeatures:
    """What is known about a page as a whole."""

    title: str
    #: What each library kept, without spaces.
    kept: tuple[str, ...]
    #: What kind of page it and its address say it is.
    kinds: tuple[float, ...]
    #: The text that the page gives to machines, and its description, without spaces; "" if it has none.
    told: tuple[str, str]


def describe_page(head: PageHead, url: str | None, kept: tuple[str, ...]) -> PageFeatures:
    """Describe a page by its head, its address, and the text that each library keeps of it."""
    return PageFeatures(
        squeeze(head.title or ""), tuple(map(squeeze, kept)), _page_kinds(head, url), _told_texts(head)
    )


def _page_kinds(head: PageHead, url: str | None) -> tuple[float, ...]:
    given = (head.first("og:type") or "").lower()
    types = head.types()
    path = (url or "").partition("://")[2]
    last = path.rstrip("/").rpartition("/")[2]
    return (
        float("article" in given) + 2.0 * ("product" in given) + 3.0 * ("website" in given),
        float(bool(types & ARTICLES)),
        float("Product" in types),
        float(bool(types & {"DiscussionForumPosting", "QAPage", "Question"})),
        float(bool(types & {"ItemList", "CollectionPage", "FAQPage"})),
        *(float(bool(words.search(path))) for words in ADDRESSES),
        float(path.rstrip("/").count("/")),
        float(last.count("-") + last.count("_")),
    )


def _told_texts(head: PageHead) -> tuple[str, str]:
    """Return the text of the article in the linked data, and the description of the page."""
    bodies = (thing.get("articleBody") for thing in head.things)
    body = max((one for one in bodies if isinstance(one, str)), key=len, default="")
    given = head.first("og:description") or head.first("description") or ""
    return squeeze(body), squeeze(given)


def squeeze(text: str) -> str:
    """Remove all white space."""
    return "".join(text.split())


def _vote(text: str, kept: str) -> float:
    """Return how much of a block a library kept: all of it, or how many of three samples."""
    if text in kept:
        return 1.0
    size = len(text)
    if size < 60:
        return 0.0
    spots = (text[:24], text[size // 2 - 12 : size // 2 + 12], text[-24:])
    return sum(spot in kept for spot in spots) / 3


def describe_blocks(blocks: list[Block], scopes: list[BlockScope], page: PageFeatures) -> list[list[float]]:
    """Return a row of numbers for each block. Every block must have text."""
    if not blocks:
        return []
    squeezed = [squeeze(block.text) for block in blocks]
    marks = [count_commas(block.text) for block in blocks]
    votes = [[_vote(text, kept) for kept in page.kept] for text in squeezed]
    tallies = tally_scopes(blocks, scopes, votes, marks)
    verdict = referees.ask_rival(blocks, scopes, tallies, marks)
    for block, given in zip(blocks, votes, strict=True):
        given.append(float(verdict.kept[block.scope.order]))
    places = _places(scopes, tallies, verdict, _titled(blocks, squeezed, page.title))
    seen, alike = Counter(squeezed), Counter(block.scope.signature for block in blocks)
    own = [
        [
            *_text(block, text, pauses),
            float(bool(page.title) and (text in page.title or page.title in text)),
            seen[text],
            alike[block.scope.signature],
            *places(block.scope),
            *_hints(block, text, page.told),
        ]
        for block, text, pauses in zip(blocks, squeezed, marks, strict=True)
    ]
    return _in_order(blocks, own, votes, _whole(blocks, scopes, page, tallies, votes, verdict))


def _text(block: Block, text: str, pauses: int) -> list[float]:
    """Describe the text of a block."""
    shown, size = block.text, len(text) or 1
    words = shown.count(" ") + 1 + (0 if shown.isascii() else len(_CJK.findall(shown)))
    stops = shown.count(".") + shown.count("!") + shown.count("?") + shown.count("。")
    return [
        size,
        words,
        block.linked / len(shown),
        block.links,
        pauses / size,
        stops,
        stops / size,
        float(shown[-1] in '.!?…。！？"”'),
        len(_DIGIT.findall(shown)) / size,
        len(_UPPER.findall(shown)) / size,
        len(_ODD.findall(shown)),
        size / words,
        block.breaks,
        block.images,
    ]


def _hints(block: Block, text: str, told: tuple[str, str]) -> list[float]:
    """Describe what a text looks like at its ends, what its words are about, and whether machines are told it."""
    shown = block.text
    body, description = told
    return [
        _vote(text, body) if body else -1.0,
        float(len(text) > SHORT and text[:SHORT] in description),
        float(shown.endswith(("...", "…", "[…]", "»", "›", "→", ">"))),
        float(shown[-1] in ":：|"),
        *count_cues(shown),
    ]


def _titled(blocks: list[Block], squeezed: list[str], title: str) -> BlockScope | None:
    """Return the element that shows the title, or the first large heading."""
    first = None
    for block, text in zip(blocks, squeezed, strict=True):
        if block.scope.tag in ("h1", "h2"):
            if len(text) > SHORT and (text in title or title in text):
                return block.scope
            if first is None and block.scope.tag == "h1":
                first = block.scope
    return first


def _places(
    scopes: list[BlockScope], tallies: list[Tally], verdict: RivalVerdict, titled: BlockScope | None
) -> Callable[[BlockScope], tuple[float, ...]]:
    """Return a function that describes the elements around a block. Blocks share them, so each is described once."""
    near_best = _steps(scopes, verdict.best)
    near_title = _steps(scopes, titled) if titled else [-1.0] * len(scopes)
    articles = _articles(scopes, tallies)
    known: dict[int, tuple[float, ...]] = {}

    def place(scope: BlockScope) -> tuple[float, ...]:
        found = known.get(scope.order)
        if found is None:
            parent = scope.parent or scope
            above = parent.parent or parent
            found = known[scope.order] = (
                TAGS.get(scope.tag, 0),
                HEADINGS.get(scope.tag, 0),
                scope.depth,
                float(scope.hidden),
                near_best[scope.order],
                verdict.shares[parent.order],
                verdict.shares[above.order],
                *_within(scope.within),
                *_named(scope.around, scope.own | parent.own | above.own),
                *_held(tallies[parent.order]),
                *_held(tallies[above.order]),
                near_title[scope.order],
                *articles[scope.order],
            )
        return found

    return place


def _steps(scopes: list[BlockScope], best: BlockScope) -> list[float]:
    """Return for each scope how many levels above the best one the two meet: 0 for everything inside it."""
    line = {scope.order: float(level) for level, scope in enumerate(upwards(best))}
    steps: list[float] = []
    for scope in scopes:
        own = line.get(scope.order)
        steps.append(own if own is not None else steps[scope.parent.order] if scope.parent else 99.0)
    return steps


def _articles(scopes: list[BlockScope], tallies: list[Tally]) -> list[tuple[float, float]]:
    """Return for each scope which `article` of the page it is in, and how its text compares with the largest one's."""
    largest = max((tallies[scope.order].chars for scope in scopes if scope.tag == "article"), default=0) or 1
    found: list[tuple[float, float]] = []
    count = 0
    for scope in scopes:
        if scope.tag == "article":
            count += 1
            found.append((float(count), tallies[scope.order].chars / largest))
        else:
            found.append(found[scope.parent.order] if scope.parent else (0.0, -1.0))
    return found


@lru_cache(maxsize=4096)
def _within(bits: int) -> tuple[float, ...]:
    return tuple(float(bits & bit > 0) for bit in TAG_BITS.values())


@lru_cache(maxsize=4096)
def _named(around: int, near: int) -> tuple[float, ...]:
    return tuple(float(around & bit > 0) + float(near & bit > 0) for bit in BIT.values())


def _held(tally: Tally) -> tuple[float, ...]:
    chars = tally.chars or 1
    return (tally.chars, tally.density, tally.blocks, tally.long, *(votes / chars for votes in tally.votes))


def _whole(
    blocks: list[Block],
    scopes: list[BlockScope],
    page: PageFeatures,
    tallies: list[Tally],
    votes: list[list[float]],
    verdict: RivalVerdict,
) -> list[float]:
    chars = tallies[0].chars or 1
    comments = BIT["comment"]
    remarks = sum(len(block.text) for block in blocks if block.scope.around & comments)
    agreed = sum(len(block.text) for block, given in zip(blocks, votes, strict=True) if sum(given) >= 3)
    return [
        len(blocks),
        chars,
        tallies[0].density,
        tallies[0].long,
        *(held / chars for held in tallies[0].votes),
        tallies[verdict.best.order].chars / chars,
        remarks / chars,
        agreed / chars,
        sum(scope.tag == "article" for scope in scopes),
        *page.kinds,
    ]


def _in_order(
    blocks: list[Block], own: list[list[float]], votes: list[list[float]], whole: list[float]
) -> list[list[float]]:
    """Add to each row where its block stands, and what the blocks beside it are like."""
    total = sum(len(block.text) for block in blocks)
    sums = [-1.0, -1.0, *map(sum, votes), -1.0, -1.0]
    edge = (0.0, 0.0, -1.0)
    brief = [edge, edge, *((row[0], row[2], row[17]) for row in own), edge, edge]
    rows: list[list[float]] = []
    passed = agreed = 0
    heading = -1
    for at, block in enumerate(blocks):
        if block.scope.tag == "h1":
            heading = at
        window = sums[max(at - 4, 2) : at + 9]
        row = own[at] + votes[at]
        row += (sums[at + 2], sum(window) / len(window), at / len(blocks), passed / total, agreed)
        row.append(at - heading if heading >= 0 else -1.0)
        for beside in (at, at + 1, at + 3, at + 4):
            row += brief[beside]
            row.append(sums[beside])
        row += whole
        rows.append(row)
        passed += len(block.text)
        agreed += len(block.text) if sums[at + 2] >= 3 else 0
    return rows
