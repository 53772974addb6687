"""How fast is search? 100,000 chunks on SQLite, against a bare FTS5 table and a scan of all vectors with numpy.

`python -m bench.searching 1000000` asks the same of a larger library, once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

from bench.places import Place, places
from bench.search_corpus import MODEL, Corpus, load_corpus, seconds_of
from bench.table import Line, print_table
from nexus.search.codes import SignCodes
from nexus.search.finding import AskedMeaning, find_items
from nexus.search.questions import parse_question
from nexus.search.terms import terms_of
from nexus.search.words import find_words
from tests.kit.searching import everything_of_viewer

CHUNKS = 100_000
#: What the figures are measured against, in milliseconds and bytes.
P50, P95, MEMORY = 50.0, 150.0, 32 << 20
LARGE_P95 = 500.0


def ask(place: Place, many: int = CHUNKS) -> list[Line]:
    corpus, loading = load_corpus(place, many)
    codes = SignCodes(1 << 30)
    first = seconds_of(lambda: _ask_all(corpus, codes, corpus.questions[0]))
    figures = _measured(corpus, codes)
    lines = [*loading, *_lines(figures, many)]
    lines.append(_bound("first question, which reads all vectors", first * 1000, None))
    most = None if many > CHUNKS else 1
    kept = f"{codes.memory >> 10} KiB", f"{MEMORY >> 10} KiB"
    return [*lines, Line("memory of the codes", *kept, codes.memory / MEMORY, at_most=most)]


def _measured(corpus: Corpus, codes: SignCodes) -> dict[str, list[float]]:
    contestants: dict[str, Callable[[str], object]] = {
        "fused": lambda typed: _ask_all(corpus, codes, typed),
        "words": lambda typed: _ask_words(corpus, typed),
        "bare FTS5": lambda typed: _ask_bare(corpus, typed),
        "numpy scan": lambda _: _scan(corpus),
    }
    figures: dict[str, list[float]] = {name: [] for name in contestants}
    for typed in corpus.questions:
        for name, contestant in contestants.items():
            figures[name].append(seconds_of(lambda: contestant(typed)) * 1000)  # noqa: B023 called at once
    return figures


def _lines(figures: dict[str, list[float]], many: int) -> Iterator[Line]:
    together = [a + b for a, b in zip(figures["bare FTS5"], figures["numpy scan"], strict=True)]
    if many > CHUNKS:
        yield _bound(f"words p95, {many:,} chunks", _p95(figures["words"]), LARGE_P95)
    else:
        yield _bound(f"fused p50, {many:,} chunks", median(figures["fused"]), P50)
        yield _bound(f"fused p95, {many:,} chunks", _p95(figures["fused"]), P95)
    yield _against("fused p50 against bare FTS5 and a scan", figures["fused"], together)
    yield _against("words p50 against bare FTS5", figures["words"], figures["bare FTS5"])
    fused, words = _p95(figures["fused"]), _p95(figures["words"])
    yield Line("p95: fused, and words alone", f"{fused:.0f} ms", f"{words:.0f} ms", fused / words)


def _bound(what: str, milliseconds: float, most: float | None) -> Line:
    theirs = f"{most:.0f} ms" if most else ""
    return Line(
        what,
        f"{milliseconds:.0f} ms",
        theirs,
        milliseconds / (most or milliseconds),
        at_most=1 if most else None,
    )


def _against(what: str, ours: list[float], theirs: list[float]) -> Line:
    return Line(what, f"{median(ours):.0f} ms", f"{median(theirs):.0f} ms", median(ours) / median(theirs))


def _p95(figures: list[float]) -> float:
    return sorted(figures)[int(len(figures) * 0.95)]


def _ask_all(corpus: Corpus, codes: SignCodes, typed: str) -> object:
    vector = corpus.vectors[len(typed) % len(corpus.vectors)].tobytes()
    with corpus.sessions.read() as session:
        meaning = AskedMeaning(codes, MODEL, vector)
        found = find_items(session, everything_of_viewer(corpus.viewer), parse_question(typed), meaning)
    assert found.items
    return found


def _ask_words(corpus: Corpus, typed: str) -> object:
    with corpus.sessions.read() as session:
        terms = terms_of(session, parse_question(typed))
        return find_words(session, everything_of_viewer(corpus.viewer), terms)


def _ask_bare(corpus: Corpus, typed: str) -> object:
    match = " OR ".join(f'"{word}"' for word in typed.split())
    found = "SELECT rowid, rank FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT 200"
    return corpus.bare.execute(found, (match,)).fetchall()


def _scan(corpus: Corpus) -> object:
    near = corpus.vectors @ corpus.vectors[0]
    return np.argpartition(-near, 200)[:200]


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else CHUNKS
    with places() as place:
        print_table(f"searching, {many:,} chunks", ask(place, many))


if __name__ == "__main__":
    main()
