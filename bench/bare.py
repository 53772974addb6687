"""A bare web server: a FastAPI `def` endpoint that reads one row by its key. over_http starts it."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import uvicorn
from fastapi import FastAPI
from psycopg_pool import ConnectionPool

from bench.places import dsn, path

COLUMNS = ("id", "kind", "title", "processing_status", "canonical_url")
SELECT = f"SELECT {', '.join(COLUMNS)} FROM media WHERE id = "

Read = Callable[[UUID], Any]


def from_sqlite(url: str) -> Read:
    own = threading.local()

    def read(media_id: UUID) -> Any:
        if not hasattr(own, "connection"):
            own.connection = sqlite3.connect(path(url), isolation_level=None)
        return own.connection.execute(f"{SELECT} ?", (media_id.hex,)).fetchone()

    return read


def from_postgres(url: str) -> Read:
    pool = ConnectionPool(dsn(url), min_size=8, max_size=20, kwargs={"autocommit": True}, open=True)

    def read(media_id: UUID) -> Any:
        with pool.connection() as connection:
            return connection.execute(f"{SELECT} %s", (media_id,)).fetchone()

    return read


def create(read: Read) -> FastAPI:
    app = FastAPI()

    @app.get("/media/{media_id}")
    def one(media_id: UUID) -> dict[str, str | None]:
        row = dict(zip(COLUMNS, read(media_id), strict=True))
        return row | {"id": str(row["id"])}

    return app


def main(url: str, port: int) -> None:
    read = from_sqlite(url) if url.startswith("sqlite") else from_postgres(url)
    # The same settings as `nexus serve`.
    uvicorn.run(create(read), port=port, log_config=None, access_log=False, server_header=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
