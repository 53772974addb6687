"""A Celery worker process: the threads pool, and the sweep and the upkeep beside it.

Threads, because the work is done in parser processes of its own and prefork children may not have children.
"""

from __future__ import annotations

from typing import Any

from celery.signals import worker_ready

from nexus.app import App
from nexus.queue.celery import QUEUE, CeleryQueue
from nexus.worker.threads import rounds


def run(app: App) -> None:
    """Until SIGTERM or SIGINT; work under way ends first."""
    if not isinstance(app.queue, CeleryQueue):
        raise TypeError("a Celery worker needs the celery queue")
    beside = rounds(app)

    def start(**_: Any) -> None:
        for each in beside:
            each.start()

    worker_ready.connect(start, weak=False)
    worker = app.queue.app.Worker(
        pool="threads",
        concurrency=app.settings.worker_threads,
        queues=[QUEUE],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel=app.settings.log_level.upper(),
    )
    worker.start()
    for each in beside:
        each.stop()
    if worker.exitcode:
        raise SystemExit(worker.exitcode)
