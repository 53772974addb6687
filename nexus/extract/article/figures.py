"""What stands or falls with the text around it: pictures with captions and credits, players, posts of others.

The forest judges texts. It can't judge a picture, and a caption looks like the small print that it leaves out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nexus.extract.article.blocks import Block, BlockScope, upwards

#: Posts that a script of the other site turns into frames.
POSTS = ("twitter-tweet", "bluesky-embed", "instagram-media", "tiktok-embed", "mastodon-embed", "fb-post")
_CAPTION = re.compile(r"caption|credit|copyright", re.IGNORECASE)
#: A figure with more text than this is more than a picture with its caption.
LONGEST_CAPTION = 1000
#: A caption with a larger share of links leads to another article.
MOST_LINKED = 0.8
#: How much of an element's text is kept, for a figure at its edge to belong to the article.
MOSTLY = 0.6


@dataclass(eq=False)
class Figure:
    """Blocks that are shown together, and the nearest text before and after them that is in no figure."""

    owner: BlockScope | Block
    blocks: list[Block]
    before: Block | None
    after: Block | None = None

    @property
    def scope(self) -> BlockScope:
        """The element that it stands in."""
        scope = self.owner.scope if isinstance(self.owner, Block) else self.owner
        return scope.parent or scope

    @property
    def is_post(self) -> bool:
        return isinstance(self.owner, BlockScope) and _is_post(self.owner)


def with_figures(blocks: list[Block], scopes: list[BlockScope], kept: set[Block]) -> list[Block]:
    """Return the kept blocks and the figures that belong to them, in order. A figure is kept whole or not at all."""
    figures = _find_figures(blocks, scopes)
    pictured = {block for figure in figures for block in figure.blocks}
    article = _Article(scopes, [block for block in blocks if block not in pictured], kept)
    belonging = [figure for figure in figures if article.has(figure)]
    shown = {
        block
        for figure in _with_series(belonging, figures)
        for block in figure.blocks
        if block in kept or not block.text or figure.is_post or _is_caption(block)
    }
    return [block for block in blocks if (block in shown if block in pictured else block in kept)]


def _find_figures(blocks: list[Block], scopes: list[BlockScope]) -> list[Figure]:
    sizes = _sizes(scopes, blocks)
    pictures = {
        scope.order for block in blocks if block.images or block.embeds for scope in upwards(block.scope)
    }
    figures: list[Figure] = []
    before: Block | None = None
    open_from = 0
    for block in blocks:
        owner = _owner(block, sizes, pictures)
        if owner is None:
            before = block
            for figure in figures[open_from:]:
                figure.after = block
            open_from = len(figures)
        elif figures and figures[-1].owner is owner:
            figures[-1].blocks.append(block)
        else:
            figures.append(Figure(owner, [block], before))
    return figures


def _sizes(scopes: list[BlockScope], blocks: Iterable[Block]) -> list[int]:
    """Return how much text each element holds."""
    sizes = [0] * len(scopes)
    for block in blocks:
        sizes[block.scope.order] += len(block.text)
    for scope in reversed(scopes):
        if scope.parent is not None:
            sizes[scope.parent.order] += sizes[scope.order]
    return sizes


def _owner(block: Block, sizes: list[int], pictures: set[int]) -> BlockScope | Block | None:
    """Return the outermost element that is a figure with this block in it, or the block if it is a picture alone."""
    owner: BlockScope | Block | None = None if block.text else block
    for scope in upwards(block.scope):
        if sizes[scope.order] > LONGEST_CAPTION:
            break
        named = scope.tag == "figure" or _CAPTION.search(_class(scope))
        if _is_post(scope) or (named and scope.order in pictures):
            owner = scope
    return owner


def _is_post(scope: BlockScope) -> bool:
    return scope.tag == "blockquote" and any(name in _class(scope) for name in POSTS)


def _is_caption(block: Block) -> bool:
    """Whether it is a caption or a credit. Buttons and counters stand in figures too."""
    around = (block.scope, block.scope.parent or block.scope)
    return any(scope.tag == "figcaption" or _CAPTION.search(_class(scope)) for scope in around)


def _class(scope: BlockScope) -> str:
    return scope.element.get("class") or ""


class _Article:
    """The text that is kept, and what belongs to it."""

    def __init__(self, scopes: list[BlockScope], texts: list[Block], kept: set[Block]) -> None:
        self._kept = kept
        self._all = _sizes(scopes, texts)
        self._held = _sizes(scopes, [block for block in texts if block in kept])

    def has(self, figure: Figure) -> bool:
        if any(block in self._kept for block in figure.blocks):
            return True
        if figure.blocks[0].scope.hidden or _is_promotion(figure):
            return False
        beside = [block for block in (figure.before, figure.after) if block in self._kept]
        return len(beside) == 2 or any(
            self._is_mostly_kept(_meeting(figure.scope, block)) for block in beside if block
        )

    def _is_mostly_kept(self, scope: BlockScope) -> bool:
        return self._held[scope.order] >= MOSTLY * self._all[scope.order]


def _is_promotion(figure: Figure) -> bool:
    size = sum(len(block.text) for block in figure.blocks)
    return size > 0 and sum(block.linked for block in figure.blocks) > MOST_LINKED * size


def _meeting(scope: BlockScope, block: Block) -> BlockScope:
    """Return the innermost element that holds both."""
    around = {one.order for one in upwards(block.scope)}
    return next(one for one in upwards(scope) if one.order in around)


def _with_series(belonging: list[Figure], figures: list[Figure]) -> Iterator[Figure]:
    """Yield the figures that belong, and all of a series if half of it does: an essay in pictures has little else."""
    several = Counter(figure.scope.order for figure in figures)
    held = Counter(figure.scope.order for figure in belonging)
    chosen = set(belonging)
    for figure in figures:
        place = figure.scope.order
        if figure in chosen or (several[place] > 2 and 2 * held[place] >= several[place]):
            yield figure
