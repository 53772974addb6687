"""SQLite, with one writer at a time."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from nexus.db.drivers import Command

BUSY_SECONDS = 30.0
#: How long SQLite's write-ahead log grows, 16 MiB, before a commit waits for a checkpoint. A book or an import often
#: exceeds the default of 4 MiB, and would wait each time.
CHECKPOINT_PAGES = 4000
#: How many changed pages a transaction keeps in memory, 16 MiB, before it writes some to the log ahead of its commit.
#: Each of them is written again whenever it changes again, and pages of indexes do so all the time: with SQLite's
#: default of 2 MB an import writes half as much again.
SPILLED_PAGES = 4000
_SPELLED = {"BEGIN": "BEGIN IMMEDIATE", "SNAPSHOT": "BEGIN"}
_AWAY = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}


class Turn:
    """Lets one thread of this process write at a time, because SQLite itself waits by sleeping.

    After too long a wait it raises the error that SQLite would raise.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=BUSY_SECONDS):
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def for_sessions(url: URL) -> Engine:
    _make_folder(url)
    options: dict[str, Any] = {"check_same_thread": False, "timeout": BUSY_SECONDS}
    engine = create_engine(url, poolclass=NullPool, pool_reset_on_return=None, connect_args=options)
    event.listen(engine, "connect", _prepare)
    return engine


def for_migrations(url: URL) -> Engine:
    _make_folder(url)
    return create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})


def turn() -> Turn:
    return Turn()


def command(connection: Any, command: Command) -> None:
    connection.execute(_SPELLED.get(command, command))


def is_idle(connection: Any) -> bool:
    return not connection.in_transaction


def is_fresh(_connection: Any) -> bool:
    return True


def is_away(error: BaseException) -> bool:
    return (
        isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _AWAY
    )


def is_taken(error: BaseException) -> bool:
    taken = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
    return isinstance(error, sqlite3.IntegrityError) and error.sqlite_errorcode in taken


def _make_folder(url: URL) -> None:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)


def _prepare(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    _use_wal(connection)
    for pragma in (
        "synchronous=FULL",
        f"wal_autocheckpoint={CHECKPOINT_PAGES}",
        f"cache_spill={SPILLED_PAGES}",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _use_wal(connection: Any) -> None:
    """SQLite does not wait here: if two processes open a new database at once, one gets "database is locked"."""
    patience = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                raise
            time.sleep(0.01)
        else:
            return
