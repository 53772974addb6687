"""How much longer a one-line text takes to read because it gets a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from statistics import median

from bench.places import Place
from bench.table import Line, interleaved
from nexus.errors import ExtractionFailed
from nexus.extract import Hints
from nexus.extract.builtin import ARTICLE, EPUB, PDF, TEXT
from nexus.extract.child.parser import load_reader
from nexus.extract.sandbox import Sandbox

ROUNDS = 9
DOCUMENTS = 20
#: In milliseconds.
MOST = 5.0
DOCUMENT = b"The ferry left the harbour at noon."
HINTS = Hints(filename="ferry.txt")


def ask(_: Place) -> list[Line]:
    """One document after another, with the usual number of processes; the least of all rounds."""
    with closing(Sandbox()) as sandbox:
        # Parsers are copies of a process that has imported the readers used so far: here all of them.
        for reader in (ARTICLE, EPUB, PDF):
            with suppress(ExtractionFailed):
                sandbox.read(reader, DOCUMENT, HINTS)
        figures = interleaved(
            ROUNDS,
            {
                "in a parser": partial(_milliseconds, partial(sandbox.read, TEXT)),
                "in place": partial(_milliseconds, load_reader(TEXT)),
            },
        )
    ours, theirs = min(figures["in a parser"]), min(figures["in place"])
    return [
        Line(
            "a one-line text, ms more than in place",
            f"{ours:.2f} ms",
            f"{theirs:.2f} ms",
            ours - theirs,
            at_most=MOST,
        )
    ]


def _milliseconds(read: Callable[[bytes, Hints], object]) -> float:
    """Return the median of several documents."""
    seconds = []
    for _ in range(DOCUMENTS):
        began = time.perf_counter()
        read(DOCUMENT, HINTS)
        seconds.append(time.perf_counter() - began)
    return median(seconds) * 1000
