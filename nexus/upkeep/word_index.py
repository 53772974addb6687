"""Whether the index of words is that of the texts."""

from __future__ import annotations

from sqlite3 import DatabaseError
from typing import NamedTuple

from sqlalchemy import Text, column, text

from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.word_index import INDEX, POSTGRES_TRIGGERS, TRIGGERS
from nexus.upkeep.findings import CheckVerdict, Finding

_NAME = "search.index"


class _WordTrigger(NamedTuple):
    name: str


def _triggers_of(sql: str) -> Query[_WordTrigger]:
    return Query(text(sql).columns(column("name", Text)), _WordTrigger)


#: Compares the index with its content, and fails if they differ.
_COMPARE = Statement(text(f"INSERT INTO {INDEX}({INDEX}, rank) VALUES ('integrity-check', 1)"))  # noqa: S608
_MAKE_AGAIN = Statement(text(f"INSERT INTO {INDEX}({INDEX}) VALUES ('rebuild')"))  # noqa: S608
_ON_SQLITE = _triggers_of("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'chunks'")
_ON_POSTGRES = _triggers_of(
    "SELECT tgname::text AS name FROM pg_trigger WHERE tgrelid = 'chunks'::regclass AND tgenabled = 'O'"
)


def check_word_index(sessions: Sessions) -> Finding:
    """SQLite is asked to compare. PostgreSQL makes its index from the chunks on its own."""
    with sessions.begin() as session:
        if _missing_triggers(session):
            says = "The triggers that keep the index of words in step with the texts are missing."
            return Finding(
                _NAME, CheckVerdict.PROBLEM, says, "Stop Nexus and restore the database from a backup."
            )
        if not _is_same(session):
            says = "The index of words differs from the texts, so that some can't be found."
            return Finding(_NAME, CheckVerdict.PROBLEM, says, "Run: nexus embed --repair")
    return Finding(_NAME, CheckVerdict.OK, "The index of words is that of the texts.")


def repair_word_index(sessions: Sessions) -> bool:
    """Make the index of words from the chunks again, if it differs from them. Searches wait meanwhile."""
    with sessions.begin() as session:
        if _is_same(session):
            return False
        session.run(_MAKE_AGAIN)
    return True


def _missing_triggers(session: Session) -> set[str]:
    wanted, present = (TRIGGERS, _ON_SQLITE) if session.is_sqlite else (POSTGRES_TRIGGERS, _ON_POSTGRES)
    return {*wanted} - {row.name for row in session.all(present)}


def _is_same(session: Session) -> bool:
    if session.is_sqlite:
        try:
            session.run(_COMPARE)
        except DatabaseError:
            return False
    return True
