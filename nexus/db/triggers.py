"""Triggers made from a machine's edges: the database refuses every other change of a status."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from sqlalchemy import Boolean, Text, column, text

from nexus.db.moves import Subject
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import quoted
from nexus.states.machine import Edge


class _Trigger(NamedTuple):
    name: str
    sql: str


class _PostgresTrigger(NamedTuple):
    name: str
    #: Whether it is on the temporary table of the same name.
    is_twin: bool
    sql: str


_ON_SQLITE = Query(
    text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").columns(
        column("name", Text), column("sql", Text)
    ),
    _Trigger,
)
_ON_POSTGRES = Query(
    text(
        "SELECT t.tgname AS name, n.oid = pg_my_temp_schema() AS is_twin, "
        "CAST(t.tgenabled AS text) || ' ' || pg_get_triggerdef(t.oid) || ' ' || p.prosrc AS sql "
        "FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal AND c.relname = :table_name "
        "AND (n.nspname = current_schema() OR n.oid = pg_my_temp_schema())"
    ).columns(column("name", Text), column("is_twin", Boolean), column("sql", Text)),
    _PostgresTrigger,
)


def create_triggers(subject: Subject[Any], dialect: str) -> list[str]:
    """Return the statements that install the triggers of one table."""
    return _sqlite(subject) if dialect == "sqlite" else _postgres(subject)


def drop_triggers(subject: Subject[Any], dialect: str) -> list[str]:
    """Return the statements that remove them."""
    table = subject.table.name
    if dialect == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {table}_status_edge", f"DROP TRIGGER IF EXISTS {table}_status_birth"]
    return [
        f"DROP TRIGGER IF EXISTS {table}_status_edge ON {table}",
        f"DROP TRIGGER IF EXISTS {table}_status_birth ON {table}",
        f"DROP FUNCTION IF EXISTS {table}_status_refused()",
    ]


def differing(session: Session, subject: Subject[Any]) -> list[str]:
    """Return the names of triggers that are missing or differ from the machine's edges. Needs a transaction."""
    installed, wanted = (_sqlite_guards if session.is_sqlite else _postgres_guards)(session, subject)
    return sorted(name for name in wanted if installed.get(name) != wanted[name])


def _sqlite_guards(session: Session, subject: Subject[Any]) -> tuple[dict[str, str], dict[str, str]]:
    installed = {row.name: row.sql for row in session.all(_ON_SQLITE)}
    return installed, {sql.split()[2]: sql for sql in _sqlite(subject)}


def _postgres_guards(session: Session, subject: Subject[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """PostgreSQL reports a trigger in its own words. To compare, the wanted ones are created on a temporary table of
    the same name, which ends with the transaction."""
    table = subject.table.name
    function, *guards = _postgres(subject)
    for statement in (f"CREATE TEMPORARY TABLE {table} (LIKE {table}) ON COMMIT DROP", *guards):
        session.run(Statement(text(statement)))
    rows = session.all(_ON_POSTGRES, table_name=table)
    installed = {row.name: _placeless(row.sql) for row in rows if not row.is_twin}
    wanted = {row.name: _placeless(row.sql) for row in rows if row.is_twin}
    body = function.split("$$")[1]
    return installed, {
        name: sql if sql.endswith(body) else f"{sql} (other body)" for name, sql in wanted.items()
    }


def _placeless(definition: str) -> str:
    return re.sub(r" ON \S+ ", " ", definition, count=1)


def _illegal(subject: Subject[Any]) -> str:
    status = subject.status.name
    edges = " OR ".join(_legal(edge, status) for edge in subject.machine)
    return f"OLD.{status} <> NEW.{status} AND NOT ({edges})"


def _legal(edge: Edge[Any], status: str) -> str:
    legal = f"OLD.{status} IN ({quoted(edge.sources)}) AND NEW.{status} = '{edge.target.value}'"
    if edge.where is not None:
        column, value = edge.where
        legal += f" AND OLD.{column} = '{value}'"
    return f"({legal})"


def _misborn(subject: Subject[Any]) -> str:
    return f"NEW.{subject.status.name} <> '{subject.machine.initial.value}'"


def _sqlite(subject: Subject[Any]) -> list[str]:
    table, status = subject.table.name, subject.status.name
    refuse = f"SELECT RAISE(ABORT, 'not an edge of the {subject.machine.name} machine')"
    return [
        f"CREATE TRIGGER {table}_status_edge BEFORE UPDATE OF {status} ON {table} "
        f"WHEN {_illegal(subject)} BEGIN {refuse}; END",
        f"CREATE TRIGGER {table}_status_birth BEFORE INSERT ON {table} "
        f"WHEN {_misborn(subject)} BEGIN {refuse}; END",
    ]


def _postgres(subject: Subject[Any]) -> list[str]:
    table, status = subject.table.name, subject.status.name
    return [
        f"CREATE FUNCTION {table}_status_refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"RAISE EXCEPTION 'not an edge of the {subject.machine.name} machine' USING ERRCODE = 'check_violation'; "
        "END $$",
        f"CREATE TRIGGER {table}_status_edge BEFORE UPDATE OF {status} ON {table} FOR EACH ROW "
        f"WHEN ({_illegal(subject)}) EXECUTE FUNCTION {table}_status_refused()",
        f"CREATE TRIGGER {table}_status_birth BEFORE INSERT ON {table} FOR EACH ROW "
        f"WHEN ({_misborn(subject)}) EXECUTE FUNCTION {table}_status_refused()",
    ]
