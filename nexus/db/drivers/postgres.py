"""PostgreSQL, with psycopg."""

from __future__ import annotations

import select
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import psycopg
from psycopg.errors import InFailedSqlTransaction, error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from nexus.db import drivers
from nexus.db.drivers import Command

#: A PostgreSQL that stops answering becomes an error after this time, instead of a thread that waits forever.
PATIENCE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "options": "-c statement_timeout=20s -c idle_in_transaction_session_timeout=60s",
}
_SPELLED = {"SNAPSHOT": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
#: Prefixes of error codes that mean "away": lost connections, a full disk, a shutdown, system errors, a read-only
#: standby, sessions ended for idling, deadlocks and locks.
_AWAY = ("08", "53", "57", "58", "25006", "25P03", "25P04", "40001", "40P01", "55P03")


class PostgresCommitUnanswered(drivers.CommitUnanswered, psycopg.OperationalError):
    """Also a psycopg error, for code that catches those."""


def for_sessions(url: URL) -> Engine:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        pool_reset_on_return=None,
        connect_args=PATIENCE,
    )
    event.listen(engine, "connect", _prepare)
    return engine


def for_migrations(url: URL) -> Engine:
    return create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        connect_args={"connect_timeout": PATIENCE["connect_timeout"]},
    )


def turn() -> AbstractContextManager[None]:
    return nullcontext()


def command(connection: Any, command: Command) -> None:
    """Goes straight to libpq: a cursor would take twice as long, with nothing to bind or fetch."""
    result = connection.pgconn.exec_(_SPELLED.get(command, command).encode())
    if result.status != ExecStatus.COMMAND_OK:
        error = error_from_result(result)
        if connection.pgconn.status == ConnStatus.BAD:
            lost = PostgresCommitUnanswered if command == "COMMIT" else psycopg.OperationalError
            raise lost(f"the connection ended during {command}") from error
        raise error
    if command == "COMMIT" and result.command_status == b"ROLLBACK":
        raise InFailedSqlTransaction(
            "nothing was committed, because an error inside the transaction was ignored"
        )


def is_idle(connection: Any) -> bool:
    return not connection.closed and connection.info.transaction_status == 0


def is_fresh(connection: Any) -> bool:
    """If an idle connection has something to read, the server has closed it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


def is_away(error: BaseException) -> bool:
    """An error without a code does not come from the server: the driver lost the connection, or never had one.

    What the driver refuses to send is a ProgrammingError or a DataError.
    """
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate:
        return error.sqlstate.startswith(_AWAY)
    return isinstance(error, psycopg.OperationalError) or type(error) is psycopg.DatabaseError


def is_taken(error: BaseException) -> bool:
    return isinstance(error, psycopg.errors.UniqueViolation)


def _prepare(connection: Any, _record: object) -> None:
    connection.autocommit = True
