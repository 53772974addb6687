"""Triggers made from a machine's table: an edge that is not in it is impossible, by whatever route."""

from __future__ import annotations

from typing import Any

from nexus.db.moves import Subject
from nexus.db.tables import quoted
from nexus.states.machine import Edge


def create(subject: Subject[Any], dialect: str) -> list[str]:
    """The statements that install the guards of one table."""
    return _sqlite(subject) if dialect == "sqlite" else _postgres(subject)


def drop(subject: Subject[Any], dialect: str) -> list[str]:
    table = subject.table.name
    if dialect == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {table}_status_edge", f"DROP TRIGGER IF EXISTS {table}_status_birth"]
    return [
        f"DROP TRIGGER IF EXISTS {table}_status_edge ON {table}",
        f"DROP TRIGGER IF EXISTS {table}_status_birth ON {table}",
        f"DROP FUNCTION IF EXISTS {table}_status_refused()",
    ]


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
