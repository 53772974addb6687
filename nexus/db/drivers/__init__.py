"""What differs between the databases: one module for each, loaded for the URL that asks for it.

A driver takes long to import, so a Nexus on SQLite never loads PostgreSQL's.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from sqlalchemy import URL, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

Command = Literal["BEGIN", "COMMIT", "ROLLBACK"]


class CommitUnanswered(Exception):
    """The connection ended during COMMIT: what was written is there, or it is not. To know, look."""


class Driver(Protocol):
    def pooled(self, url: URL, size: int) -> Engine:
        """An engine in autocommit: transactions are begun and ended by name."""

    def unpooled(self, url: URL) -> Engine:
        """An engine for schema work: ordinary transactions."""

    def turn(self) -> AbstractContextManager[Any]:
        """Held through each transaction of the process."""

    def command(self, connection: Any, command: Command) -> None: ...

    def is_idle(self, connection: Any) -> bool:
        """Whether the connection is alive and outside any transaction, so that it may be used again."""

    def is_away(self, error: BaseException) -> bool:
        """Whether this is an error of the driver that says so."""


_loaded: list[Driver] = []


def driver_of(url: URL) -> Driver:
    """Raises what SQLAlchemy raises for a database that Nexus does not know."""
    driver = _sqlite() if url.get_backend_name() == "sqlite" else _postgres()
    if driver not in _loaded:
        _loaded.append(driver)
    return driver


def _sqlite() -> Driver:
    from nexus.db.drivers import sqlite  # noqa: PLC0415 only where the URL asks for it

    return sqlite


def _postgres() -> Driver:
    from nexus.db.drivers import postgres  # noqa: PLC0415 only where the URL asks for it

    return postgres


def is_away(error: BaseException) -> bool:
    """Whether the database is out of reach, full, read-only or locked, so that the same call may work in a moment.

    Only a driver that is loaded can have raised it.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error  # the pool wraps what its driver raises
    if isinstance(cause, PoolTimeout | CommitUnanswered):
        return True
    return cause is not None and any(driver.is_away(cause) for driver in _loaded)
