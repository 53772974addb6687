"""Sessions and statements: SQLAlchemy builds the SQL once, and the driver runs it.

A `Statement` is compiled once per database and then costs little more than the driver's own call;
docs/decisions/0002-statements.md has the figures. A session is a transaction, or a series of single reads.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property, lru_cache
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints, overload
from uuid import UUID

from sqlalchemy import Boolean, DateTime, Engine, Integer, LargeBinary, String, Uuid, make_url
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import TypeEngine

from nexus.db.drivers import Command, Driver, driver_of
from nexus.db.pool import Pool

Clock = Callable[[], datetime]
R = TypeVar("R", bound=tuple[Any, ...])
S = TypeVar("S", bound="Session")
Decoder = Callable[[Any], Any]
#: So many rows are inserted with one statement. SQLite takes 32,766 values.
MOST_TOGETHER = 256
#: The length of a time as SQLite stores it, without the offset.
LENGTH = len("2000-01-01 00:00:00.000000")


@lru_cache(64)
def _text(moment: datetime) -> str:
    """Of a fixed width and in UTC, so that the text sorts by time. A session's time is written many times over."""
    return moment.astimezone(UTC).isoformat(" ", "microseconds")[:LENGTH]


def _moment(stored: str) -> datetime:
    return datetime.fromisoformat(f"{stored}+00:00")


_SQLITE_ENCODE: dict[type, Callable[[Any], Any]] = {datetime: _text, UUID: lambda value: value.hex}
#: Columns that never hold what has to be encoded. A parameter without a type may hold anything.
_STORED_AS_GIVEN = (Boolean, Integer, LargeBinary, String)
#: PostgreSQL's driver converts these itself.
_SQLITE_DECODE: dict[type, Decoder] = {datetime: _moment, UUID: UUID, bool: bool}


def _sqlite_decoder(kind: TypeEngine[Any]) -> Decoder | None:
    if isinstance(kind, DateTime):
        return _moment
    if isinstance(kind, Uuid):
        return UUID
    return bool if isinstance(kind, Boolean) else None


@dataclass(frozen=True)
class _Compiled:
    """A statement for one database, and how to make its rows."""

    sql: str
    fixed: Mapping[str, Any]
    order: tuple[str, ...] | None  # of positional parameters, if the driver wants them
    encoded: tuple[int, ...]  # the places of those that may have to be encoded
    make_row: Callable[[Sequence[Any]], Any]
    decoders: tuple[tuple[int, Decoder], ...]

    @cached_property
    def values_group(self) -> str | None:
        """The values of an INSERT, if it ends with them and each is a parameter."""
        found = re.search(r"VALUES (\((?:\?(?:, )?)+\))$", self.sql)
        return found[1] if found else None

    def bind(self, values: Mapping[str, Any]) -> Mapping[str, Any] | list[Any]:
        merged = {**self.fixed, **values} if self.fixed else values
        if self.order is None:
            return merged
        ordered = [merged[name] for name in self.order]
        for place in self.encoded:
            encode = _SQLITE_ENCODE.get(type(ordered[place]))
            if encode is not None:
                ordered[place] = encode(ordered[place])
        return ordered

    def row(self, raw: Sequence[Any]) -> Any:
        if not self.decoders:
            return self.make_row(raw)
        values = list(raw)
        for index, decode in self.decoders:
            if values[index] is not None:
                values[index] = decode(values[index])
        return self.make_row(values)


