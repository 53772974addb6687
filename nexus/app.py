# ruff: noqa: PLC0415
"""One frozen object with everything a door needs; the only place that picks a backend.

Parts are imported when they are built: they are slow to load, and some commands need only a few of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from nexus.db.session import Clock, Sessions, connect, wall_clock
from nexus.extract import AVAILABLE_EXTRACTORS, Extractor
from nexus.libraries.quota import Allowances, Operation
from nexus.queue import Queue
from nexus.settings import Settings
from nexus.states.media import Kind

if TYPE_CHECKING:
    from nexus.extract.sandbox import Sandbox
    from nexus.fetch import Fetcher
    from nexus.fetch.pace import SiteBook
    from nexus.imports.service import Imports
    from nexus.media.files import Files
    from nexus.media.recordings.transcribing import Ears
    from nexus.media.workbench import PictureLimits, Tools
    from nexus.storage import Storage
    from nexus.work.kernel import Kernel

MIB = 1024 * 1024
GIB = 1024 * MIB
#: How long fetching the sound of a recording may take, and for how long it is heard before others have their turn.
LONGEST_FETCH, LONGEST_TURN = 600.0, 240.0


@dataclass(frozen=True)
class Front:
    """Everything that a door needs if it leaves the work to others."""

    settings: Settings
    sessions: Sessions
    queue: Queue
    extractors: Mapping[Kind, Extractor]

    def close(self) -> None:
        self.sessions.dispose()


@dataclass(frozen=True)
class App(Front):
    kernel: Kernel
    tools: Tools
    files: Files
    imports: Imports

    @property
    def limits(self) -> Allowances:
        """How much a user may use per day."""
        return self.tools.limits

    def close(self) -> None:
        self.imports.close()
        self.tools.leases.close()
        self.tools.sandbox.close()
        self.tools.ears.close()
        if self.tools.embedder is not None:
            self.tools.embedder.close()
        if self.tools.earlier is not None:
            self.tools.earlier.close()
        self.tools.fetcher.close()
        super().close()


def load_extractors(settings: Settings) -> None:
    """Register what is installed, then what the settings name: for processes that do the work."""
    from nexus.extract.registry import load_installed

    load_installed()
    for plugin in settings.plugins:
        importlib.import_module(plugin)


def build_front(settings: Settings) -> Front:
    """Nothing is opened yet but the pool; call `close` at the end."""
    if _works_inline(settings):
        return build(settings)  # this queue does the work in the process that announces it
    sessions = connect(settings.database, settings.database_pool)
    return Front(settings, sessions, _queue(settings), _extractors(settings))


def build(settings: Settings, clock: Clock = wall_clock) -> App:
    """Nothing is opened yet but the pool; call `close` at the end."""
    from nexus.draft import make_drafter
    from nexus.embed import make_embedder
    from nexus.embed.earlier import EarlierModels
    from nexus.imports.service import Imports
    from nexus.imports.staging import StagedShares
    from nexus.media.feeds.share import SubscriptionShare
    from nexus.media.workbench import Tools
    from nexus.queue.inline import InlineQueue
    from nexus.search.codes import SignCodes
    from nexus.work.leases import Leases

    sessions = connect(settings.database, settings.database_pool, clock)
    leases = Leases(
        sessions, timedelta(seconds=settings.lease_seconds), timedelta(seconds=settings.work_seconds)
    )
    files = build_files(settings, clock)
    tools = Tools(
        sessions,
        _extractors(settings),
        leases,
        settings.backoff_seconds,
        files,
        fetcher(settings, book=site_book(settings, sessions)),
        sandbox(settings),
        make_drafter(settings.llm_base_url, settings.llm_api_key, settings.llm_model),
        settings.llm_seconds,
        _limits(settings),
        _picture_limits(settings),
        make_embedder(settings),
        SignCodes(settings.search_mib * MIB),
        build_ears(settings),
        SubscriptionShare(settings.subscriptions_per_user, settings.local_owner),
        settings.languages,
        EarlierModels(settings),
    )
    imports = Imports(
        tools,
        settings.data_dir / "imports",
        StagedShares(int(settings.staged_gib_per_user * GIB), settings.local_owner),
    )
    kernel = kernel_for(tools)
    queue = InlineQueue(kernel.run) if _works_inline(settings) else _queue(settings)
    app = App(settings, sessions, queue, tools.extractors, kernel, tools, files, imports)
    app.queue.attach(app)
    return app


def kernel_for(tools: Tools) -> Kernel:
    """Register every kind of work, in the order in which workers look for it: editors wait for the steps of jobs."""
    from nexus.editorial.steps import Stepping
    from nexus.media.feeds.polling import PollingFeeds
    from nexus.media.pictures import FetchingPictures
    from nexus.media.refresh import Refreshing
    from nexus.media.runner import Extracting
    from nexus.media.searching.embedding import Embedding, Indexing
    from nexus.work.kernel import Kernel

    kernel = Kernel(tools.sessions, tools.leases, tools.backoff_seconds)
    for handler in (Stepping, Extracting, Refreshing, PollingFeeds, FetchingPictures, Embedding, Indexing):
        kernel.register(handler(tools))
    return kernel


def site_book(settings: Settings, sessions: Sessions) -> SiteBook:
    """Where all processes of this Nexus see which sites are being fetched. With SQLite they are on one machine, where
    files are cheaper: SQLite waits for the disk at each change."""
    if sessions.engine.dialect.name == "sqlite":
        from nexus.fetch.shared import FileBook

        return FileBook(settings.data_dir / "sites")
    from nexus.work.sites import DatabaseBook

    return DatabaseBook(sessions)


def fetcher(settings: Settings, wait_seconds: float | None = None, book: SiteBook | None = None) -> Fetcher:
    """Build the fetcher for all threads of a process. Callers with nothing else to do wait longer for a busy site.

    Without a book the process keeps a pace of its own.
    """
    from nexus.fetch import Fetcher, FetchLimits, parse_host_ports

    return Fetcher(
        FetchLimits(
            seconds=settings.fetch_seconds,
            wait_seconds=FetchLimits.wait_seconds if wait_seconds is None else wait_seconds,
            most_bytes=settings.fetch_mib * MIB,
            ports=frozenset(settings.fetch_ports),
            allow=parse_host_ports(settings.fetch_allow),
            at_once=settings.fetch_per_host,
            delay=settings.fetch_delay_seconds,
        ),
        book=book,
    )


def sandbox(settings: Settings) -> Sandbox:
    """Build the pool of parser processes, which start with the first document."""
    from nexus.extract.sandbox import ParserLimits, Sandbox

    limits = ParserLimits(seconds=settings.parser_seconds, memory_bytes=settings.parser_memory_mib * MIB)
    return Sandbox(limits, processes=settings.parser_processes)


def _extractors(settings: Settings) -> Mapping[Kind, Extractor]:
    """Return a live view of the registry, or nothing if extraction is off."""
    return MappingProxyType(AVAILABLE_EXTRACTORS if settings.extraction == "on" else {})


def _works_inline(settings: Settings) -> bool:
    return settings.extraction == "on" and settings.queue == "inline"


def _queue(settings: Settings) -> Queue:
    """Build a queue that leaves the work to others."""
    if settings.extraction == "off":
        from nexus.queue.off import OffQueue

        return OffQueue()
    if settings.queue == "celery":
        from nexus.queue.celery import CeleryQueue, make_celery

        return CeleryQueue(make_celery(settings), settings.log_level)
    from nexus.queue.local import LocalQueue

    return LocalQueue()


def _limits(settings: Settings) -> Allowances:
    given = {
        Operation.INGEST_URLS: settings.quota_ingest_urls,
        Operation.TRANSCRIBE_SECONDS: settings.quota_transcribe_seconds,
        Operation.LLM_TOKENS: settings.quota_llm_tokens,
        Operation.EMBED_TOKENS: settings.quota_embed_tokens,
    }
    return {operation: limit for operation, limit in given.items() if limit is not None}


def _picture_limits(settings: Settings) -> PictureLimits:
    from nexus.media.workbench import PictureLimits

    return PictureLimits(
        per_text=settings.pictures_per_text,
        most_bytes=settings.picture_mib * MIB,
        bytes_per_text=settings.pictures_mib * MIB,
        pixels=settings.picture_megapixels * 1_000_000,
        seconds=settings.picture_seconds,
        patience=timedelta(hours=settings.picture_hours),
    )


def build_ears(settings: Settings) -> Ears:
    """Build what transcribes recordings.

    An attempt ends long before its lease does: fetching the sound may take a third of that time, and hearing it
    another third, while one before it may take as long.
    """
    from nexus.media.recordings.transcribing import Ears, SpeechLimits
    from nexus.transcribe.speech import make_speech_model

    third = settings.work_seconds / 3
    limits = SpeechLimits(settings.audio_mib * MIB, min(LONGEST_FETCH, third), min(LONGEST_TURN, third))
    return Ears(make_speech_model(settings), limits)


def build_files(settings: Settings, clock: Clock = wall_clock) -> Files:
    """Build the store that the settings choose, with its limits."""
    from nexus.media.files import Files
    from nexus.media.storage_shares import FileShares
    from nexus.scan import Scanner

    return Files(
        storage=_storage(settings, clock),
        prefix=settings.storage_prefix,
        most_bytes={
            Kind.PDF: settings.max_pdf_mib * MIB,
            Kind.EPUB: settings.max_epub_mib * MIB,
            Kind.TEXT: settings.max_epub_mib * MIB,
        },
        link_life=timedelta(seconds=settings.link_seconds),
        upload_life=timedelta(hours=settings.upload_hours),
        check_seconds=settings.check_seconds,
        revision_life=timedelta(days=settings.revision_days),
        shares=FileShares(
            stored_bytes=int(settings.stored_gib_per_user * GIB),
            open_uploads=settings.uploads_per_user,
            owner=settings.local_owner,
        ),
        scanner=Scanner(settings.scanner, settings.check_seconds) if settings.scanner else None,
    )


def _storage(settings: Settings, clock: Clock) -> Storage:
    if settings.storage == "s3":
        from nexus.storage.s3 import S3

        return S3(
            settings.s3_bucket,
            settings.s3_endpoint_url or None,
            settings.s3_region,
            settings.s3_access_key or None,
            settings.s3_secret_key or None,
            clock,
        )
    if settings.storage == "supabase":
        from nexus.storage.supabase import Supabase

        return Supabase(settings.supabase_url, settings.supabase_service_key, settings.supabase_bucket, clock)
    from nexus.storage.local import LocalStorage

    return LocalStorage(settings.data_dir / "storage", settings.session_secret, clock)
