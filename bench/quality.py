"""How well are articles read? `python -m bench.quality` scores Nexus and its peers; `--gate` keeps it where it is."""

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

from bench.places import Place
from bench.scorer import NoData, data_folder, scorer, tool
from bench.table import Line
from nexus.extract.article import read_page
from nexus.extract.charsets import decode_page

Page = dict[str, str | None]

ADAPTERS = (
    "bench.quality:nexus",
    "bench.readers:trafilatura",
    "bench.readers:resiliparse",
    "bench.readers:readability",
)
#: The forest has seen these pages: the gate tells whether something broke, not how good it is.
PINNED = {"scrapinghub": 0.963, "trafilatura": 0.945, "readability": 0.970, "wcxb": 0.900, "magic": 0.937}
#: Of sets with more pages the gate reads every second one, so that it takes less than a minute.
LARGE = 100
#: So many of the pages that the gate reads have no text at all: scripts would load it.
EMPTY = {"wcxb": 4}
#: How much of trafilatura's time a page may take.
SLOWEST = 1.5


def nexus(html: bytes | str, url: str | None) -> Page:
    """What the reader makes of a page before its gates: some labelled pages are larger or shorter than it takes."""
    found = read_page(html if isinstance(html, str) else decode_page(html, None), url).extraction
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
    return [*_score_lines(found), _time_line(found)]


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


def _score_lines(found: dict[str, Any]) -> Iterator[Line]:
    for name, adapters in found.items():
        values = {spec.rpartition(":")[2]: held["summary"]["f1"] for spec, held in adapters.items()}
        ours = values.pop("nexus")
        best = max(values, key=values.__getitem__)
        yield Line(
            f"F1 on {name}, pages it was trained on",
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
        with ProcessPoolExecutor(2) as pool:
            scored = list(pool.map(_score, _jobs(), chunksize=16))
    except NoData as missing:
        print(missing)
        return 0
    return sum(not _holds(name, [page for set_name, page in scored if set_name == name]) for name in PINNED)


def _holds(name: str, pages: list[dict[str, Any]]) -> bool:
    value = scorer().aggregate(scorer().SETS[name][0], pages)[2]
    empty = sum(page["chars"] == 0 for page in pages)
    print(f"{name:12} {value:.4f}, wanted {PINNED[name]:.3f}; {empty} of {len(pages)} pages empty")
    return bool(value >= PINNED[name]) and empty <= EMPTY.get(name, 0)


def _jobs() -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    for name in PINNED:
        pages = scorer().load(str(data_folder()), name, "dev")
        for _, html, truth, _ in pages[:: 2 if len(pages) > LARGE else 1]:
            yield name, html, truth


def _score(job: tuple[str, bytes, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    name, html, truth = job
    kind, form = scorer().SETS[name]
    try:
        found = nexus(html if form == "bytes" else html.decode("utf-8", "replace"), truth.get("url"))
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
