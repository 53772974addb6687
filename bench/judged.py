"""Sets of texts with questions and the texts that people judged to answer them, and how well an order agrees."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from bench.scorer import NoData, data_folder

#: What an order is judged by: its first ten, and how much there is among its first hundred.
FIRST, AMONG = 10, 100
#: What a search box takes for more than a word.
_SYNTAX = re.compile(r'[":\-]')


@dataclass(frozen=True)
class JudgedSet:
    name: str
    texts: dict[str, str]
    questions: dict[str, str]
    #: How well a text answers a question; those that do not are missing.
    grades: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Agreement:
    """How well orders agree with what was judged, for each question."""

    ndcg: dict[str, float]
    recall: dict[str, float]

    @property
    def scores(self) -> tuple[float, float]:
        return mean(self.ndcg.values()), mean(self.recall.values())


def judged_sets() -> Iterator[JudgedSet]:
    found = sorted(data_folder("retrieval").glob("*.json.gz"))
    if not found:
        raise NoData("There are no retrieval sets.")
    for path in found:
        held = json.loads(gzip.decompress(path.read_bytes()))
        asked = {key: _SYNTAX.sub(" ", held["queries"][key]) for key in held["qrels"]}
        yield JudgedSet(path.name.partition(".")[0], held["docs"], asked, held["qrels"])


def agreement(judged: JudgedSet, orders: Mapping[str, Sequence[str]]) -> Agreement:
    """Score one order of texts for each question."""
    return Agreement(
        {key: _ndcg(order, judged.grades[key]) for key, order in orders.items()},
        {key: _recall(order, judged.grades[key]) for key, order in orders.items()},
    )


def _ndcg(order: Sequence[str], grades: Mapping[str, int]) -> float:
    best = _gain(sorted(grades.values(), reverse=True)[:FIRST])
    return _gain([grades.get(key, 0) for key in order[:FIRST]]) / best if best else 0.0


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))


def _recall(order: Sequence[str], grades: Mapping[str, int]) -> float:
    return len(grades.keys() & set(order[:AMONG])) / len(grades)
