"""How fast feeds are taken in, and what it costs to ask those that have nothing new."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from uuid import UUID, uuid4

import feedparser

from bench.places import Place
from bench.table import Line, interleaved, ratio
from nexus.app import App, build
from nexus.extract.feeds import FEED_READER
from nexus.extract.feeds.results import FeedReading
from nexus.media.feeds.polling import POLL
from nexus.media.feeds.subscribing import Wishes, change_subscription, subscribe_unseen
from nexus.queue import Work
from nexus.settings import Settings
from nexus.work.turns import Turns

ITEMS, ROUNDS = 10_000, 3
FEEDS = 1_000
LEAST = 0.5
USER = uuid4()
#: In seconds of CPU.
MOST_CPU = 10.0
TEXT = (
    '<p>The ferry left the harbour at noon, <em>as it does</em>, with <a href="/people">forty people</a> on board and '
    "a dog. It was back before dark, and nobody had seen a whale.</p><p>The next one leaves tomorrow, if the wind "
    "lets it; the office opens at nine, and tickets are sold on board as well.</p>"
)


def ask(place: Place) -> list[Line]:
    feed = _feed(ITEMS)
    with _served(feed, ITEMS) as address:
        figures = interleaved(
            ROUNDS,
            {"nexus": partial(_take_in, place, address), "feedparser": partial(_parse_alone, feed)},
            warm_up=False,
        )
    speed = {name: f"{median(rounds):.0f}/s" for name, rounds in figures.items()}
    lines = [
        Line(
            "feed items fetched, read, cleaned and stored, against feedparser alone",
            speed["nexus"],
            speed["feedparser"],
            ratio(figures, "nexus", "feedparser"),
            at_least=LEAST,
        )
    ]
    with _served(_feed(3), 3) as address:
        spent = _ask_unchanged(place, address)
    return [
        *lines,
        Line(f"CPU seconds for {FEEDS} unchanged feeds", f"{spent:.1f} s", "", spent, at_most=MOST_CPU),
    ]


def _parse_alone(feed: bytes) -> float:
    began = time.perf_counter()
    assert len(feedparser.parse(BytesIO(feed)).entries) == ITEMS
    return ITEMS / (time.perf_counter() - began)


def _take_in(place: Place, address: str) -> float:
    """One poll on SQLite: from the claim to the last row."""
    app, (made,) = _subscribed(place, [f"{address}/feed"])
    # In a process that has worked for a while, a parser process is there already.
    app.tools.sandbox.read_as(FeedReading, FEED_READER, _feed(1))
    began = time.perf_counter()
    outcome = app.kernel.run(Work(POLL, made))
    seconds = time.perf_counter() - began
    assert outcome == f"{ITEMS} new", outcome
    app.close()
    return ITEMS / seconds


def _ask_unchanged(place: Place, address: str) -> float:
    """The CPU time of this process, without the server's, for one poll of each."""
    app, made = _subscribed(place, [f"{address}/feed/{number}" for number in range(FEEDS)])
    _poll_all(app)
    with app.sessions.begin() as session:
        for one in made:
            change_subscription(session, one, USER, is_paused=True)
            change_subscription(session, one, USER, is_paused=False)
    began = time.process_time()
    outcomes = _poll_all(app)
    spent = time.process_time() - began
    assert outcomes == ["unchanged"] * FEEDS, set(outcomes)
    app.close()
    return spent


def _poll_all(app: App) -> list[str]:
    """As a worker's thread does: claim in turns, poll, settle."""
    handler, turns = app.kernel.handlers[POLL], Turns(app.sessions, app.kernel.leases.length)
    outcomes: list[str] = []
    while claims := turns.claim(handler, 1):
        outcomes += [app.kernel.finish(claim) for claim in claims]
    return outcomes


def _subscribed(place: Place, addresses: list[str]) -> tuple[App, list[UUID]]:
    given: dict[str, object] = {
        "env": "test",
        "database_url": place.migrated("sqlite"),
        "data_dir": Path(tempfile.mkdtemp(dir=place.folder)),
        "fetch_allow": (addresses[0].split("/")[2],),
        "fetch_delay_seconds": 0,
        "fetch_per_host": 64,
        "parser_processes": 2,
        "session_secret": "bench",
    }
    app = build(Settings(_env_file=None, **given))  # type: ignore[arg-type]
    with app.sessions.begin() as session:
        made = [subscribe_unseen(session, USER, address, Wishes()) for address in addresses]
    return app, [one.id for one in made if one is not None]


def _feed(items: int) -> bytes:
    body = escape(TEXT)
    written = "".join(
        f"<item><title>Story {number} of the harbour</title><link>https://example.com/{number}</link>"
        f"<guid isPermaLink='false'>{number}</guid><pubDate>Wed, 01 Jan 2020 10:00:00 GMT</pubDate>"
        f"<description>{body}</description></item>"
        for number in range(items)
    )
    return f'<rss version="2.0"><channel><title>Harbour</title>{written}</channel></rss>'.encode()


@contextmanager
def _served(feed: bytes, items: int) -> Iterator[str]:
    """Serve a feed at every address, from another process, which answers 304 to clients that have it."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(feed, items, theirs), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        server.kill()
        server.join()


def _serve(feed: bytes, items: int, parent: Connection) -> None:
    tag = f'"{items}"'

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.headers.get("If-None-Match") == tag
            self.send_response(304 if is_known else 200)
            self.send_header("Content-Type", "application/rss+xml")
            self.send_header("Content-Length", str(0 if is_known else len(feed)))
            self.send_header("ETag", tag)
            self.end_headers()
            if not is_known:
                self.wfile.write(feed)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    parent.send(server.server_port)
    server.serve_forever()
