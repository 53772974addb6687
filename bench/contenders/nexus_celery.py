"""Nexus with Celery on Redis: one message per media, the claim in the database."""

from __future__ import annotations

from bench.contenders import Ground, nexus_media
from nexus.media.lifecycle import EXTRACTION
from nexus.queue import Work
from nexus.worker.threads import Workers

progress = nexus_media.progress


def fill(ground: Ground, count: int) -> None:
    ids = nexus_media.fill(ground, count)
    app = nexus_media.app(ground, queue="celery")
    for media_id in ids:
        app.queue.announce(Work(EXTRACTION, media_id))
    app.close()


def work(ground: Ground) -> None:
    app = nexus_media.app(ground, queue="celery", worker_threads=8)
    Workers(app).start()
    app.queue.listen(lambda: None)
