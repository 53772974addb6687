"""What a transition costs compared with the same statements written by hand for the driver."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from uuid import UUID, uuid4

import psycopg
from sqlalchemy import func, select

from bench.places import Place, add_pending, dsn, path
from bench.table import Line, interleaved, ratio
from nexus.db.chunks import chunks
from nexus.db.moves import LOG
from nexus.db.session import Sessions, Statement, connect
from nexus.db.tables import fragments, history, media, revisions
from nexus.extract import Extraction, Facts
from nexus.media.lifecycle import (
    _READABLE,
    _START,
    DEFAULT_LEASE,
    mark_ready_for_reading,
    worker_start_attempt,
)
from nexus.media.revisions import _WRITE
from nexus.media.searching.chunking import TextPiece, cut_chunks
from nexus.media.texts import Found

LIMITS = {"sqlite": 0.7, "postgres": 0.9}
MEDIA = 200
ROUNDS = 11
TEXT = "A fragment of text."

#: Takes one media all the way, like `ours`.
ByHand = Callable[[UUID], None]

_LEFT = Statement(select(func.count().label("left")).where(media.c.processing_status != "ready_for_reading"))
_WRITTEN = Statement(
    select(
        select(func.count()).select_from(history).scalar_subquery().label("history"),
        select(func.count()).select_from(fragments).scalar_subquery().label("fragments"),
    )
)


def ask(place: Place) -> list[Line]:
    return [_compare(place, backend) for backend in LIMITS]


def _compare(place: Place, backend: str) -> Line:
    url = place.migrated(backend)
    sessions = connect(url)
    with by_hand(url, sessions) as take:
        figures = interleaved(
            ROUNDS,
            {
                "ours": partial(_microseconds, sessions, partial(ours, sessions)),
                "by hand": partial(_microseconds, sessions, take),
            },
        )
    _check(sessions)
    sessions.dispose()
    best = {name: f"{sorted(rounds)[len(rounds) // 2]:,.0f} µs" for name, rounds in figures.items()}
    return Line(
        f"claim and finish, {backend}, by hand",
        best["ours"],
        best["by hand"],
        # A ratio of speeds, not of times: half as fast is 0.5.
        ratio(figures, "by hand", "ours"),
        at_least=LIMITS[backend],
    )


def _microseconds(sessions: Sessions, take: ByHand) -> float:
    """Take one media from pending to ready_for_reading, in two transactions."""
    ids = add_pending(sessions, uuid4(), MEDIA)
    began = time.perf_counter()
    for media_id in ids:
        take(media_id)
    return (time.perf_counter() - began) / MEDIA * 1e6


def _check(sessions: Sessions) -> None:
    """Check that both sides did all of the work: every media has two history rows, a fragment and a document."""
    with sessions.read() as session:
        left, written = session.first(_LEFT).left, session.first(_WRITTEN)
    assert left == 0
    assert written.history == 2 * written.fragments == 2 * 2 * (ROUNDS + 1) * MEDIA


def ours(sessions: Sessions, media_id: UUID) -> None:
    with sessions.single() as session:
        claim = worker_start_attempt(session, media_id)
    with sessions.single() as session:
        mark_ready_for_reading(
            session, media_id, claim.processing_attempts, Found(Extraction.plain("Title", TEXT), "bench")
        )


def _sql(sessions: Sessions, *statements: Statement) -> list[str]:
    """The exact SQL that Nexus sends."""
    return [statement.on(sessions.engine.dialect).sql for statement in statements]


@contextmanager
def by_hand(url: str, sessions: Sessions) -> Iterator[ByHand]:
    """Yield what takes one media all the way on a connection of its own."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(path(url), isolation_level=None)) as connection:
            yield _sqlite_by_hand(connection, sessions)
    else:
        with closing(psycopg.connect(dsn(url), autocommit=True)) as connection:
            yield _postgres_by_hand(connection, sessions)


def _sqlite_by_hand(connection: sqlite3.Connection, sessions: Sessions) -> ByHand:
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    claim, finish, log = _sql(sessions, _START.query, _READABLE.one.query, LOG)
    dialect = sessions.engine.dialect
    chunk, fragment, document = _sql(sessions, _WRITE[chunks], _WRITE[fragments], _WRITE[revisions])
    chunk_columns, columns = (_WRITE[table].on(dialect).order or () for table in (chunks, revisions))

    def take(media_id: UUID) -> None:
        key = media_id.hex
        now = datetime.now(UTC)
        at, until = _stored(now), _stored(now + DEFAULT_LEASE)
        connection.execute("BEGIN IMMEDIATE")
        row = connection.execute(claim, (until, at, at, key, at)).fetchone()
        attempt = row[8]
        connection.execute(log, ("media", row[0], "start", row[4], "extracting", at, "worker", attempt, None))
        connection.execute("COMMIT")
        at = _stored(datetime.now(UTC))
        connection.execute("BEGIN IMMEDIATE")
        row = connection.execute(finish, ("Title", at, at, None, None, None, key, attempt)).fetchone()
        connection.execute(
            log, ("media", row[0], "readable", row[1], "ready_for_reading", at, "worker", attempt, None)
        )
        written = _document(key, at)
        connection.execute(document, [written[column] for column in columns])
        connection.execute(fragment, (key, 1, 0, uuid4().hex, TEXT, None))
        connection.executemany(chunk, [[row[column] for column in chunk_columns] for row in _chunks(key)])
        connection.execute("COMMIT")

    return take


def _document(media_id: object, at: object) -> dict[str, object]:
    empty = dict.fromkeys(column.name for column in revisions.c)
    said = {"number": 1, "extractor": "bench", "words": 4, "outline": "[]", "written_at": at, "pieces": 1}
    also = {
        "content_hash": "0" * 64,
        "origin": "extracted",
        "characters": 4,
        "seen_at": at,
        "seen_by": "bench",
        "title_key": "",
    }
    return {**empty, **said, **also, "media_id": media_id}


def _chunks(media_id: str) -> list[dict[str, object]]:
    cut = cut_chunks("Title", Facts(), [TextPiece(0, TEXT, None)])
    return [{**chunk._asdict(), "id": chunk.id.hex, "media_id": media_id, "revision": 1} for chunk in cut]


def _stored(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")


def _postgres_by_hand(connection: psycopg.Connection, sessions: Sessions) -> ByHand:
    """On PostgreSQL, a move and everything it writes is one statement."""
    claim, finish = _sql(sessions, _START.query, _READABLE.query)
    logged = {"actor": "worker", "error_code": None}

    def take(media_id: UUID) -> None:
        now = datetime.now(UTC)
        values = {"row_id": media_id, "now": now, "until": now + DEFAULT_LEASE, **logged}
        row = connection.execute(claim, values).fetchone()
        now = datetime.now(UTC)
        key = str(media_id)
        piece = {"media_id": key, "position": 0, "id": str(uuid4()), "text": TEXT, "html": None}
        values = {
            "moves": json.dumps([{"row_id": key, "fence": row[8], "title": "Title", "reserved": None}]),
            "fragments": json.dumps([piece]),
            "chunks": json.dumps(_chunks(key)),
            "revisions": json.dumps([_document(key, str(now))]),
            "now": now,
            **logged,
        }
        connection.execute(finish, values).fetchone()

    return take
