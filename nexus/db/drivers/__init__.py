"""What differs between the databases: one module for each, imported only if the URL asks for it.

A driver is slow to import, so a Nexus on SQLite never loads PostgreSQL's.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from sqlalchemy import URL, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

#: SNAPSHOT begins a transaction that only reads, and sees the database as it is at one moment.
Command = Literal["BEGIN", "SNAPSHOT", "COMMIT", "ROLLBACK"]


class CommitUnanswered(Exception):
    """The connection was lost during COMMIT: the transaction may or may not be committed. To find out, look."""


class Driver(Protocol):
    def for_sessions(self, url: URL) -> Engine:
        """An engine in autocommit mode: `command` begins and ends transactions."""

    def for_migrations(self, url: URL) -> Engine:
        """An engine for schema work, with ordinary transactions."""

    def turn(self) -> AbstractContextManager[Any]:
        """A lock that each transaction of the process holds."""

    def command(self, connection: Any, command: Command) -> None: ...

    def is_idle(self, connection: Any) -> bool:
        """Whether the connection is alive and in no transaction, so that it can be used again."""

    def is_fresh(self, connection: Any) -> bool:
        """Whether a connection that was not in use is still connected, as far as this process can tell."""

    def is_away(self, error: BaseException) -> bool:
        """Whether this driver's error says that the database is away."""

    def is_taken(self, error: BaseException) -> bool:
        """Whether this driver's error says that another row has what a unique index allows once."""


_loaded: list[Driver] = []


def driver_of(url: URL) -> Driver:
    """Return the driver for a URL. Raises what SQLAlchemy raises if Nexus does not support the database."""
    driver = _sqlite() if url.get_backend_name() == "sqlite" else _postgres()
    if driver not in _loaded:
        _loaded.append(driver)
    return driver


def _sqlite() -> Driver:
    from nexus.db.drivers import sqlite  # noqa: PLC0415 only if the URL asks for it

    return sqlite


def _postgres() -> Driver:
    from nexus.db.drivers import postgres  # noqa: PLC0415 only if the URL asks for it

    return postgres


def is_away(error: BaseException) -> bool:
    """Whether the database is out of reach, full, read-only or locked, so that the same call may work in a moment.

    Only drivers that are loaded can have raised it.
    """
    cause = error.orig if isinstance(error, DBAPIError) else error  # the pool wraps what its driver raises
    if isinstance(cause, PoolTimeout | CommitUnanswered):
        return True
    return cause is not None and any(driver.is_away(cause) for driver in _loaded)


def is_taken(error: BaseException) -> bool:
    """Whether another row has what a unique index allows once. The transaction can only be rolled back."""
    return any(driver.is_taken(error) for driver in _loaded)
