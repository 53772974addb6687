"""Nexus with the local queue: worker threads that claim from the database."""

from __future__ import annotations

import threading

from bench.contenders import Ground, nexus_media
from nexus.worker.threads import Workers

progress = nexus_media.progress


def fill(ground: Ground, count: int) -> None:
    nexus_media.fill(ground, count)


def work(ground: Ground) -> None:
    # SQLite has one writer at a time: more threads would only wait for each other.
    threads = 1 if ground.database.startswith("sqlite") else 8
    Workers(nexus_media.app(ground, worker_threads=threads)).start()
    threading.Event().wait()
