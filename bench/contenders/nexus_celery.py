"""Nexus with Celery on Redis: one message per media, the claim in the database."""

from __future__ import annotations

from bench.contenders import Ground, nexus_media
from nexus.worker import celery

progress = nexus_media.progress


def fill(ground: Ground, count: int) -> None:
    ids = nexus_media.fill(ground, count)
    app = nexus_media.app(ground, queue="celery")
    for media_id in ids:
        app.queue.announce(media_id, None)
    app.close()


def work(ground: Ground) -> None:
    celery.run(nexus_media.app(ground, queue="celery", worker_threads=8))
