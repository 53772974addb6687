"""One frozen object with everything a door needs; the only place that picks a backend."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType

from nexus.db.session import Clock, Sessions, connect, wall_clock
from nexus.extract import AVAILABLE_EXTRACTORS, Extractor
from nexus.ingest import pipeline
from nexus.ingest.leases import Leases
from nexus.ingest.pipeline import Tools
from nexus.ingest.quota import Limits, Operation
from nexus.queue import Queue
from nexus.queue.celery import CeleryQueue, create
from nexus.queue.inline import Inline
from nexus.queue.local import Local
from nexus.queue.off import Off
from nexus.settings import Settings
from nexus.states.media import Kind


@dataclass(frozen=True)
class App:
    settings: Settings
    sessions: Sessions
    queue: Queue
    tools: Tools
    limits: Limits

    def close(self) -> None:
        self.tools.leases.close()
        self.sessions.dispose()


def build(settings: Settings, clock: Clock = wall_clock) -> App:
    """Nothing is opened yet but the pool; call `close` at the end."""
    for plugin in settings.plugins:
        importlib.import_module(plugin)
    sessions = connect(settings.database, settings.database_pool, clock)
    leases = Leases(
        sessions, timedelta(seconds=settings.lease_seconds), timedelta(seconds=settings.work_seconds)
    )
    tools = Tools(sessions, _extractors(settings), leases, settings.backoff_seconds)
    app = App(settings, sessions, _queue(settings, tools), tools, _limits(settings))
    if isinstance(app.queue, CeleryQueue):
        app.queue.app.nexus = app
    return app


def _extractors(settings: Settings) -> Mapping[Kind, Extractor]:
    """A live view of the registry, or nothing at all."""
    return MappingProxyType(AVAILABLE_EXTRACTORS if settings.extraction == "on" else {})


def _queue(settings: Settings, tools: Tools) -> Queue:
    if settings.extraction == "off":
        return Off()
    if settings.queue == "celery":
        return CeleryQueue(create(settings))
    if settings.queue == "inline":
        return Inline(partial(pipeline.run, tools))
    return Local()


def _limits(settings: Settings) -> Limits:
    given = {
        Operation.INGEST_URLS: settings.quota_ingest_urls,
        Operation.TRANSCRIBE_SECONDS: settings.quota_transcribe_seconds,
        Operation.LLM_TOKENS: settings.quota_llm_tokens,
    }
    return {operation: limit for operation, limit in given.items() if limit is not None}
