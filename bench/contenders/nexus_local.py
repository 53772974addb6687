"""Nexus with the local queue: worker threads that claim from the database."""

from __future__ import annotations

import threading

from bench.contenders import Ground, nexus_media
from nexus.worker.threads import Workers

progress = nexus_media.progress


def fill(ground: Ground, count: int) -> None:
    nexus_media.fill(ground, count)


def work(ground: Ground) -> None:
    Workers(nexus_media.app(ground)).start()
    threading.Event().wait()
