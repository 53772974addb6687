"""Grow the forest that judges the blocks of a page: `python -m tools.train_article [--check]`.

It reads the labelled pages in the folder `articles` of DATA (default: ../shared/data), prints how well it reads pages
of sites that the forest has not seen, and writes nexus/extract/article/model.json and, for the gate, the forests that
have not seen some sites, bench/folds.json. The same pages give the same files, byte for byte, however often and on
however many cores. It needs what requirements/bench.txt lists.

A block's label is the share of its words that the truth has in the same place when the two are aligned, so that only
one copy of repeated text is content. If the truth is a list of sentences that must and must not be there, only blocks
with such a sentence have a label. Each page counts the same, and each block by its length, as pages are scored.
"""

from __future__ import annotations

import argparse
import json
from bisect import bisect_left
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from bench import folds
from bench.scorer import NoData, data_folder, scorer
from nexus.extract.article import LEAST_SEEN, features
from nexus.extract.article.blocks import cut_blocks
from nexus.extract.article.heads import read_head
from nexus.extract.article.page import body_of, lighten, parse_page
from nexus.extract.article.referees import ask_libraries
from nexus.extract.charsets import decode_page

MODEL = Path(__file__).parent.parent / "nexus/extract/article/model.json"
#: How much a page of each set counts. Small sets are not unimportant.
WEIGHTS = {"scrapinghub": 2.5, "trafilatura": 1.0, "readability": 2.5, "wcxb": 1.0, "magic": 2.0}
THRESHOLD = 0.45
#: Most of a page is light blocks that are not content. A part of them is enough to learn from.
LIGHT, LIGHT_SHARE = 0.01, 0.2
OPTIONS = {
    "max_iter": 140,
    "learning_rate": 0.08,
    "max_leaf_nodes": 16,
    "min_samples_leaf": 40,
    "l2_regularization": 1.0,
    "max_features": 0.3,
    "max_bins": 64,
    "early_stopping": False,
    "random_state": 0,
}
GRAM = 3
#: Words that occur together more often than this don't tell where they are from.
COMMON = 30

Matrix = Any


@dataclass(frozen=True)
class Example:
    """A page: the features of its blocks, and how much speaks for and against keeping each."""

    name: str
    key: str
    fold: int
    texts: list[str]
    hidden: list[bool]
    rows: list[list[float]]
    wanted: list[float]
    unwanted: list[float]


def example(name: str, key: str, html: str, truth: dict[str, Any]) -> Example | None:
    root, html = parse_page(html)
    if root is None:
        return None
    head = read_head(root)
    lighten(root)
    blocks, scopes = cut_blocks(body_of(root))
    kept = ask_libraries(root, html)
    blocks = [block for block in blocks if block.text]
    if not blocks:
        return None
    page = features.describe_page(head, truth.get("url") or head.own_address(), kept)
    texts = [block.text for block in blocks]
    wanted, unwanted = _sentences(truth, texts) if name == "trafilatura" else _words(truth, texts)
    rows = features.describe_blocks(blocks, scopes, page)
    hidden = [block.scope.hidden for block in blocks]
    return Example(name, key, folds.fold_of(name, key, truth), texts, hidden, rows, wanted, unwanted)


def _words(truth: dict[str, Any], texts: list[str]) -> tuple[list[float], list[float]]:
    """Weigh each block by how many of its words the truth has in the same place."""
    tokens = scorer()._CJK_WORD.findall  # noqa: SLF001
    parts = [tokens(text.lower()) for text in texts]
    covered = _aligned(tokens((truth["text"] or "").lower()), [token for part in parts for token in part])
    shares, at = [], 0
    for part in parts:
        shares.append(_settled(sum(covered[at : at + len(part)]) / max(len(part), 1)))
        at += len(part)
    return _weighed(shares, [len(part) for part in parts])


