"""Sessions and statements: SQLAlchemy builds the SQL once, the driver runs it.

A `Statement` is compiled once per database and then costs little more than the driver's own call;
docs/decisions/0002-statements.md has the figures. A session is a transaction, or single reads.
"""

from __future__ import annotations

import select
import sqlite3
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.errors import InFailedSqlTransaction, error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from sqlalchemy import DateTime, Engine, Uuid, create_engine, event, make_url
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import Boolean, TypeEngine

Clock = Callable[[], datetime]
Row = Any  # a namedtuple of the statement's columns
BUSY_SECONDS = 30.0
#: How long SQLite's log may become, 16 MiB, before a commit waits until it is in the database: a book or an import is
#: often longer than the 4 MiB that are its default, and would wait each time.
CHECKPOINT_PAGES = 4000
#: A PostgreSQL that has gone silent is an error after this long, not a thread that waits for ever.
POSTGRES_PATIENCE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "options": "-c statement_timeout=20s -c idle_in_transaction_session_timeout=60s",
}
#: Of a moment as SQLite has it: without the offset.
LENGTH = len("2000-01-01 00:00:00.000000")
_SQLITE_AWAY = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
#: How the codes begin with which PostgreSQL says the same: connections, resources such as a full disk, an operator's
#: stop, the system's own errors; a standby; sessions that were ended for idling; deadlocks and locks.
_POSTGRES_AWAY = ("08", "53", "57", "58", "25006", "25P03", "25P04", "40001", "40P01", "55P03")


def _text(moment: datetime) -> str:
    """Fixed width and UTC, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(" ", "microseconds")[:LENGTH]


def _moment(stored: str) -> datetime:
    return datetime.fromisoformat(f"{stored}+00:00")


_SQLITE_ENCODE: dict[type, Callable[[Any], Any]] = {datetime: _text, UUID: lambda value: value.hex}


def _sqlite_decoder(kind: TypeEngine[Any]) -> Callable[[Any], Any] | None:
    if isinstance(kind, DateTime):
        return _moment
    if isinstance(kind, Uuid):
        return UUID
    return bool if isinstance(kind, Boolean) else None


def _row_maker(names: list[str]) -> Callable[[Iterable[Any]], Row]:
    row_type: Any = namedtuple("Row", names)  # type: ignore[misc]
    make: Callable[[Iterable[Any]], Row] = row_type._make
    return make


@dataclass(frozen=True)
class _Compiled:
    """A statement as one database takes it, and how its rows are made."""

    sql: str
    fixed: Mapping[str, Any]
    order: tuple[str, ...] | None  # positional parameters, where the driver wants them
    make_row: Callable[[Iterable[Any]], Row]
    decoders: tuple[tuple[int, Callable[[Any], Any]], ...]

    def bind(self, values: Mapping[str, Any]) -> Mapping[str, Any] | list[Any]:
        merged = {**self.fixed, **values} if self.fixed else values
        if self.order is None:
            return merged
        return [
            value if (encode := _SQLITE_ENCODE.get(type(value))) is None else encode(value)
            for value in map(merged.__getitem__, self.order)
        ]

    def row(self, raw: Sequence[Any]) -> Row:
        if not self.decoders:
            return self.make_row(raw)
        values = list(raw)
        for index, decode in self.decoders:
            if values[index] is not None:
                values[index] = decode(values[index])
        return self.make_row(values)


@dataclass(frozen=True, eq=False)
class Statement:
    """A Core statement, built once at import and compiled once per database."""

    clause: ClauseElement
    #: What PostgreSQL is asked instead, where it knows a shorter way to the same rows.
    on_postgres: ClauseElement | None = None
    compiled: dict[str, _Compiled] = field(default_factory=dict, repr=False)

    def on(self, dialect: Dialect) -> _Compiled:
        found = self.compiled.get(dialect.name)
        if found is None:
            found = self.compiled[dialect.name] = self._compile(dialect)
        return found

    def _compile(self, dialect: Dialect) -> _Compiled:
        sqlite = dialect.name == "sqlite"
        clause = self.clause if sqlite or self.on_postgres is None else self.on_postgres
        compiled: Any = clause.compile(dialect=dialect)
        columns = list(getattr(clause, "exported_columns", ()))
        decoders = [(i, _sqlite_decoder(column.type)) for i, column in enumerate(columns)]
        return _Compiled(
            sql=compiled.string,
            fixed={name: value for name, value in compiled.params.items() if value is not None},
            order=tuple(compiled.positiontup) if compiled.positional else None,
            make_row=_row_maker([column.key for column in columns]),
            decoders=tuple((i, decode) for i, decode in decoders if decode) if sqlite else (),
        )


class Session:
    """What the verbs are given: runs statements in the transaction that whoever opened it will end."""

    def __init__(self, connection: Any, dialect: Dialect, now: datetime) -> None:
        self._connection = connection
        self.dialect = dialect
        #: The one time of everything that happens in this session.
        self.now = now

    @property
    def is_sqlite(self) -> bool:
        return self.dialect.name == "sqlite"

    def all(self, statement: Statement, **values: Any) -> list[Row]:
        compiled = statement.on(self.dialect)
        cursor = self._connection.execute(compiled.sql, compiled.bind(values))
        return [compiled.row(raw) for raw in cursor.fetchall()]

    def first(self, statement: Statement, **values: Any) -> Row | None:
        compiled = statement.on(self.dialect)
        raw = self._connection.execute(compiled.sql, compiled.bind(values)).fetchone()
        return None if raw is None else compiled.row(raw)

    def run(self, statement: Statement, **values: Any) -> int:
        """How many rows it touched."""
        compiled = statement.on(self.dialect)
        return int(self._connection.execute(compiled.sql, compiled.bind(values)).rowcount)

    def run_many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        compiled = statement.on(self.dialect)
        if len(rows) == 1:  # psycopg's executemany costs several times as much
            self._connection.execute(compiled.sql, compiled.bind(rows[0]))
        elif rows:
            cursor = self._connection.cursor()
            cursor.executemany(compiled.sql, [compiled.bind(values) for values in rows])
            cursor.close()


class CommitUnanswered(psycopg.OperationalError):
    """The connection ended during COMMIT: what was written is there, or it is not. Whoever must know has to look."""


class Turn:
    """One writer of this process after the other. A wait in vain ends with the error that SQLite would give."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=BUSY_SECONDS):
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@dataclass(frozen=True)
class Sessions:
    """Opens sessions on one database, at the time that the clock shows."""

    engine: Engine
    clock: Clock
    #: Held through a transaction on SQLite, which has one writer: its own way to wait for another is to sleep.
    turn: AbstractContextManager[Any] = field(default_factory=nullcontext)

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction: committed at the end, undone by an exception. On SQLite it is the only writer."""
        with self.turn, self._borrow() as connection:
            command = _sqlite_command if self.engine.dialect.name == "sqlite" else _postgres_command
            command(connection, "BEGIN")
            try:
                yield Session(connection, self.engine.dialect, self.clock())
            except BaseException:
                with suppress(Exception):  # a connection that can't even roll back is thrown away below
                    command(connection, "ROLLBACK")
                raise
            command(connection, "COMMIT")

    def single(self) -> AbstractContextManager[Session]:
        """For a call that is one statement on PostgreSQL, which commits it by itself: two round trips less. SQLite
        takes several statements for the same, and so a transaction."""
        return self.begin() if self.engine.dialect.name == "sqlite" else self.read()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Single reads, each seeing what is committed when it runs."""
        with self._borrow() as connection:
            yield Session(connection, self.engine.dialect, self.clock())

    @contextmanager
    def _borrow(self) -> Iterator[Any]:
        pooled = self.engine.raw_connection()
        try:
            yield pooled.driver_connection
        except BaseException:
            if not _is_idle(pooled.driver_connection):
                pooled.invalidate()
            raise
        finally:
            pooled.close()

    def dispose(self) -> None:
        self.engine.dispose()


