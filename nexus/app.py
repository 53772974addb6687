"""One frozen object with everything a door needs; the only place that picks a backend."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType

from nexus.db.session import Clock, Sessions, connect, wall_clock
from nexus.draft import drafter
from nexus.editorial import steps
from nexus.extract import AVAILABLE_EXTRACTORS, Extractor
from nexus.extract.builtin import READERS
from nexus.extract.registry import load_installed
from nexus.extract.sandbox import Limits as ParserLimits
from nexus.extract.sandbox import Sandbox
from nexus.fetch import Fetcher, pairs
from nexus.fetch import Limits as FetchLimits
from nexus.imports.service import Imports
from nexus.libraries.quota import Limits, Operation
from nexus.media import lifecycle, refresh
from nexus.media.files import Files
from nexus.media.workbench import Tools
from nexus.queue import Queue
from nexus.queue.inline import Inline
from nexus.queue.local import Local
from nexus.queue.off import Off
from nexus.settings import Settings
from nexus.states.media import Kind
from nexus.storage import Storage
from nexus.storage.local import Local as LocalStorage
from nexus.upkeep import dispatch
from nexus.work.leases import Leases

MIB = 1024 * 1024


@dataclass(frozen=True)
class App:
    settings: Settings
    sessions: Sessions
    queue: Queue
    tools: Tools
    limits: Limits
    files: Files
    imports: Imports

    def close(self) -> None:
        self.imports.close()
        self.tools.leases.close()
        self.tools.step_leases.close()
        self.tools.refresh_leases.close()
        self.tools.sandbox.close()
        self.tools.fetcher.close()
        self.sessions.dispose()


def load_extractors(settings: Settings) -> None:
    """Register what is installed, then what the settings name: for processes that do the work."""
    load_installed()
    for plugin in settings.plugins:
        importlib.import_module(plugin)


def build(settings: Settings, clock: Clock = wall_clock) -> App:
    """Nothing is opened yet but the pool; call `close` at the end."""
    sessions = connect(settings.database, settings.database_pool, clock)
    lease, longest = timedelta(seconds=settings.lease_seconds), timedelta(seconds=settings.work_seconds)
    files = _files(settings, clock)
    tools = Tools(
        sessions,
        _extractors(settings),
        Leases(sessions, lease, longest, lifecycle.renew_leases),
        Leases(sessions, lease, longest, steps.renew_leases),
        Leases(sessions, lease, longest, refresh.renew_leases),
        settings.backoff_seconds,
        files,
        fetcher(settings),
        sandbox(settings),
        drafter(settings.llm_base_url, settings.llm_api_key, settings.llm_model),
        settings.llm_seconds,
        _limits(settings),
    )
    imports = Imports(tools, settings.data_dir / "imports")
    app = App(settings, sessions, _queue(settings, tools), tools, tools.limits, files, imports)
    app.queue.attach(app)
    return app


def fetcher(settings: Settings, wait_seconds: float = FetchLimits.wait_seconds) -> Fetcher:
    """One for all threads of a process; who has nothing else to do waits longer for a busy site."""
    return Fetcher(
        FetchLimits(
            seconds=settings.fetch_seconds,
            wait_seconds=wait_seconds,
            most_bytes=settings.fetch_mib * MIB,
            ports=frozenset(settings.fetch_ports),
            allow=pairs(settings.fetch_allow),
            at_once=settings.fetch_per_host,
            delay=settings.fetch_delay_seconds,
        )
    )


def sandbox(settings: Settings) -> Sandbox:
    """Parser processes start with the first document."""
    limits = ParserLimits(seconds=settings.parser_seconds, memory_bytes=settings.parser_memory_mib * MIB)
    return Sandbox(limits, processes=settings.parser_processes, preload=READERS)


def _extractors(settings: Settings) -> Mapping[Kind, Extractor]:
    """A live view of the registry, or nothing at all."""
    return MappingProxyType(AVAILABLE_EXTRACTORS if settings.extraction == "on" else {})


def _queue(settings: Settings, tools: Tools) -> Queue:
    if settings.extraction == "off":
        return Off()
    if settings.queue == "celery":
        celery = importlib.import_module("nexus.queue.celery")  # slow to load, as the stores below are
        made: Queue = celery.CeleryQueue(celery.create(settings))
        return made
    if settings.queue == "inline":
        return Inline(partial(dispatch.run, tools))
    return Local()


def _limits(settings: Settings) -> Limits:
    given = {
        Operation.INGEST_URLS: settings.quota_ingest_urls,
        Operation.TRANSCRIBE_SECONDS: settings.quota_transcribe_seconds,
        Operation.LLM_TOKENS: settings.quota_llm_tokens,
    }
    return {operation: limit for operation, limit in given.items() if limit is not None}


def _files(settings: Settings, clock: Clock) -> Files:
    return Files(
        storage=_storage(settings, clock),
        prefix=settings.storage_prefix,
        most_bytes={Kind.PDF: settings.max_pdf_mib * MIB, Kind.EPUB: settings.max_epub_mib * MIB},
        link_life=timedelta(seconds=settings.link_seconds),
        upload_life=timedelta(hours=settings.upload_hours),
        check_seconds=settings.check_seconds,
    )


def _storage(settings: Settings, clock: Clock) -> Storage:
    """The clients of other stores are imported where they are used: they are slow to load."""
    if settings.storage == "s3":
        s3 = importlib.import_module("nexus.storage.s3")
        store: Storage = s3.S3(
            settings.s3_bucket,
            settings.s3_endpoint_url or None,
            settings.s3_region,
            settings.s3_access_key or None,
            settings.s3_secret_key or None,
            clock,
        )
        return store
    if settings.storage == "supabase":
        supabase = importlib.import_module("nexus.storage.supabase")
        other: Storage = supabase.Supabase(
            settings.supabase_url, settings.supabase_service_key, settings.supabase_bucket, clock
        )
        return other
    return LocalStorage(settings.data_dir / "storage", settings.session_secret, clock)