@dataclass(frozen=True, eq=False)
class Statement:
    """A Core statement, built once at import and compiled once for each database."""

    #: A function of the dialect, if SQLAlchemy has another construct for each database.
    clause: ClauseElement | Callable[[Dialect], ClauseElement]
    #: Another statement for PostgreSQL, if it has a shorter way to the same rows.
    on_postgres: ClauseElement | None = field(default=None, kw_only=True)
    compiled: dict[str, _Compiled] = field(default_factory=dict, repr=False, init=False)

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
        make_row, decoders = self._rows(list(getattr(clause, "exported_columns", ())), sqlite)
        order = tuple(compiled.positiontup) if compiled.positional else None
        return _Compiled(
            sql=compiled.string,
            fixed={name: value for name, value in compiled.params.items() if value is not None},
            order=order,
            encoded=tuple(
                place
                for place, name in enumerate(order or ())
                if not isinstance(compiled.binds[name].type, _STORED_AS_GIVEN)
            ),
            make_row=make_row,
            decoders=tuple((i, decode) for i, decode in enumerate(decoders) if decode),
        )

    def _rows(
        self, columns: list[Any], sqlite: bool
    ) -> tuple[Callable[[Sequence[Any]], Any], list[Decoder | None]]:
        decoders = [_sqlite_decoder(column.type) if sqlite else None for column in columns]
        row: Any = namedtuple("Row", [column.key for column in columns])  # type: ignore[misc]
        return row._make, decoders


@dataclass(frozen=True, eq=False)
class Query(Statement, Generic[R]):
    """A statement that returns rows of one type: a NamedTuple whose fields are its columns, in their order.

    Its first field may be a row itself, made of the first columns. Enums, UUIDs, times and booleans are decoded as the
    fields' annotations say.
    """

    row: type[R]

    def _rows(
        self, columns: list[Any], sqlite: bool
    ) -> tuple[Callable[[Sequence[Any]], Any], list[Decoder | None]]:
        row: Any = self.row
        fields = fields_of(row)
        if (answered := [column.key for column in columns]) != list(fields):
            raise TypeError(f"{row.__name__} has the fields {list(fields)}, but its query returns {answered}")
        decoders = [_decoder(hint, sqlite) for hint in fields.values()]
        if tuple(fields) == row._fields:
            return row._make, decoders
        inner: Any = get_type_hints(row)[row._fields[0]]
        length = len(inner._fields)
        return lambda values: row(inner._make(values[:length]), *values[length:]), decoders


def fields_of(row: Any) -> dict[str, Any]:
    """Return the types of the columns that make a row, by their names: those of a row within it come first."""
    hints = get_type_hints(row)
    first = hints[row._fields[0]]
    if not hasattr(first, "_fields"):
        return hints
    del hints[row._fields[0]]
    return {**get_type_hints(first), **hints}


def bare_type(hint: Any) -> Any:
    """Return a field's type without `| None`."""
    if get_origin(hint) not in {UnionType, Union}:
        return hint
    return next(choice for choice in get_args(hint) if choice is not NoneType)


def _decoder(hint: Any, sqlite: bool) -> Decoder | None:
    kind = bare_type(hint)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {member.value: member for member in kind}.__getitem__
    return _SQLITE_DECODE.get(kind) if sqlite else None


