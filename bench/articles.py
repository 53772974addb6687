"""How many articles per second go from an address to readable text, on two cores, compared with other tools."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from uuid import uuid4

from bench import pages
from bench.places import Place
from bench.table import Line, interleaved, ratio
from nexus.app import App, build, load_extractors
from nexus.extract import AVAILABLE_EXTRACTORS, Hints
from nexus.fetch import Download, Fetcher, FetchLimits, NotModified, parse_host_ports
from nexus.media.add import add_url
from nexus.settings import Settings
from nexus.states.media import MediaStatus
from nexus.upkeep import counts
from nexus.worker.threads import Workers

COUNT = 240
ROUNDS = 3
CORES = 2
PATIENCE = 300.0
#: The kinds of work that follow once a text can be read. They wait.
AFTERWARDS = ("picture", "embedding")
#: When the first claim began and the last one ended, according to the rows.
_SPAN = (
    "SELECT julianday(max(coalesce(processing_completed_at, failed_at)))"
    " - julianday(min(processing_started_at)) FROM media"
)
#: Every tool is asked for the same: text, links, pictures, tables and metadata.
RICH = {"with_metadata": True, "include_links": True, "include_images": True, "include_tables": True}

_bare: dict[str, Fetcher] = {}


def ask(place: Place) -> list[Line]:
    with pages.served(pages.load(COUNT)) as urls:
        contestants: dict[str, Callable[[], float]] = {
            "nexus": partial(_nexus, place, urls),
            "bare pool": partial(_pool, place, urls, read_bare),
            "bare pool that forks": partial(_pool, place, urls, read_forked),
            "haystack": partial(_pool, place, urls, read_haystack),
            "llamaindex": partial(_pool, place, urls, read_llamaindex),
        }
        figures = interleaved(ROUNDS, contestants, warm_up=False)
    speed = {name: f"{median(rounds):.0f}/s" for name, rounds in figures.items()}
    limits = {"bare pool": 0.9, "bare pool that forks": None, "haystack": 1.5, "llamaindex": 1.5}
    return [
        Line(f"articles, against {peer}", speed["nexus"], speed[peer], ratio(figures, "nexus", peer), least)
        for peer, least in limits.items()
    ]


def _nexus(place: Place, urls: list[str]) -> float:
    """Work as `nexus serve` does, on SQLite; measured from the first claim to the last end."""
    AVAILABLE_EXTRACTORS.clear()
    app = app_for(place, urls)
    load_extractors(app.settings)
    warm_up(app, urls[0])
    with app.sessions.begin() as session:
        user = uuid4()
        for url in urls:
            add_url(session, user, "web_article", url, {})
    workers = Workers(app)
    workers.start()
    try:
        _wait(app)
        return len(urls) / _span(app)
    finally:
        workers.stop()
        app.close()
        AVAILABLE_EXTRACTORS.clear()


def app_for(place: Place, urls: list[str]) -> App:
    folder = Path(tempfile.mkdtemp(dir=place.folder))
    given: dict[str, object] = {
        "env": "test",
        "database_url": place.migrated("sqlite"),
        "data_dir": folder,
        "fetch_allow": (urls[0].split("/")[2],),
        "fetch_delay_seconds": 0,
        "fetch_per_host": 64,
        "parser_processes": CORES,
        "session_secret": "bench",
    }
    app = build(Settings(_env_file=None, **given))  # type: ignore[arg-type]
    for kind in AFTERWARDS:
        del app.kernel.handlers[kind]
    return app


def warm_up(app: App, url: str) -> None:
    """Start the parser processes before the clock, like those of the other tools."""
    answer = app.tools.fetcher.get(url)
    if isinstance(answer, Download):
        for _ in range(CORES):
            app.tools.sandbox.read("nexus.extract.article:read_article", answer.body, Hints(url=url))


def _wait(app: App) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with app.sessions.read() as session:
            counted = counts.by_status(session)
        if not counted[MediaStatus.PENDING] + counted[MediaStatus.EXTRACTING]:
            return
        time.sleep(0.1)
    raise RuntimeError("the articles were not read in time")


def _span(app: App) -> float:
    with sqlite3.connect(str(app.sessions.engine.url.database)) as database:
        (days,) = database.execute(_SPAN).fetchone()
    return float(days) * 86400


def _pool(place: Place, urls: list[str], read: Callable[[str], str]) -> float:
    """Loop over the addresses in one process per core, and write each text to SQLite."""
    path = str(place.folder / f"{uuid4().hex}.sqlite3")
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE texts (url TEXT PRIMARY KEY, text TEXT)")
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        list(pool.map(partial(_read_one, read, ":memory:"), urls[: CORES * 2]))
        began = time.perf_counter()
        list(pool.map(partial(_read_one, read, path), urls))
        return len(urls) / (time.perf_counter() - began)


def _read_one(read: Callable[[str], str], path: str, url: str) -> None:
    text = read(url)
    with sqlite3.connect(path, timeout=30) as database:
        database.execute("CREATE TABLE IF NOT EXISTS texts (url TEXT PRIMARY KEY, text TEXT)")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("INSERT INTO texts VALUES (?, ?)", (url, text))


def read_bare(url: str) -> str:
    """Make the same two calls as Nexus, with nothing around them."""
    return _read_page(_fetch(url))


def read_forked(url: str) -> str:
    """Read each page in a copy of the process, without a jail: what a process per document costs at least."""
    answer = _fetch(url)
    _get_warm()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        with os.fdopen(theirs, "w") as end:
            end.write(_read_page(answer))
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as end:
        text = end.read()
    os.waitpid(pid, 0)
    return text


def _fetch(url: str) -> Download | NotModified:
    address = url.split("/")[2]
    fetcher = _bare.setdefault(
        address, Fetcher(FetchLimits(allow=parse_host_ports([address]), delay=0, at_once=64))
    )
    return fetcher.get(url)


def _read_page(answer: Download | NotModified) -> str:
    from nexus.errors import WorkError  # noqa: PLC0415
    from nexus.extract import article  # noqa: PLC0415

    try:
        if isinstance(answer, Download):
            found = article.read_article(answer.body, Hints(answer.url, answer.content_type, answer.charset))
            return json.dumps([found.title, [[part.text, part.html] for part in found.fragments]])
    except WorkError as error:
        return error.code
    return ""


@cache
def _get_warm() -> None:
    from nexus.extract import article  # noqa: PLC0415

    article.warm_up()
    gc.freeze()


def read_haystack(url: str) -> str:
    from haystack.components.converters import HTMLToDocument  # noqa: PLC0415
    from haystack.components.fetchers import LinkContentFetcher  # noqa: PLC0415

    streams = LinkContentFetcher().run(urls=[url])["streams"]
    documents = HTMLToDocument(extraction_kwargs=RICH).run(sources=streams)["documents"]
    return json.dumps([document.content for document in documents])


def read_llamaindex(url: str) -> str:
    """Its reader fetches with trafilatura, which refuses loopback, so a plain request replaces that."""
    import trafilatura  # noqa: PLC0415
    import urllib3  # noqa: PLC0415
    from llama_index.readers.web import TrafilaturaWebReader  # noqa: PLC0415

    trafilatura.fetch_url = lambda address, **_: urllib3.request("GET", address).data
    more = {"output_format": "txt", **RICH}
    return json.dumps([document.text for document in TrafilaturaWebReader().load_data([url], **more)])
