"""What live events cost: reads beside many idle streams, and coming back to a long history."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from uuid import UUID, uuid4

from sqlalchemy import text

from bench.client import burst
from bench.over_http import CONNECTIONS, Running, nexus_server
from bench.places import Place, add_pending
from bench.table import Line, interleaved, ratio
from nexus.db.session import Sessions, connect
from nexus.media.add import add_url
from nexus.settings import load
from nexus.upkeep import events
from nexus.upkeep.events import StreamPlace
from nexus.web.http.bearer import issue_token

STREAMS, PER_USER = 500, 10
ADDED_PER_SECOND = 7
REQUESTS = 2000
ROUNDS = 7
LEAST = 0.75
FEW, MANY = 3_400, 3_400_000
#: Of the one who comes back, and of somebody else, who made nearly all of the history.
OWN, FOREIGN = 10, 340
#: One statement writes the history of somebody else so many times: a larger one would take too long for its connection.
AT_ONCE = 500
RESUMES = 15
LIMIT = 1.5
PATIENCE = 60.0
_LENGTHEN = """
WITH RECURSIVE times(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM times WHERE n < :times)
INSERT INTO history (subject, subject_id, event, to_status, at, actor, attempt)
SELECT 'media', media.id, 'create', 'pending', media.created_at, 'system', 0
FROM times CROSS JOIN media WHERE media.created_by_user_id = :user
"""


def ask(place: Place) -> list[Line]:
    backends = ("sqlite", "postgres")
    return [_beside_streams(place, backend) for backend in backends] + [
        _resume(place, backend) for backend in backends
    ]


def _beside_streams(place: Place, backend: str) -> Line:
    url, folder = place.migrated(backend), place.folder / f"events-{backend}"
    owner = load(folder).local_owner
    assert owner is not None
    sessions = connect(url)
    media_id = add_pending(sessions, owner, 1)[0]
    with ExitStack() as stack:
        busy, calm = (
            stack.enter_context(nexus_server(url, folder, NEXUS_EXTRACTION="off")) for _ in range(2)
        )
        stack.enter_context(_streams(busy, folder))
        stack.enter_context(_adding(sessions))
        speed = interleaved(
            ROUNDS,
            {
                name: partial(_get, server, media_id)
                for name, server in (("with streams", busy), ("without", calm))
            },
        )
    sessions.dispose()
    return Line(
        f"GET /media/{{id}} beside {STREAMS} idle streams, {backend}",
        f"{median(speed['with streams']):,.0f}/s",
        f"{median(speed['without']):,.0f}/s",
        ratio(speed, "with streams", "without"),
        at_least=LEAST,
    )


def _get(server: Running, media_id: UUID) -> float:
    return burst(server.port, f"/media/{media_id}", server.headers, CONNECTIONS, REQUESTS).per_second


@contextmanager
def _streams(server: Running, folder: Path) -> Iterator[None]:
    """Streams of other users, who see nothing of what is added."""
    settings = load(folder)
    with ExitStack() as stack:
        for number in range(STREAMS):
            if number % PER_USER == 0:
                user = uuid4()
            headers = {**server.headers, "Authorization": f"Bearer {issue_token(settings, user)}"}
            line = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
            fields = [f"{name}: {value}" for name, value in headers.items()]
            line.sendall("\r\n".join(["GET /events HTTP/1.1", "Host: 127.0.0.1", *fields, "", ""]).encode())
            answer = b""
            while b"hello" not in answer:
                if not (piece := line.recv(4096)) or not (answer + piece).startswith(b"HTTP/1.1 200"):
                    raise RuntimeError(f"no stream: {answer + piece!r}")
                answer += piece
        yield


@contextmanager
def _adding(sessions: Sessions) -> Iterator[None]:
    """Somebody adds items all the while."""
    enough, user = threading.Event(), uuid4()
    add_pending(sessions, user, 1)

    def add() -> None:
        while not enough.wait(1 / ADDED_PER_SECOND):
            with sessions.begin() as session:
                add_url(session, user, "web_article", f"https://example.com/{uuid4().hex}", {})

    adding = threading.Thread(target=add)
    adding.start()
    try:
        yield
    finally:
        enough.set()
        adding.join()


@dataclass(frozen=True)
class Past:
    """A database with so much history, and somebody who comes back to it."""

    sessions: Sessions
    viewer: UUID


def _resume(place: Place, backend: str) -> Line:
    few, many = (_past(place, backend, size) for size in (FEW, MANY))
    figures = interleaved(RESUMES, {"few": partial(_come_back, few), "many": partial(_come_back, many)})
    for past in (few, many):
        past.sessions.dispose()
    cost = {name: f"{median(rounds) * 1000:.2f} ms" for name, rounds in figures.items()}
    return Line(
        f"resume, {backend}: {MANY:,} events beside {FEW:,}",
        cost["many"],
        cost["few"],
        ratio(figures, "many", "few"),
        at_most=LIMIT,
    )


def _come_back(past: Past) -> float:
    """From the very beginning to the newest place, with all events in between."""
    began = time.perf_counter()
    place, found = StreamPlace(0, 0), 0
    with past.sessions.read() as session:
        newest = events.newest_place(session)
        while place < newest:
            passage = events.events_after(session, past.viewer, place, newest)
            place, found = passage.place, found + len(passage.rows)
    assert found == 2 * OWN
    return time.perf_counter() - began


def _past(place: Place, backend: str, size: int) -> Past:
    """Their own events are at the beginning and at the end."""
    sessions = connect(place.migrated(backend))
    viewer, other = uuid4(), uuid4()
    add_pending(sessions, viewer, OWN)
    add_pending(sessions, other, FOREIGN)
    parts = [AT_ONCE] * (size // FOREIGN // AT_ONCE) or [size // FOREIGN]
    for user, times in ((viewer, 1), *((other, part) for part in parts), (viewer, 1)):
        with sessions.engine.begin() as connection:
            given = user if backend == "postgres" else user.hex
            connection.execute(text(_LENGTHEN), {"times": times, "user": given})
    pooled = sessions.engine.raw_connection()
    pooled.driver_connection.execute("ANALYZE" if backend == "sqlite" else "VACUUM ANALYZE")
    pooled.close()
    return Past(sessions, viewer)
