"""Starting things: the server with its workers, or a worker alone."""

from __future__ import annotations

import signal
import threading

import uvicorn

from nexus import logging
from nexus.app import App
from nexus.db import migrate
from nexus.queue.celery import CeleryQueue
from nexus.queue.local import Local
from nexus.web import api
from nexus.worker import celery
from nexus.worker.threads import Sweeper, Workers

#: Open event streams must not hold up a stop for longer than this.
GRACE_SECONDS = 3


def serve(app: App) -> None:
    """The web server, and, unless Celery does the work, the workers and the sweep in the same process."""
    migrate.upgrade(app.settings.database)
    parts: list[Workers | Sweeper] = []
    if isinstance(app.queue, Local):
        parts.append(Workers(app))
    if not isinstance(app.queue, CeleryQueue):
        parts.append(Sweeper(app))
    for part in parts:
        part.start()
    try:
        uvicorn.run(
            api.create(app),
            host=app.settings.host,
            port=app.settings.port,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    finally:
        for part in parts:
            part.stop()


def work(app: App) -> None:
    """Workers without a server, on the queue that is configured, until SIGTERM or SIGINT."""
    migrate.upgrade(app.settings.database)
    if isinstance(app.queue, CeleryQueue):
        celery.run(app)
        return
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    parts: list[Workers | Sweeper] = [Workers(app), Sweeper(app)]
    for part in parts:
        part.start()
    logging.get(__name__).info("worker_ready")
    stopping.wait()
    for part in parts:
        part.stop()