def _aligned(true: list[str], page: list[str]) -> list[bool]:
    """Mark the words of a page that are in the longest series of runs that the truth has in the same order."""
    places: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(true) - GRAM + 1):
        places.setdefault(tuple(true[at : at + GRAM]), []).append(at)
    pairs = [
        (at, place)
        for at in range(len(page) - GRAM + 1)
        if len(found := places.get(tuple(page[at : at + GRAM]), [])) <= COMMON
        for place in reversed(found)
    ]
    covered = [False] * len(page)
    for at in _longest([place for _, place in pairs]):
        covered[pairs[at][0] : pairs[at][0] + GRAM] = [True] * GRAM
    return covered


def _longest(values: list[int]) -> list[int]:
    """Return the indexes of the longest rising subsequence, last first."""
    ends: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for at, value in enumerate(values):
        size = bisect_left(ends, value)
        before.append(tops[size - 1] if size else -1)
        ends[size : size + 1], tops[size : size + 1] = [value], [at]
    row, at = [], tops[-1] if tops else -1
    while at >= 0:
        row.append(at)
        at = before[at]
    return row


def _settled(share: float) -> float:
    return share if 0.1 <= share <= 0.9 else float(round(share))


def _weighed(shares: list[float], sizes: list[int]) -> tuple[list[float], list[float]]:
    """Scale weights by all that is wanted of the page. What is unwanted counts at most twice that."""
    total = max(sum(share * size for share, size in zip(shares, sizes, strict=True)), 30.0)
    weights = [min((size + 1) / total, 1.0) for size in sizes]
    against = sum(weight * (1 - share) for weight, share in zip(weights, shares, strict=True))
    scale = min(1.0, 2.0 / against) if against else 1.0
    wanted = [weight * share for weight, share in zip(weights, shares, strict=True)]
    return wanted, [weight * (1 - share) * scale for weight, share in zip(weights, shares, strict=True)]


def _sentences(truth: dict[str, Any], texts: list[str]) -> tuple[list[float], list[float]]:
    squeeze = scorer().squeeze
    flat = [squeeze(text) for text in texts]
    sides = []
    for side in ("with", "without"):
        weights = [0.0] * len(texts)
        for sentence in map(squeeze, truth[side]):
            hits = [at for at, text in enumerate(flat) if sentence and sentence in text]
            for at in hits:
                weights[at] += 1 / 6 / len(hits)
        sides.append(weights)
    return sides[0], sides[1]


def grow(examples: list[Example], matrices: list[Matrix]) -> Any:
    matrix = np.vstack(matrices)
    scale = np.concatenate([np.full(len(one.texts), WEIGHTS[one.name]) for one in examples])
    wanted = np.concatenate([one.wanted for one in examples]) * scale
    unwanted = np.concatenate([one.unwanted for one in examples]) * scale
    labels, weights = (wanted > unwanted).astype(int), np.abs(wanted - unwanted)
    light = (labels == 0) & (weights < LIGHT)
    skipped = light & (np.random.RandomState(0).rand(len(weights)) > LIGHT_SHARE)
    weights = np.where(light, weights / LIGHT_SHARE, weights)
    kept = (weights > 1e-9) & ~skipped
    grown = HistGradientBoostingClassifier(**OPTIONS)
    return grown.fit(matrix[kept], labels[kept], sample_weight=weights[kept] / weights[kept].mean())


def judged(grown: Any, matrix: Matrix) -> list[float]:
    return [float(value) for value in grown.predict_proba(matrix)[:, 1]]


def grow_without(fold: int, examples: list[Example], matrices: list[Matrix]) -> Any:
    """Grow a forest that does not see the pages of a fold."""
    inside = [at for at, one in enumerate(examples) if one.fold != fold]
    return grow([examples[at] for at in inside], [matrices[at] for at in inside])


def scores(examples: list[Example], values: list[list[float]], threshold: float) -> dict[str, float]:
    """Return the F1 of each set, on the plain text of the blocks."""
    tool, truths = scorer(), _truths()
    pages: dict[str, list[dict[str, Any]]] = {}
    for one, judgement in zip(examples, values, strict=True):
        text = "\n".join(_kept(one, judgement, threshold))
        truth = truths[one.name][one.key]
        page = tool.score_page(tool.SETS[one.name][0], truth, {"text": text})
        pages.setdefault(one.name, []).append(page)
        if truth.get("type"):
            pages.setdefault(f"{one.name}/{truth['type']}", []).append(page)
    return {
        name: tool.aggregate(tool.SETS[name.partition("/")[0]][0], held)[2] for name, held in pages.items()
    }


