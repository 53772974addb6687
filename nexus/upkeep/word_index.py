"""Whether the index of words is that of the texts."""

from __future__ import annotations

from sqlite3 import DatabaseError

from sqlalchemy import text

from nexus.db.session import Sessions, Statement
from nexus.db.word_index import INDEX
from nexus.upkeep.findings import CheckVerdict, Finding

_NAME = "search.index"
#: Compares the index with its content, and fails if they differ.
_COMPARE = Statement(text(f"INSERT INTO {INDEX}({INDEX}, rank) VALUES ('integrity-check', 1)"))  # noqa: S608


def check_word_index(sessions: Sessions) -> Finding:
    """SQLite is asked to compare. PostgreSQL makes its index from the chunks by itself."""
    with sessions.begin() as session:
        if session.is_sqlite:
            try:
                session.run(_COMPARE)
            except DatabaseError:
                says = "The index of words differs from the texts, so that some can't be found."
                advice = "Stop Nexus and restore the database from a backup."
                return Finding(_NAME, CheckVerdict.PROBLEM, says, advice)
    return Finding(_NAME, CheckVerdict.OK, "The index of words is that of the texts.")
