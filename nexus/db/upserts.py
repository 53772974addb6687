"""Inserts that say what happens if the row exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import ClauseElement, Column, ColumnElement, Select, Table, bindparam
from sqlalchemy.engine import Dialect

from nexus.db.session import Query, R, Statement

Values = Mapping[Column[Any], ColumnElement[Any]]


def upsert(table: Table, values: Values, on_conflict: Callable[[Any], ClauseElement]) -> Statement:
    """Return an INSERT to which `on_conflict` adds the clause. It gets the INSERT of the database in use."""
    return Statement(lambda dialect: on_conflict(_insert(dialect)(table).values(values)))


def upsert_returning(
    row: type[R], table: Table, values: Values, on_conflict: Callable[[Any], ClauseElement]
) -> Query[R]:
    """The same for a statement that answers with rows."""
    return Query(lambda dialect: on_conflict(_insert(dialect)(table).values(values)), row)


def upsert_from(
    table: Table, columns: Sequence[str], rows: Select[Any], on_conflict: Callable[[Any], ClauseElement]
) -> Statement:
    """The same for rows that a SELECT finds. It needs a WHERE, or SQLite misreads the clause."""
    return Statement(lambda dialect: on_conflict(_insert(dialect)(table).from_select(columns, rows)))


def insert_or_nothing(table: Table) -> Statement:
    """Return an INSERT of every column that leaves an existing row as it is."""
    return upsert(table, every_column(table), lambda new: new.on_conflict_do_nothing())


def every_column(table: Table) -> Values:
    """Return a parameter for each column, named after it."""
    return {column: bindparam(column.name) for column in table.c}


def _insert(dialect: Dialect) -> Any:
    """Import only the dialect in use: each is slow to load."""
    if dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite  # noqa: PLC0415

        return sqlite.insert
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415

    return postgresql.insert