def _sqlite_command(connection: Any, command: str) -> None:
    connection.execute("BEGIN IMMEDIATE" if command == "BEGIN" else command)


def _postgres_command(connection: Any, command: str) -> None:
    """Straight through libpq: a cursor, which has nothing to bind or fetch here, costs twice as much."""
    result = connection.pgconn.exec_(command.encode())
    if result.status != ExecStatus.COMMAND_OK:
        error = error_from_result(result)
        if connection.pgconn.status == ConnStatus.BAD:
            lost = CommitUnanswered if command == "COMMIT" else psycopg.OperationalError
            raise lost(f"the connection ended during {command}") from error
        raise error
    if command == "COMMIT" and result.command_status == b"ROLLBACK":
        raise InFailedSqlTransaction(
            "an error inside the transaction was passed over, so nothing was committed"
        )


def _is_idle(connection: Any) -> bool:
    """Whether the connection is alive and outside any transaction, so that it may be used again."""
    if hasattr(connection, "in_transaction"):
        return not connection.in_transaction
    return not connection.closed and connection.info.transaction_status == 0


def is_away(error: BaseException) -> bool:
    """Whether the database is out of reach, full, read-only or locked, so that the same call may work in a moment."""
    cause = error.orig if isinstance(error, DBAPIError) else error  # the pool wraps what its driver raises
    if isinstance(cause, sqlite3.OperationalError):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE_AWAY
    if isinstance(cause, psycopg.Error):
        return _is_postgres_away(cause)
    return isinstance(cause, PoolTimeout)


def _is_postgres_away(error: psycopg.Error) -> bool:
    """An error without a code is not the server's: the driver has lost it, or never reached it. What the driver itself
    refuses to send is a ProgrammingError or a DataError."""
    if error.sqlstate:
        return error.sqlstate.startswith(_POSTGRES_AWAY)
    return isinstance(error, psycopg.OperationalError) or type(error) is psycopg.DatabaseError


def wall_clock() -> datetime:
    return datetime.now(UTC)


def connect(url: str, pool: int = 20, clock: Clock = wall_clock) -> Sessions:
    """Sessions on SQLite or PostgreSQL. Drivers run in autocommit: transactions are begun and ended by name."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        options: dict[str, Any] = {"connect_args": {"check_same_thread": False, "timeout": BUSY_SECONDS}}
        engine = create_engine(
            parsed, poolclass=QueuePool, pool_size=pool, max_overflow=0, pool_reset_on_return=None, **options
        )
        event.listen(engine, "connect", _prepare_sqlite)
        return Sessions(engine, clock, Turn())
    parsed = parsed.set(drivername="postgresql+psycopg")
    engine = create_engine(
        parsed, pool_size=pool, max_overflow=0, pool_reset_on_return=None, connect_args=POSTGRES_PATIENCE
    )
    event.listen(engine, "connect", _prepare_postgres)
    event.listen(engine, "checkout", _refuse_dead)
    return Sessions(engine, clock)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    _use_wal(connection)
    for pragma in ("synchronous=FULL", f"wal_autocheckpoint={CHECKPOINT_PAGES}", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _use_wal(connection: Any) -> None:
    """SQLite itself does not wait here: of two that open a new database at once, one is told that it is locked."""
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


def _refuse_dead(connection: Any, _record: object, _proxy: object) -> None:
    """An idle connection with something to read has been closed by the server: the pool opens another."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        raise DisconnectionError


def _prepare_postgres(connection: Any, _record: object) -> None:
    connection.autocommit = True
