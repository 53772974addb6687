"""Inserts that say what becomes of a row that is there already."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import BindParameter, ClauseElement, Column, Table, bindparam
from sqlalchemy.engine import Dialect

from nexus.db.session import Statement

Values = Mapping[Column[Any], BindParameter[Any]]


def upsert(table: Table, values: Values, on_conflict: Callable[[Any], ClauseElement]) -> Statement:
    """`on_conflict` is given the INSERT of the database that the statement runs on: both speak the same clauses."""
    return Statement(lambda dialect: on_conflict(_insert(dialect)(table).values(values)))


def insert_or_nothing(table: Table) -> Statement:
    """An INSERT that is given every column, and leaves a row that is there."""
    return upsert(table, every_column(table), lambda new: new.on_conflict_do_nothing())


def every_column(table: Table) -> Values:
    return {column: bindparam(column.name) for column in table.c}


def _insert(dialect: Dialect) -> Any:
    """Imported for the database that is used: each loads all that SQLAlchemy knows of it."""
    if dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite  # noqa: PLC0415

        return sqlite.insert
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415

    return postgresql.insert
