"""How well are articles read? `python -m bench.quality` scores Nexus and its peers; `--gate` keeps it where it is.

Nexus is scored by forests that have not seen the site of a page. Only its time is that of the forest that is shipped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench.folds import fold_of, unseen_forest
from bench.places import Place
from bench.scorer import NoData, data_folder, scorer, tool
from bench.table import Line
from nexus.extract.article import FOREST, read_page
from nexus.extract.article.forest import Forest
from nexus.extract.charsets import decode_page

Page = dict[str, str | None]

ADAPTERS = (
    "bench.quality:nexus",
    "bench.readers:trafilatura",
    "bench.readers:resiliparse",
    "bench.readers:readability",
)
#: On sites that the forest has not seen.
PINNED = {"scrapinghub": 0.953, "trafilatura": 0.933, "readability": 0.965, "wcxb": 0.855, "magic": 0.892}
#: Of sets with more pages the gate reads every second one, so that it takes less than two minutes of CPU.
LARGE = 100
#: So many of the pages that the gate reads have no text at all: scripts would load it.
EMPTY = {"wcxb": 4}
#: How much of trafilatura's time a page may take.
SLOWEST = 1.5


def nexus(html: bytes | str, url: str | None, forest: Forest = FOREST) -> Page:
    """What the reader makes of a page before its gates: some labelled pages are larger or shorter than it takes."""
    found = read_page(html if isinstance(html, str) else decode_page(html, None), url, forest).extraction
    facts = found.facts
    return {
        "title": found.title,
        "text": "\n\n".join(fragment.text for fragment in found.fragments),
        "author": facts.byline,
        "date": facts.published,
        "lang": facts.language,
    }


def ask(_: Place) -> list[Line]:
    """F1 per set against the best of the peers, and the time against trafilatura's."""
    found = _compared()
    return [*_score_lines(found, unseen(every=1)), _time_line(found)]


def _compared() -> dict[str, Any]:
    """Every adapter on every page, page by page in turn, so that a busy machine is busy for all."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "scores.json")
        subprocess.run([*_call(), "--json", str(out)], check=True, stdout=subprocess.DEVNULL)
        sets: dict[str, Any] = json.loads(out.read_text())["sets"]
    return sets


def _call() -> list[str]:
    call = [sys.executable, str(tool()), "--data", str(data_folder()), "--split=dev", "--set=all"]
    return [*call, *(f"--adapter={name}" for name in ADAPTERS)]


def _score_lines(found: dict[str, Any], scored: dict[str, list[dict[str, Any]]]) -> Iterator[Line]:
    for split, adapters in found.items():
        name = split.partition("-")[0]
        values = {spec.rpartition(":")[2]: held["summary"]["f1"] for spec, held in adapters.items()}
        del values["nexus"]
        ours = _f1(name, scored[name])
        best = max(values, key=values.__getitem__)
        yield Line(
            f"F1 on {name}, sites it has not seen",
            f"{ours:.3f}",
            f"{values[best]:.3f} {best}",
            ours / values[best],
        )


def _time_line(found: dict[str, Any]) -> Line:
    ours, theirs = (_milliseconds(found, name) for name in ADAPTERS[:2])
    return Line("time per page", f"{ours:.0f} ms", f"{theirs:.0f} ms", ours / theirs, at_most=SLOWEST)


def _milliseconds(found: dict[str, Any], adapter: str) -> float:
    pages = [page["cpu_ms"] for adapters in found.values() for page in adapters[adapter]["pages"].values()]
    return sum(pages) / len(pages)


def gate() -> int:
    """How many sets fall short of their pinned score; 0 also if there are no pages to read."""
    try:
        scored = unseen(every=2)
    except NoData as missing:
        print(missing)
        return 0
    return sum(not _holds(name, scored[name]) for name in PINNED)


def unseen(every: int) -> dict[str, list[dict[str, Any]]]:
    """Score each set, or one of so many pages of a large one, by forests that have not seen the site of the page."""
    scored: dict[str, list[dict[str, Any]]] = {name: [] for name in PINNED}
    with ProcessPoolExecutor(2) as pool:
        for name, page in pool.map(_score, _jobs(every), chunksize=16):
            scored[name].append(page)
    return scored


def _f1(name: str, pages: list[dict[str, Any]]) -> float:
    return float(scorer().aggregate(scorer().SETS[name][0], pages)[2])


def _holds(name: str, pages: list[dict[str, Any]]) -> bool:
    value = _f1(name, pages)
    empty = sum(page["chars"] == 0 for page in pages)
    print(f"{name:12} {value:.4f}, wanted {PINNED[name]:.3f}; {empty} of {len(pages)} pages empty")
    return value >= PINNED[name] and empty <= EMPTY.get(name, 0)


def _jobs(every: int) -> Iterator[tuple[str, str, bytes, dict[str, Any]]]:
    for name in PINNED:
        pages = scorer().load(str(data_folder()), name, "dev")
        for key, html, truth, _ in pages[:: every if len(pages) > LARGE else 1]:
            yield name, key, html, truth


def _score(job: tuple[str, str, bytes, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    name, key, html, truth = job
    kind, form = scorer().SETS[name]
    forest = unseen_forest(fold_of(name, key, truth))
    try:
        found = nexus(html if form == "bytes" else html.decode("utf-8", "replace"), truth.get("url"), forest)
    except Exception as error:
        print(f"{name} {truth.get('url')}: {type(error).__name__}", file=sys.stderr)
        found = {}
    return name, scorer().score_page(kind, truth, found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--gate", action="store_true", help="exit with 1 where a score fell")
    if parser.parse_args().gate:
        return min(gate(), 1)
    try:
        return subprocess.call(_call())
    except NoData as missing:
        print(missing)
        return 0


if __name__ == "__main__":
    sys.exit(main())
