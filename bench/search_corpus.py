"""Texts to search in, written by Nexus and into a bare FTS5 table by turns."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import numpy as np
from sqlalchemy import select

from bench.places import Place, path
from bench.table import Line, Rounds, ratio
from nexus.db.chunks import ABOUT, chunks
from nexus.db.drivers.sqlite import CHECKPOINT_PAGES
from nexus.db.session import Query, Sessions, connect
from nexus.extract import Facts
from nexus.media.searching.chunking import TextPiece, cut_chunks
from tests.kit.searching import SearchText, add_texts, add_vectors

#: Each item has so many chunks, each of so many words.
OF_ITEM = 5
WORDS = 190
VOCABULARY = 60_000
DIMENSION = 384
QUESTIONS = 60
MODEL = "bench"
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
#: So many items are written with each transaction, and so many vectors.
TOGETHER = 2000
VECTORS_TOGETHER = 1 << 15


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


def load_corpus(place: Place, many: int) -> tuple[Corpus, list[Line]]:
    """Write so many chunks with their words, and the same texts into a bare FTS5 table; then the vectors."""
    sessions, viewer = connect(place.migrated("sqlite")), uuid4()
    bare = _bare_table(f"{path(str(sessions.engine.url))}-bare")
    given, speeds, asked_of = bench_texts(), defaultdict[str, list[float]](list), list[str]()
    for turn in range(-(-many // (OF_ITEM * TOGETHER))):
        texts = list(islice(given, min(TOGETHER, many // OF_ITEM - turn * TOGETHER)))
        for name, speed in _load(sessions, viewer, bare, texts, ours_first=turn % 2 == 0).items():
            speeds[name].append(speed)
        asked_of += texts[:: max(1, many // (OF_ITEM * TOGETHER))]
    corpus = Corpus(sessions, viewer, bench_questions(asked_of), write_bench_vectors(sessions, MODEL), bare)
    return corpus, _loading(speeds)


def _bare_table(file: str) -> sqlite3.Connection:
    """As durable as Nexus, and with checkpoints as large."""
    bare = sqlite3.connect(file)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"wal_autocheckpoint={CHECKPOINT_PAGES}"):
        bare.execute(f"PRAGMA {pragma}")
    bare.execute(f'CREATE VIRTUAL TABLE bare USING fts5(text, tokenize="{TOKENIZER}")')
    return bare


def _load(
    sessions: Sessions, viewer: UUID, bare: sqlite3.Connection, texts: list[str], *, ours_first: bool
) -> dict[str, float]:
    """Return MB/s of each way. Workers cut and stem before a transaction is open, so that has a figure of its own."""
    cut: list[SearchText] = []
    steps: dict[str, Callable[[], object]] = {
        "cutting": lambda: cut.extend(map(_cut, texts)),
        "ours": lambda: add_texts(sessions, viewer, cut),
        "bare": lambda: _load_bare(bare, texts),
    }
    order = ("cutting", "ours", "bare") if ours_first else ("bare", "cutting", "ours")
    took = {name: seconds_of(steps[name]) for name in order}
    took["all of ours"] = took["cutting"] + took["ours"]
    megabytes = sum(map(len, texts)) / 1e6
    return {name: megabytes / spent for name, spent in took.items()}


def _loading(speeds: Rounds) -> list[Line]:
    """What the bar is about is the database's part, with the rows of the items and all their indexes."""
    speed = {name: f"{median(turns):.1f}" for name, turns in speeds.items()}
    against = {name: ratio(speeds, name, "bare") for name in ("ours", "cutting", "all of ours")}
    return [
        Line(
            "MB/s of cut texts written and indexed, bare FTS5",
            *(speed["ours"], speed["bare"]),
            against["ours"],
            at_least=0.5,
        ),
        Line(
            "MB/s of texts cut and stemmed, in workers", speed["cutting"], speed["bare"], against["cutting"]
        ),
        Line(
            "MB/s of both, one after the other", speed["all of ours"], speed["bare"], against["all of ours"]
        ),
    ]


def seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _cut(text: str) -> SearchText:
    return SearchText(text, chunks=cut_chunks(None, Facts(), [TextPiece(0, text, None)]))


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
    middles = random.standard_normal((1000, DIMENSION), "f4")
    made = np.empty((len(found), DIMENSION), "<f4")
    for start in range(0, len(found), VECTORS_TOGETHER):
        some = found[start : start + VECTORS_TOGETHER]
        drawn = middles[random.integers(0, 1000, len(some))]
        drawn += random.standard_normal(drawn.shape, "f4")
        made[start : start + len(some)] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        pairs = zip(some, made[start:], strict=False)
        add_vectors(sessions, model, {(row.media_id, row.id): vector.tobytes() for row, vector in pairs})
    return made


def bench_texts() -> Iterator[str]:
    """Words as often as in a language: the commonest is in almost every chunk, most are in few."""
    random = np.random.default_rng(1)
    words = np.array([_word(number) for number in range(VOCABULARY)])
    often = (1 / (np.arange(VOCABULARY) + 2.7)).cumsum()
    while True:
        drawn = words[np.searchsorted(often, random.random((OF_ITEM, WORDS)) * often[-1], "right")]
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
