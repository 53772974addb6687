"""The database, through its own driver."""

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

    def put_back(self, table: str, column: str) -> None:
        """Make the times in this column a year older, as if all of it had happened then."""
        if self._url.startswith("sqlite"):
            older = f"CAST(substr({column}, 1, 4) - 1 AS TEXT) || substr({column}, 5)"
            with closing(self._sqlite_connection()) as connection, connection:
                connection.execute(f"UPDATE {table} SET {column} = {older}")
        else:
            with self._postgres_connection() as connection:
                connection.execute(f"UPDATE {table} SET {column} = {column} - interval '365 days'".encode())

    def _sqlite(self, sql: str) -> list[Row]:
        with closing(self._sqlite_connection()) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql)]

    def _postgres(self, sql: str) -> list[Row]:
        with self._postgres_connection() as connection:
            return connection.execute(sql.encode()).fetchall()

    def _sqlite_connection(self) -> sqlite3.Connection:
        return sqlite3.connect(self._url.removeprefix("sqlite:///"), timeout=BUSY)

    def _postgres_connection(self) -> psycopg.Connection[Row]:
        address = urlunsplit(urlsplit(self._url)._replace(scheme="postgresql"))
        return psycopg.connect(address, row_factory=dict_row)


def _plain(name: str, value: Any) -> Any:
    return str(UUID(str(value))) if value is not None and (name == "id" or name.endswith("_id")) else value
