"""The three referees of a page. Blocks that they agree on are likely content.

trafilatura and resiliparse say which text they keep. The third, our own, is of another family: paragraphs score points
for the elements they stand in, and the best element wins, together with the siblings that are like it and without what
in it is made of links.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import trafilatura
from lxml.etree import _Element as Element
from resiliparse.extract.html2text import extract_plain_text

from nexus.extract.article.blocks import Block, BlockScope, upwards
from nexus.extract.article.class_names import group_bits
from nexus.extract.article.tally import Tally
from nexus.extract.elements import words

#: A page with more tags is judged without the libraries: their time is not bounded by its size.
MOST_TAGS = 30_000

UNLIKELY = group_bits("comment nav foot head side related share ad popup signup")
MAYBE = group_bits("body article")
GOOD = group_bits("body article reply")
BAD = group_bits("comment foot meta side related share ad popup nav signup hidden")
BONUS = {
    "div": 5,
    **dict.fromkeys(words("pre td blockquote"), 3),
    **dict.fromkeys(words("address ol ul dl dd dt li form"), -3),
    **dict.fromkeys(words("h1 h2 h3 h4 h5 h6 th"), -5),
}
PARAGRAPHS = words("p pre td h2 h3 h4 h5 h6")
SAFE = words("body article main html table tbody tr td")
CLEANED = words("div ul ol section table form fieldset header dl")
DROPPED = words("footer aside nav button")
#: What a paragraph's points count for the elements around it, from the inside out.
WEIGHTS = (1.0, 1 / 2, 1 / 6, 1 / 9, 1 / 12)
LEAST_POINTS = 10


# trafilatura has something to say about every page that is not an article.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
logging.getLogger("justext").setLevel(logging.CRITICAL)


def ask_libraries(root: Element, html: str) -> tuple[str, str]:
    """Return the text that trafilatura keeps of a page, and the text that resiliparse keeps."""
    if html.count("<") > MOST_TAGS:
        return "", ""
    plain = extract_plain_text(html, main_content=True, links=False, alt_texts=False)
    return trafilatura.extract(root, fast=True, include_comments=False) or "", str(plain)


@dataclass(frozen=True)
class RivalVerdict:
    best: BlockScope
    #: For each scope, whether the text directly in it is kept.
    kept: list[bool]
    #: For each scope, its score as a share of the best one's.
    shares: list[float]


def ask_rival(
    blocks: list[Block], scopes: list[BlockScope], tallies: list[Tally], marks: list[int]
) -> RivalVerdict:
    """Ask our own referee. `marks` are the commas in each block."""
    banned = _banned(scopes)
    scores = _scores(blocks, tallies, marks, banned)
    best = _best(scopes, scores)
    chosen = _with_siblings(best, scopes, scores, tallies)
    highest = max(scores.get(best.order, 0.0), 1e-9)
    shares = [max(scores.get(scope.order, 0.0), 0.0) / highest for scope in scopes]
    return RivalVerdict(best, _kept(scopes, tallies, banned, chosen), shares)


def _banned(scopes: list[BlockScope]) -> list[bool]:
    """Mark the elements whose names say that they are not content, and everything inside them."""
    banned: list[bool] = []
    for scope in scopes:
        above = scope.parent is not None and banned[scope.parent.order]
        named = bool(scope.own & UNLIKELY) and not scope.own & MAYBE and scope.tag not in SAFE
        banned.append(above or named or scope.hidden)
    return banned


def _weight(scope: BlockScope) -> int:
    return 25 * bool(scope.own & GOOD) - 25 * bool(scope.own & BAD)


def _scores(
    blocks: list[Block], tallies: list[Tally], marks: list[int], banned: list[bool]
) -> dict[int, float]:
    scores: dict[int, float] = {}
    for block, pauses in zip(blocks, marks, strict=True):
        scope, size = block.scope, len(block.text)
        if size < 25 or banned[scope.order]:
            continue
        points = 1 + pauses + min(size / 100, 3)
        is_leaf = scope.tag in PARAGRAPHS or (scope.tag == "div" and tallies[scope.order].blocks == 1)
        up = scope.parent if is_leaf else scope
        for weight in WEIGHTS:
            if up is None:
                break
            if up.order not in scores:
                scores[up.order] = BONUS.get(up.tag, 0) + _weight(up)
            scores[up.order] += points * weight
            up = up.parent
    return {order: score * (1 - tallies[order].density) for order, score in scores.items()}


def _best(scopes: list[BlockScope], scores: dict[int, float]) -> BlockScope:
    if not scores:
        return scopes[0]
    ranked = sorted(scores, key=scores.__getitem__, reverse=True)[:5]
    best = scopes[ranked[0]]
    best = _shared(
        best, [scopes[order] for order in ranked[1:] if scores[order] >= 0.75 * scores[best.order]]
    )
    last = scores.get(best.order, 0.0)
    lowest, up = last / 3, best.parent
    while up is not None and up.tag != "body" and lowest <= scores.get(up.order, -1.0):
        if scores[up.order] > last:
            return up
        last, up = scores[up.order], up.parent
    return best


def _shared(best: BlockScope, others: list[BlockScope]) -> BlockScope:
    """Return the element that holds the best one and at least three others with nearly its score."""
    lines = [{scope.order for scope in upwards(other.parent)} for other in others]
    up = best.parent
    while len(lines) >= 3 and up is not None and up.tag != "body":
        if sum(up.order in line for line in lines) >= 3:
            return up
        up = up.parent
    return best


def _with_siblings(
    best: BlockScope, scopes: list[BlockScope], scores: dict[int, float], tallies: list[Tally]
) -> set[int]:
    chosen = {best.order}
    if best.parent is None:
        return chosen
    highest = scores.get(best.order, 0.0)
    least, name = max(LEAST_POINTS, highest * 0.2), best.element.get("class")
    for scope in scopes:
        if scope.parent is not best.parent:
            continue
        tally = tallies[scope.order]
        bonus = highest * 0.2 if name and scope.element.get("class") == name else 0.0
        scored = scope.order in scores and scores[scope.order] + bonus >= least
        if scored or (scope.tag == "p" and tally.chars > 80 and tally.density < 0.25):
            chosen.add(scope.order)
    return chosen


def _kept(scopes: list[BlockScope], tallies: list[Tally], banned: list[bool], chosen: set[int]) -> list[bool]:
    kept: list[bool] = []
    for scope in scopes:
        if scope.order in chosen:
            kept.append(True)
            continue
        above = scope.parent is not None and kept[scope.parent.order]
        kept.append(above and not banned[scope.order] and not _is_clutter(scope, tallies[scope.order]))
    return kept


def _is_clutter(scope: BlockScope, tally: Tally) -> bool:
    """Whether it is a list of links or the like, and does not read like sentences."""
    if scope.tag in DROPPED:
        return True
    if scope.tag not in CLEANED:
        return False
    weight, density = _weight(scope), tally.density
    if weight < 0:
        return True
    if tally.commas >= 10:
        return False
    return density > (0.5 if weight > 0 else 0.2)
