"""How fast is search? 100,000 chunks on SQLite, against a bare FTS5 table and a scan of all vectors with numpy.

`python -m bench.searching 1000000` asks the same of a larger library, once.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import numpy as np
from sqlalchemy import select

from bench.places import Place, path, places
from bench.table import Line, print_table
from nexus.db.chunks import ABOUT, chunks
from nexus.db.session import Query, Sessions, connect
from nexus.extract import Facts
from nexus.media.chunking import TextPiece, cut_chunks
from nexus.search.codes import SignCodes
from nexus.search.finding import AskedMeaning, find_items
from nexus.search.questions import parse_question
from nexus.search.terms import terms_of
from nexus.search.words import find_words
from tests.kit.searching import SearchText, add_texts, add_vectors, everything_of_viewer

CHUNKS = 100_000
#: Each item has so many chunks, each of so many words.
OF_ITEM = 5
WORDS = 190
VOCABULARY = 60_000
DIMENSION = 384
QUESTIONS = 60
MODEL = "bench"
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
#: What the figures are measured against, in milliseconds and bytes.
P50, P95, MEMORY = 50.0, 150.0, 32 << 20
LARGE_P95 = 500.0


class BenchChunk(NamedTuple):
    media_id: UUID
    id: UUID


_CHUNKS = Query(select(chunks.c.media_id, chunks.c.id).where(chunks.c.position > ABOUT), BenchChunk)


@dataclass(frozen=True)
class Corpus:
    sessions: Sessions
    viewer: UUID
    questions: list[str]
    vectors: Any
    bare: sqlite3.Connection


def ask(place: Place, many: int = CHUNKS) -> list[Line]:
    texts = list(islice(bench_texts(), many // OF_ITEM))
    corpus, loading = _corpus(place, texts)
    codes = SignCodes(1 << 30)
    first = _seconds(lambda: _ask_all(corpus, codes, corpus.questions[0]))
    figures = _measured(corpus, codes)
    lines = [*loading, *_lines(figures, many)]
    lines.append(_bound("first question, which reads all vectors", first * 1000, None))
    size = codes._used()  # noqa: SLF001
    return [
        *lines,
        Line("memory of the codes", f"{size >> 10} KiB", f"{MEMORY >> 10} KiB", size / MEMORY, at_most=1),
    ]


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
            figures[name].append(_seconds(lambda: contestant(typed)) * 1000)  # noqa: B023 called at once
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


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


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


def _corpus(place: Place, texts: list[str]) -> tuple[Corpus, list[Line]]:
    """Write the texts with their words, and the same into a bare FTS5 table; then the vectors."""
    sessions, viewer = connect(place.migrated("sqlite")), uuid4()
    bare = sqlite3.connect(f"{path(str(sessions.engine.url))}-bare")
    bare.execute("PRAGMA journal_mode=WAL")
    bare.execute(f'CREATE VIRTUAL TABLE bare USING fts5(text, tokenize="{TOKENIZER}")')
    cutting = _seconds(lambda: _cut(texts))
    ours = _seconds(lambda: add_texts(sessions, viewer, map(SearchText, texts))) - cutting
    theirs = _seconds(lambda: _load_bare(bare, texts))
    vectors = write_bench_vectors(sessions, MODEL)
    megabytes = sum(map(len, texts)) / 1e6
    written = f"{megabytes / ours:.1f}", f"{megabytes / theirs:.1f}"
    lines = [
        Line("MB/s of cut texts written and indexed, bare FTS5", *written, theirs / ours, at_least=0.5),
        Line("MB/s of texts cut and stemmed, in workers", f"{megabytes / cutting:.1f}", "", theirs / cutting),
    ]
    return Corpus(sessions, viewer, bench_questions(texts), vectors, bare), lines


def _cut(texts: list[str]) -> None:
    for text in texts:
        cut_chunks(None, Facts(), [TextPiece(0, text, None)])


def _load_bare(bare: sqlite3.Connection, texts: list[str]) -> None:
    with bare:
        bare.executemany(
            "INSERT INTO bare VALUES (?)", ((part,) for text in texts for part in text.split("\n\n"))
        )


def write_bench_vectors(sessions: Sessions, model: str) -> Any:
    """Around a thousand middles, as texts gather around subjects."""
    random = np.random.default_rng(2)
    with sessions.read() as session:
        found = session.all(_CHUNKS)
    middles = random.standard_normal((1000, DIMENSION))
    made = middles[random.integers(0, 1000, len(found))] + random.standard_normal((len(found), DIMENSION))
    made = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype("<f4")
    add_vectors(
        sessions,
        model,
        {(row.media_id, row.id): vector.tobytes() for row, vector in zip(found, made, strict=True)},
    )
    return made


def bench_texts() -> Iterator[str]:
    """Words as often as in a language: the commonest is in almost every chunk, most are in few."""
    random = np.random.default_rng(1)
    words = np.array([_word(number) for number in range(VOCABULARY)])
    often = 1 / (np.arange(VOCABULARY) + 2.7)
    often /= often.sum()
    while True:
        drawn = words[random.choice(VOCABULARY, (OF_ITEM, WORDS), p=often)]
        yield "\n\n".join(". ".join(map(" ".join, np.array_split(row, 8))) for row in drawn)


def _word(number: int) -> str:
    letters = ""
    number += 30
    while number:
        number, place = divmod(number, 90)
        letters += "bcdfghklmnprstvwxz"[place % 18] + "aeiou"[place // 18]
    return letters


def bench_questions(texts: list[str]) -> list[str]:
    """Two to four words of some chunk, none among the hundred commonest."""
    random = np.random.default_rng(3)
    common = {_word(number) for number in range(100)}
    questions: list[str] = []
    while len(questions) < QUESTIONS:
        words = texts[random.integers(len(texts))].replace(".", "").split()
        telling = [word for word in random.choice(words, 12) if word not in common]
        questions.append(" ".join(telling[: 2 + len(questions) % 3]))
    return questions


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else CHUNKS
    with places() as place:
        print_table(f"searching, {many:,} chunks", ask(place, many))


if __name__ == "__main__":
    main()
