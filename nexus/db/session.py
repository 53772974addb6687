"""Sessions and statements: SQLAlchemy builds the SQL once, the driver runs it.

A `Statement` is compiled once per database and then costs little more than the driver's own call;
docs/decisions/0002-statements.md has the figures. A session is a transaction, or single reads.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Engine, Uuid, make_url
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import Boolean, TypeEngine

from nexus.db.drivers import Driver, driver_of

Clock = Callable[[], datetime]
Row = Any  # a namedtuple of the statement's columns
#: Of a moment as SQLite has it: without the offset.
LENGTH = len("2000-01-01 00:00:00.000000")


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

    #: A function of the dialect, if SQLAlchemy has a construct for each database.
    clause: ClauseElement | Callable[[Dialect], ClauseElement]
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
        if not isinstance(clause, ClauseElement):
            clause = clause(dialect)
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


@dataclass(frozen=True)
class Sessions:
    """Opens sessions on one database, at the time that the clock shows."""

    engine: Engine
    clock: Clock
    driver: Driver
    turn: AbstractContextManager[Any]

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A transaction: committed at the end, undone by an exception. On SQLite it is the only writer."""
        with self.turn, self._borrow() as connection:
            self.driver.command(connection, "BEGIN")
            try:
                yield Session(connection, self.engine.dialect, self.clock())
            except BaseException:
                with suppress(Exception):  # a connection that can't even roll back is thrown away below
                    self.driver.command(connection, "ROLLBACK")
                raise
            self.driver.command(connection, "COMMIT")

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
            if not self.driver.is_idle(pooled.driver_connection):
                pooled.invalidate()
            raise
        finally:
            pooled.close()

    def dispose(self) -> None:
        self.engine.dispose()


def wall_clock() -> datetime:
    return datetime.now(UTC)


def connect(url: str, pool: int = 20, clock: Clock = wall_clock) -> Sessions:
    """Sessions on SQLite or PostgreSQL."""
    parsed = make_url(url)
    driver = driver_of(parsed)
    return Sessions(driver.pooled(parsed, pool), clock, driver, driver.turn())
