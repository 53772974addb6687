"""Scores chunks by their words, in the same way for every database."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from nexus.search.terms import Term

#: How soon more occurrences of a word stop adding to the score, and how much long chunks are held back.
SATURATION = 1.2
LENGTH_SHARE = 0.75
#: How often a word in a title or a heading counts.
HEAD_WEIGHT = 3


class IndexFigures(NamedTuple):
    """How many chunks there are, their average length, and in how many of them each term occurs."""

    chunks: int
    average: float
    found_in: tuple[int, ...]


class Indexes(NamedTuple):
    """What the index holds of a chunk."""

    head: str
    words: str
    length: int


class Scorer:
    """Weighs the terms of a question: rare ones count more than common ones."""

    def __init__(self, terms: Sequence[Term], figures: IndexFigures) -> None:
        self._average = max(figures.average, 1.0)
        self._weights = [
            (
                tuple(_spaced([" ".join(form)])[1:-1] for form in term.forms),
                term.times * _rarity(figures.chunks, found),
            )
            for term, found in zip(terms, figures.found_in, strict=True)
        ]

    def score(self, chunk: Indexes) -> float:
        """Return how well a chunk matches. 0 if it has none of the terms."""
        tokens = _spaced([chunk.words, *[chunk.head] * HEAD_WEIGHT] if chunk.head else [chunk.words])
        share = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * chunk.length / self._average)
        total = 0.0
        for forms, weight in self._weights:
            times = 0
            for form in forms:
                times += tokens.count(form)
            if times:
                total += weight * times * (SATURATION + 1) / (times + share)
        return total


def _rarity(chunks: int, found: int) -> float:
    return math.log(1 + (max(chunks - found, 0) + 0.5) / (found + 0.5))


def _spaced(parts: Sequence[str]) -> str:
    """Tokens with a space on either side, so that neighbours share none, and something between the parts."""
    return f" {' | '.join(parts)} ".replace(" ", "  ")
