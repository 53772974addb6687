"""Databases of their own for tests, on the PostgreSQL server that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
from sqlalchemy import make_url

from nexus.db import migrate
from nexus.db.session import Query, Session


@contextmanager
def empty_postgres(server_url: str, template: str = "template1") -> Iterator[str]:
    """The URL of a new database on that server, dropped in the end."""
    base = make_url(server_url).set(drivername="postgresql")
    name = f"nexus_test_{uuid4().hex}"
    with psycopg.connect(base.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield base.set(drivername="postgresql+psycopg", database=name).render_as_string(
                hide_password=False
            )
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def fresh_postgres(server_url: str) -> Iterator[str]:
    """The URL of a new database on that server, migrated, dropped in the end."""
    with empty_postgres(server_url) as url:
        migrate.upgrade_schema(url)
        yield url


@contextmanager
def copied_postgres(template_url: str) -> Iterator[str]:
    """The URL of a copy of this database, to which nobody may be connected. A third of the work of migrating one."""
    template = make_url(template_url)
    server = template.set(database="postgres").render_as_string(hide_password=False)
    with empty_postgres(server, f"{template.database}") as url:
        yield url


def plan_of(session: Session, query: Query[Any], **values: object) -> str:
    """How the database would find the rows of a query."""
    compiled = query.on(session.dialect)
    how = "EXPLAIN QUERY PLAN" if session.is_sqlite else "EXPLAIN"
    rows = session._connection.execute(f"{how} {compiled.sql}", compiled.bind(values)).fetchall()
    return "\n".join(str(row[-1]) for row in rows)
