"""The peers' state rows: what Nexus has in its media table, at its plainest."""

from __future__ import annotations

import sqlite3
import time

import psycopg

from bench.contenders import Ground
from bench.places import dsn, path

_TABLE = "CREATE TABLE work (id integer PRIMARY KEY, state text NOT NULL, began float8, ended float8)"
_ADD = "INSERT INTO work (id, state) VALUES ({0}, 'pending')"
_BEGIN = "UPDATE work SET state = 'extracting', began = {0} WHERE id = {0}"
_END = "UPDATE work SET state = 'done', ended = {0} WHERE id = {0}"
_PROGRESS = "SELECT count(ended), max(ended) - min(began) FROM work"

#: In PostgreSQL's spelling, for peers that work with asyncio.
BEGIN, END = _BEGIN.format("%s"), _END.format("%s")


def postgres(ground: Ground) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(dsn(ground.database), autocommit=True)


def sqlite(ground: Ground) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path(ground.database), timeout=30, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def fill_postgres(ground: Ground, count: int) -> None:
    with postgres(ground) as connection:
        connection.execute(_TABLE)
        connection.cursor().executemany(_ADD.format("%s"), [(number,) for number in range(count)])


def fill_sqlite(ground: Ground, count: int) -> None:
    connection = sqlite(ground)
    connection.execute(_TABLE)
    connection.execute("BEGIN")
    connection.executemany(_ADD.format("?"), [(number,) for number in range(count)])
    connection.execute("COMMIT")
    connection.close()


def walk_postgres(connection: psycopg.Connection[tuple[object, ...]], number: int) -> None:
    """Autocommit: each statement is a transaction."""
    connection.execute(BEGIN, (time.time(), number))
    connection.execute(END, (time.time(), number))


def walk_sqlite(connection: sqlite3.Connection, number: int) -> None:
    connection.execute(_BEGIN.format("?"), (time.time(), number))
    connection.execute(_END.format("?"), (time.time(), number))


def progress_postgres(ground: Ground) -> tuple[int, float]:
    with postgres(ground) as connection:
        return connection.execute(_PROGRESS).fetchone()  # type: ignore[return-value]


def progress_sqlite(ground: Ground) -> tuple[int, float]:
    connection = sqlite(ground)
    try:
        found: tuple[int, float] = connection.execute(_PROGRESS).fetchone()
        return found
    finally:
        connection.close()
