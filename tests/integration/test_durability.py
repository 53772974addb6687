"""What is acknowledged is on the disk: docs/decisions/0008-sqlite-durability.md."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import Integer, String, column, make_url, text

from nexus.db.session import Statement, connect

FULL = 2

_JOURNAL = Statement(text("PRAGMA journal_mode").columns(column("journal_mode", String)))
_SYNCHRONOUS = Statement(text("PRAGMA synchronous").columns(column("synchronous", Integer)))
#: 6 MB, which is more than SQLite keeps in memory unless told otherwise.
_BOOK = Statement(
    text(
        "INSERT INTO book WITH RECURSIVE pages(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM pages WHERE n < 3000) "
        "SELECT randomblob(2000) FROM pages"
    )
)


def test_every_connection_to_sqlite_waits_for_the_disk_at_each_commit(sqlite_url: str) -> None:
    sessions = connect(sqlite_url, pool=3)
    with ExitStack() as stack:
        for _ in range(3):
            session = stack.enter_context(sessions.read())
            assert session.first(_JOURNAL).journal_mode == "wal"
            assert session.first(_SYNCHRONOUS).synchronous == FULL
    sessions.dispose()


def test_a_large_transaction_writes_its_pages_once_when_it_commits(sqlite_url: str) -> None:
    sessions, log = connect(sqlite_url), Path(f"{make_url(sqlite_url).database}-wal")
    with sessions.begin() as session:
        session.run(Statement(text("CREATE TABLE book (page blob)")))
    before = log.stat().st_size
    with sessions.begin() as session:
        session.run(_BOOK)
        assert log.stat().st_size == before
    assert log.stat().st_size > 6_000_000
    sessions.dispose()
