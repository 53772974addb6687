"""What does search by meaning cost? Items that have just become readable are embedded, and the model alone embeds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from uuid import UUID, uuid4

from bench.places import Place
from bench.scorer import NoData
from bench.search_corpus import OF_ITEM, bench_texts
from bench.table import Line, interleaved, ratio
from nexus.app import App, build
from nexus.embed.installed import find_installed
from nexus.media.lifecycle import EMBEDDING
from nexus.queue import Work
from tests.kit.finding import publish
from tests.kit.settings import make_settings

#: Items of a round, each of so many chunks as those of the bench of searches.
ITEMS = 12
ROUNDS = 3
#: Items are embedded by several threads, as workers do: while one writes, the model reads for another.
THREADS = 4
LEAST = 0.8


def ask(place: Place) -> list[Line]:
    if find_installed() is None:
        raise NoData("the model is not installed: nexus models install")
    texts = bench_texts()
    app = build(make_settings(place.migrated("sqlite"), place.folder, embed="local"))
    try:
        measured = {"items": partial(_items, app, texts), "model": partial(_model, app, texts)}
        figures = interleaved(ROUNDS, measured)
    finally:
        app.close()
    ours, theirs = (sum(figures[name]) / ROUNDS for name in ("items", "model"))
    least = ratio(figures, "items", "model")
    return [
        Line(
            "chunks/s made searchable, the model alone", f"{ours:.1f}", f"{theirs:.1f}", least, at_least=LEAST
        ),
        Line("articles/s of five chunks", f"{ours / OF_ITEM:.1f}", "", least),
    ]


def _items(app: App, texts: Iterator[str]) -> float:
    user = uuid4()
    items = [publish(app, user, text, title=None) for text in islice(texts, ITEMS)]
    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as workers:
        list(workers.map(partial(_embed, app), items))
    return ITEMS * OF_ITEM / (time.perf_counter() - began)


def _embed(app: App, media_id: UUID) -> None:
    if app.kernel.run(Work(EMBEDDING, media_id)) != "ready":
        raise RuntimeError("an item was not embedded")


def _model(app: App, texts: Iterator[str]) -> float:
    assert app.tools.embedder is not None
    chunks = [part for text in islice(texts, ITEMS) for part in text.split("\n\n")]
    began = time.perf_counter()
    app.tools.embedder.embed(chunks)
    return len(chunks) / (time.perf_counter() - began)
