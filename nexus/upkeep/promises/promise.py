"""One promise, and how those who break it are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

from nexus.db.session import Statement

RESTORE = "Restore a copy of the database: Nexus itself can't write this."
REPORT = "Restore a copy of the database, and report it: Nexus should never write this."


@dataclass(frozen=True)
class Promise:
    name: str
    #: The sentence where it holds.
    holds: str
    #: The sentence where it does not.
    broken: str
    advice: str
    #: Up to `most` rows that break it: their id, and in `total` how many there are.
    offenders: Statement


def offenders(chosen: SelectBase, on_postgres: SelectBase | None = None) -> Statement:
    """From a select of ids; from another one where PostgreSQL says the same in other words."""
    return Statement(_named(chosen), None if on_postgres is None else _named(on_postgres))


def _named(chosen: SelectBase) -> Select[Any]:
    found = chosen.subquery("found")
    return (
        select(found.c.id, func.count().over().label("total")).order_by(found.c.id).limit(bindparam("most"))
    )


def rows(table: Table, *conditions: ColumnElement[bool]) -> Statement:
    return offenders(select(table.c.id).where(*conditions))


def against(table: Table, *names: str) -> ColumnElement[bool]:
    """Rows that constraints of their table would refuse."""
    checks = {str(c.name): c for c in table.constraints if isinstance(c, CheckConstraint)}
    return or_(*(text(f"NOT ({checks[f'ck_{table.name}_{name}'].sqltext})") for name in names))
