"""What a promise is: sentences for the doctor, and a query that finds the rows which break it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    Select,
    SelectBase,
    Table,
    bindparam,
    func,
    or_,
    select,
    text,
)

from nexus.db.session import Query

RESTORE = "Restore the database from a backup: Nexus itself can't write this."
REPORT = "Restore the database from a backup, and report this as a bug: Nexus should never write it."


class Offender(NamedTuple):
    """A row that breaks a promise, and how many there are in all."""

    id: UUID
    total: int


@dataclass(frozen=True)
class Promise:
    name: str
    #: What the doctor says if it holds.
    holds: str
    #: What the doctor says if it does not.
    broken: str
    advice: str
    #: Finds up to `most` of the rows that break it.
    offenders: Query[Offender]


def offenders(chosen: SelectBase, on_postgres: SelectBase | None = None) -> Query[Offender]:
    """Make the query from a select of ids; PostgreSQL may need another one for the same ids."""
    return Query(_named(chosen), Offender, on_postgres=None if on_postgres is None else _named(on_postgres))


def _named(chosen: SelectBase) -> Select[Any]:
    found = chosen.subquery("found")
    return (
        select(found.c.id, func.count().over().label("total")).order_by(found.c.id).limit(bindparam("most"))
    )


def rows(table: Table, *conditions: ColumnElement[bool]) -> Query[Offender]:
    """Make the query for rows of one table that meet every condition."""
    return offenders(select(table.c.id).where(*conditions))


def against(table: Table, *names: str) -> ColumnElement[bool]:
    """A condition: the row breaks one of these CHECK constraints of its table."""
    checks = {str(c.name): c for c in table.constraints if isinstance(c, CheckConstraint)}
    return or_(*(text(f"NOT ({checks[f'ck_{table.name}_{name}'].sqltext})") for name in names))
