"""huey: its queue and the state rows in SQLite, threads."""

from __future__ import annotations

import logging
import threading
from typing import Any

from huey import SqliteHuey

from bench.contenders import Ground, rows
from bench.places import path

progress = rows.progress_sqlite


def fill(ground: Ground, count: int) -> None:
    rows.fill_sqlite(ground, count)
    walk = _walk(ground)[1]
    for number in range(count):
        walk(number)


def work(ground: Ground) -> None:
    logging.getLogger("huey").setLevel(logging.WARNING)
    huey = _walk(ground)[0]
    # One worker: it is the fastest with one, SQLite has one writer at a time.
    huey.create_consumer(workers=1, periodic=False).run()


def _walk(ground: Ground) -> tuple[SqliteHuey, Any]:
    huey = SqliteHuey(filename=f"{path(ground.database)}-huey", results=False, fsync=True)
    own = threading.local()

    @huey.task()
    def walk(number: int) -> None:
        if not hasattr(own, "connection"):
            own.connection = rows.sqlite(ground)
        rows.walk_sqlite(own.connection, number)

    return huey, walk
