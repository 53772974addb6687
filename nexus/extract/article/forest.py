"""Which blocks are content, judged by a small forest.

The forest is data (model.json), grown by tools/train_article.py. It becomes Python code once, at import: walking it
node by node takes three times as long.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

Judge = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class Model:
    score: Judge
    #: How sure it takes.
    threshold: float

    def judge(self, rows: list[list[float]]) -> list[float]:
        """How likely each block is content, from 0 to 1."""
        return [1 / (1 + math.exp(-self.score(row))) for row in rows]


def compiled(forest: dict[str, Any]) -> Judge:
    """A function of a row that adds up what each tree says."""
    used = sorted({feature for tree in forest["trees"] for feature in _features(tree)})
    lines = ["def judge(row):", *(f"    f{feature} = row[{feature}]" for feature in used)]
    lines += [
        f"    score = {float(forest['base'])!r}",
        *(f"    score += {_expression(tree)}" for tree in forest["trees"]),
    ]
    space: dict[str, Any] = {}
    # Made of numbers of our own file, and of nothing else.
    exec("\n".join([*lines, "    return score"]), space)  # noqa: S102
    judge: Judge = space["judge"]
    return judge


def _features(tree: Any) -> list[int]:
    return [] if not isinstance(tree, list) else [int(tree[0]), *_features(tree[2]), *_features(tree[3])]


def _expression(tree: Any) -> str:
    if not isinstance(tree, list):
        return repr(float(tree))
    feature, limit, left, right = tree
    return f"({_expression(left)} if f{int(feature)} <= {float(limit)!r} else {_expression(right)})"


def load() -> Model:
    data = json.loads(files("nexus.extract.article").joinpath("model.json").read_text("utf-8"))
    return Model(compiled(data), float(data["threshold"]))