class Session:
    """Runs statements. Verbs get one and never end its transaction: the caller who opened it does."""

    def __init__(self, connection: Any, dialect: Dialect, now: datetime) -> None:
        self._connection = connection
        self.dialect = dialect
        #: The time of everything that happens in this session.
        self.now = now

    @property
    def is_sqlite(self) -> bool:
        return self.dialect.name == "sqlite"

    @overload
    def all(self, statement: Query[R], **values: Any) -> list[R]: ...
    @overload
    def all(self, statement: Statement, **values: Any) -> list[Any]: ...
    def all(self, statement: Statement, **values: Any) -> list[Any]:
        compiled = statement.on(self.dialect)
        cursor = self._connection.execute(compiled.sql, compiled.bind(values))
        return [compiled.row(raw) for raw in cursor.fetchall()]

    @overload
    def first(self, statement: Query[R], **values: Any) -> R | None: ...
    @overload
    def first(self, statement: Statement, **values: Any) -> Any | None: ...
    def first(self, statement: Statement, **values: Any) -> Any | None:
        compiled = statement.on(self.dialect)
        raw = self._connection.execute(compiled.sql, compiled.bind(values)).fetchone()
        return None if raw is None else compiled.row(raw)

    def run(self, statement: Statement, **values: Any) -> int:
        """Run a statement; return how many rows it touched."""
        compiled = statement.on(self.dialect)
        return int(self._connection.execute(compiled.sql, compiled.bind(values)).rowcount)

    def run_many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        compiled = statement.on(self.dialect)
        if len(rows) == 1:  # psycopg's executemany takes several times as long
            self._connection.execute(compiled.sql, compiled.bind(rows[0]))
        elif rows and self.is_sqlite and compiled.values_group:
            self._run_together(compiled, rows)
        elif rows:
            cursor = self._connection.cursor()
            cursor.executemany(compiled.sql, [compiled.bind(values) for values in rows])
            cursor.close()

    def _run_together(self, compiled: _Compiled, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert several rows with each statement: after each one, FTS5 writes what was indexed.

        Their number is a power of two, so that there are few statements to prepare.
        """
        start = 0
        while left := len(rows) - start:
            many = min(MOST_TOGETHER, 1 << (left.bit_length() - 1))
            bound = [value for row in rows[start : start + many] for value in compiled.bind(row)]
            self._connection.execute(compiled.sql + f", {compiled.values_group}" * (many - 1), bound)
            start += many


class Snapshot(Session):
    """Its reads all see what was committed when the first of them ran, and it can't write."""


@dataclass(frozen=True)
class Sessions:
    """Opens sessions on one database. Each has the clock's current time."""

    engine: Engine
    pool: Pool
    clock: Clock
    driver: Driver
    turn: AbstractContextManager[Any]

    def begin(self) -> AbstractContextManager[Session]:
        """Open a transaction: committed at the end, rolled back by an exception. SQLite allows one at a time."""
        return self._transaction("BEGIN", self.turn, Session)

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a session for reads that belong together."""
        return self._transaction("SNAPSHOT", nullcontext(), Snapshot)

    @contextmanager
    def _transaction(self, begin: Command, turn: AbstractContextManager[Any], kind: type[S]) -> Iterator[S]:
        with turn:
            lent = self.pool.lend()
            connection, reusable = lent.driver_connection, True
            try:
                self.driver.command(connection, begin)
                try:
                    yield kind(connection, self.engine.dialect, self.clock())
                except BaseException:
                    with suppress(Exception):  # a connection that can't roll back is discarded below
                        self.driver.command(connection, "ROLLBACK")
                    raise
                self.driver.command(connection, "COMMIT")
            except BaseException:
                reusable = self.driver.is_idle(connection)
                raise
            finally:
                self.pool.take_back(lent, reusable=reusable)

    def single(self) -> AbstractContextManager[Session]:
        """Open a session for work that is one statement on PostgreSQL, which commits it without BEGIN and COMMIT.

        SQLite needs several statements for the same work, and so a transaction.
        """
        return self.begin() if self.engine.dialect.name == "sqlite" else self.read()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for single reads. Each sees what is committed when it runs."""
        lent = self.pool.lend()
        connection, reusable = lent.driver_connection, True
        try:
            yield Session(connection, self.engine.dialect, self.clock())
        except BaseException:
            reusable = self.driver.is_idle(connection)
            raise
        finally:
            self.pool.take_back(lent, reusable=reusable)

    def dispose(self) -> None:
        self.pool.close_idle()


def wall_clock() -> datetime:
    return datetime.now(UTC)


def connect(url: str, pool: int = 20, clock: Clock = wall_clock) -> Sessions:
    """Return sessions on a SQLite or PostgreSQL database."""
    parsed = make_url(url)
    driver = driver_of(parsed)
    engine = driver.for_sessions(parsed)
    return Sessions(engine, Pool(engine, pool, driver.is_fresh), clock, driver, driver.turn())
