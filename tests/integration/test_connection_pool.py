"""The connections that sessions share."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event, literal_column, select
from sqlalchemy.exc import TimeoutError as PoolTimeout

from nexus.db import pool
from nexus.db.session import Sessions, Statement, connect

_ONE = Statement(select(literal_column("1").label("one")))


@pytest.fixture
def sessions(database_url: str) -> Iterator[Sessions]:
    made = connect(database_url, pool=2)
    yield made
    made.dispose()


@pytest.fixture
def opened(sessions: Sessions) -> list[Any]:
    """Every connection that was opened."""
    found: list[Any] = []
    event.listen(sessions.engine, "connect", lambda connection, _: found.append(connection))
    return found


def ask(sessions: Sessions) -> None:
    with sessions.read() as session:
        assert session.first(_ONE).one == 1


def test_one_session_after_another_uses_one_connection(sessions: Sessions, opened: list[Any]) -> None:
    for _ in range(3):
        ask(sessions)
    with sessions.begin() as session:
        session.first(_ONE)
    assert len(opened) == 1


def test_sessions_at_the_same_time_have_different_connections(sessions: Sessions, opened: list[Any]) -> None:
    with sessions.read():
        ask(sessions)
    assert len(opened) == 2


def test_a_session_waits_until_a_connection_is_free(sessions: Sessions, opened: list[Any]) -> None:
    with sessions.read():
        with sessions.read():
            waiting = threading.Thread(target=ask, args=(sessions,))
            waiting.start()
        waiting.join()
    assert len(opened) == 2


def test_a_session_that_waits_too_long_is_refused(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "PATIENCE_SECONDS", 0.01)
    with sessions.read(), sessions.read(), pytest.raises(PoolTimeout), sessions.read():
        pass
    ask(sessions)


def test_a_connection_that_can_not_be_opened_takes_no_place(sessions: Sessions) -> None:
    def refuse(*_: object) -> None:
        raise ConnectionRefusedError

    event.listen(sessions.engine, "do_connect", refuse)
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError), sessions.read():
            pass
    event.remove(sessions.engine, "do_connect", refuse)
    ask(sessions)


def test_a_failed_session_leaves_a_connection_in_no_transaction(
    sessions: Sessions, opened: list[Any]
) -> None:
    with pytest.raises(ZeroDivisionError), sessions.begin():
        raise ZeroDivisionError
    ask(sessions)
    assert len(opened) == 1
    assert sessions.driver.is_idle(opened[0])


def test_a_connection_in_a_transaction_that_nobody_ended_is_not_used_again(
    sessions: Sessions, opened: list[Any]
) -> None:
    with pytest.raises(ZeroDivisionError), sessions.read():
        leave_open(sessions, opened[0])
    ask(sessions)
    assert len(opened) == 2


def leave_open(sessions: Sessions, connection: Any) -> None:
    sessions.driver.command(connection, "BEGIN")
    raise ZeroDivisionError


def test_dispose_closes_what_is_not_in_use(sessions: Sessions, opened: list[Any]) -> None:
    with sessions.read():
        ask(sessions)
    sessions.dispose()
    for connection in opened:
        with pytest.raises(Exception, match="closed"):
            connection.execute("SELECT 1")
    ask(sessions)
    assert len(opened) == 3