def _kept(one: Example, judgement: list[float], threshold: float) -> list[str]:
    """Keep blocks nearly as the reader does: it has rules for tables, figures and notes too."""
    kept = [at for at, value in enumerate(judgement) if value > threshold]
    seen = [at for at in kept if not one.hidden[at]]
    sizes = [sum(len(one.texts[at]) for at in part) for part in (seen, kept)]
    return [one.texts[at] for at in (seen if sizes[0] >= LEAST_SEEN * sizes[1] else kept)]


_TRUTHS: dict[str, dict[str, Any]] = {}


def _truths() -> dict[str, dict[str, Any]]:
    if not _TRUTHS:
        for name in scorer().SETS:
            _TRUTHS[name] = {
                key: truth for key, _, truth, _ in scorer().load(str(data_folder()), name, "dev")
            }
    return _TRUTHS


def _load_one(job: tuple[str, str, bytes, dict[str, Any]]) -> Example | None:
    name, key, html, truth = job
    is_raw = scorer().SETS[name][1] == "bytes"
    return example(name, key, decode_page(html, None) if is_raw else html.decode("utf-8", "replace"), truth)


def load() -> list[Example]:
    jobs = [
        (name, key, html, truth)
        for name in scorer().SETS
        for key, html, truth, _ in scorer().load(str(data_folder()), name, "dev")
    ]
    with ProcessPoolExecutor(2) as pool:
        return [found for found in pool.map(_load_one, jobs, chunksize=8) if found]


def tree_of(nodes: Any, at: int = 0) -> Any:
    """Return a leaf's value, or [feature, limit, left, right]."""
    node = nodes[at]
    if node["is_leaf"]:
        return round(float(node["value"]), 4)
    limit = float(f"{float(node['num_threshold']):.6g}")
    return [
        int(node["feature_idx"]),
        limit,
        tree_of(nodes, int(node["left"])),
        tree_of(nodes, int(node["right"])),
    ]


def forest_of(grown: Any) -> dict[str, Any]:
    trees = [tree_of(predictors[0].nodes) for predictors in grown._predictors]  # noqa: SLF001
    base = float(grown._baseline_prediction[0][0])  # noqa: SLF001
    return {
        "base": round(base, 4),
        "threshold": THRESHOLD,
        "features": int(grown.n_features_in_),
        "trees": trees,
    }


def _show(title: str, found: dict[str, float]) -> None:
    print(title, " ".join(f"{name} {value:.4f}" for name, value in sorted(found.items())), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.train_article", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only print scores, write nothing")
    given = parser.parse_args()
    try:
        examples = load()
    except NoData as missing:
        parser.exit(1, f"{missing}\n")
    with threadpool_limits(1):  # so that numbers are added up in the same order everywhere
        train(examples, write=not given.check)


def train(examples: list[Example], write: bool) -> None:
    matrices = [np.array(one.rows, np.float32) for one in examples]
    without = [grow_without(fold, examples, matrices) for fold in range(folds.FOLDS)]
    values = [judged(without[one.fold], matrix) for one, matrix in zip(examples, matrices, strict=True)]
    for threshold in (THRESHOLD - 0.05, THRESHOLD, THRESHOLD + 0.05):
        _show(f"unseen, {threshold:.2f}:", scores(examples, values, threshold))
    if write:
        _write(folds.PATH, [forest_of(grown) for grown in without])
        _write(MODEL, forest_of(grow(examples, matrices)))
        print(f"{len(examples)} pages")


def _write(path: Path, forests: Any) -> None:
    path.write_text(json.dumps(forests, separators=(",", ":")) + "\n", "utf-8")
    print(f"{path.name}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
