"""Celery on Redis, state rows in PostgreSQL: late acks and eight threads, as Nexus has it."""

from __future__ import annotations

import threading
from typing import Any

from celery import Celery

from bench.contenders import Ground, rows

progress = rows.progress_postgres


def fill(ground: Ground, count: int) -> None:
    rows.fill_postgres(ground, count)
    app = _app(ground)
    for number in range(count):
        app.signature("walk", args=[number]).apply_async()


def work(ground: Ground) -> None:
    app, own = _app(ground), threading.local()

    @app.task(name="walk")
    def walk(number: int) -> None:
        if not hasattr(own, "connection"):
            own.connection = rows.postgres(ground)
        rows.walk_postgres(own.connection, number)

    quiet: dict[str, Any] = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
    app.Worker(pool="threads", concurrency=8, queues=["peer"], loglevel="WARNING", **quiet).start()


def _app(ground: Ground) -> Celery:
    app = Celery("peer", broker=ground.redis, set_as_current=False)
    app.conf.update(
        task_default_queue="peer",
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=4,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
    )
    return app
