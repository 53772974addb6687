"""The database, read with its own driver."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

Row = dict[str, Any]
#: How long a read waits for a writer, in seconds.
BUSY = 60


class Database:
    def __init__(self, url: str) -> None:
        self._url = url

    def rows(self, sql: str) -> list[Row]:
        """Return rows, with ids as text from both databases."""
        found = self._sqlite(sql) if self._url.startswith("sqlite") else self._postgres(sql)
        return [{name: _plain(name, value) for name, value in row.items()} for row in found]

    def _sqlite(self, sql: str) -> list[Row]:
        with closing(sqlite3.connect(self._url.removeprefix("sqlite:///"), timeout=BUSY)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql)]

    def _postgres(self, sql: str) -> list[Row]:
        address = urlunsplit(urlsplit(self._url)._replace(scheme="postgresql"))
        with psycopg.connect(address, row_factory=dict_row) as connection:
            return connection.execute(sql.encode()).fetchall()


def _plain(name: str, value: Any) -> Any:
    return str(UUID(str(value))) if value is not None and (name == "id" or name.endswith("_id")) else value
