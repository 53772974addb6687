"""What is acknowledged is on the disk: docs/decisions/0008-sqlite-durability.md."""

from __future__ import annotations

from contextlib import ExitStack

from sqlalchemy import Integer, String, column, text

from nexus.db.session import Statement, connect

FULL = 2

_JOURNAL = Statement(text("PRAGMA journal_mode").columns(column("journal_mode", String)))
_SYNCHRONOUS = Statement(text("PRAGMA synchronous").columns(column("synchronous", Integer)))


def test_every_connection_to_sqlite_waits_for_the_disk_at_each_commit(sqlite_url: str) -> None:
    sessions = connect(sqlite_url, pool=3)
    with ExitStack() as stack:
        for _ in range(3):
            session = stack.enter_context(sessions.read())
            assert session.first(_JOURNAL).journal_mode == "wal"
            assert session.first(_SYNCHRONOUS).synchronous == FULL
    sessions.dispose()
