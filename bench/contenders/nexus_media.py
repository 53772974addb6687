"""Nexus's own rows: media of one kind, and an extractor that does nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import func, select

from bench.contenders import Ground
from bench.places import add_pending
from nexus import logging
from nexus.app import App, build
from nexus.db import migrate
from nexus.db.session import Statement, connect
from nexus.db.tables import media
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.settings import Settings
from nexus.states.media import Kind

_PROGRESS = Statement(
    select(
        func.count(media.c.processing_completed_at).label("done"),
        func.min(media.c.processing_started_at).label("began"),
        func.max(media.c.processing_completed_at).label("ended"),
    )
)


def no_op(_: Source) -> Extraction:
    return Extraction.plain("Title", "A fragment of text.")


def app(ground: Ground, **more: object) -> App:
    """As a worker process has it, with the no-op extractor."""
    logging.configure(json=True, level="warning")
    with logging.task_log_context(request_id=None):
        pass  # the first log line imports structlog, once per process: that is starting up, which is not counted
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = no_op
    given: dict[str, object] = {
        "env": "test",
        "database_url": ground.database,
        "redis_url": ground.redis,
        "data_dir": Path(tempfile.gettempdir()),
        "log_level": "warning",
        **more,
    }
    return build(Settings(_env_file=None, **given))  # type: ignore[arg-type]


def fill(ground: Ground, count: int) -> list[UUID]:
    migrate.upgrade_schema(ground.database)
    sessions = connect(ground.database)
    ids = add_pending(sessions, uuid4(), count)
    sessions.dispose()
    return ids


def progress(ground: Ground) -> tuple[int, float]:
    sessions = connect(ground.database, pool=1)
    with sessions.read() as session:
        found = session.first(_PROGRESS)
    sessions.dispose()
    return found.done, (found.ended - found.began).total_seconds() if found.done else 0.0
