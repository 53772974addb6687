"""Brings what was found by words and by meaning into one order, and groups it by item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from nexus.db.chunks import ABOUT
from nexus.search.meaning import MeaningHit
from nexus.search.scope import ChunkPlace
from nexus.search.words import WordHit

#: How much meaning counts beside words; see docs/decisions/0043-words-and-meaning.md.
MEANING_SHARE = 0.5
#: How far apart the nearest and the farthest have to be for meaning to count that much. A model that knows nothing
#: about a text finds everything equally near.
SPREAD = 0.4
#: How near something has to be that is found by meaning alone: every vector is near to something.
NEAR = 0.2
#: What an item's title adds to its best passage, and how much of its own score that is.
TITLE_SHARE = 0.25


class FoundPassage(NamedTuple):
    passage: ChunkPlace
    #: Between 0 and 1, to be compared within one search only.
    score: float
    #: Whether it has a word of the question.
    has_words: bool


class FoundItem(NamedTuple):
    media_id: UUID
    revision: int
    score: float
    #: Best first. Empty if the title, byline or site is all that matches.
    passages: tuple[FoundPassage, ...]


def fuse(
    words: Sequence[WordHit], meaning: Sequence[MeaningHit], share: float = MEANING_SHARE
) -> list[FoundPassage]:
    """Return all passages, best first. Each scores a share of its score by words plus a share of that by meaning.

    Words are compared with their best, and meaning with the farthest that was found.
    """
    most = max((hit.score for hit in words), default=0.0)
    if not meaning:
        share = 0.0
    by_words = {hit.passage.key: hit.score / most for hit in words if most > 0}
    near = _stretched(meaning)
    passages = {hit.passage.key: hit.passage for hit in words}
    passages |= {hit.passage.key: hit.passage for hit in meaning}
    found = [
        FoundPassage(
            passage, (1 - share) * by_words.get(key, 0.0) + share * near.get(key, 0.0), key in by_words
        )
        for key, passage in passages.items()
        if key in by_words or key in near
    ]
    return sorted(found, key=_order)


def _stretched(meaning: Sequence[MeaningHit]) -> dict[int, float]:
    if not meaning:
        return {}
    cosines = [hit.cosine for hit in meaning]
    least, most = min(cosines), max(cosines)
    return {
        hit.passage.key: (hit.cosine - least) / max(most - least, SPREAD)
        for hit in meaning
        if hit.cosine >= NEAR
    }


def group_items(passages: Iterable[FoundPassage]) -> list[FoundItem]:
    """Return the items of passages, best first. An item is as good as its best passage, and a title adds to it."""
    grouped: dict[UUID, list[FoundPassage]] = {}
    for found in sorted(passages, key=_order):
        grouped.setdefault(found.passage.media_id, []).append(found)
    items = map(_item, grouped.values())
    return sorted(items, key=lambda item: (-item.score, item.media_id))


def _item(found: list[FoundPassage]) -> FoundItem:
    best = found[0]
    texts = tuple(each for each in found if each.passage.position != ABOUT)
    title = max((each.score for each in found if each.passage.position == ABOUT), default=0.0)
    lesser = min(title, texts[0].score) if texts else 0.0
    return FoundItem(best.passage.media_id, best.passage.revision, best.score + TITLE_SHARE * lesser, texts)


def _order(found: FoundPassage) -> tuple[float, UUID, int]:
    return -found.score, found.passage.media_id, found.passage.position
