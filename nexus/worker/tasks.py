"""Celery tasks: wake-ups from other processes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from celery import Celery, shared_task

from nexus import app as nexus_app
from nexus import logging, settings
from nexus.app import App
from nexus.media import runner, submit
from nexus.media.lifecycle import EXTRACTION
from nexus.queue import Work

log = logging.get_logger(__name__)


@shared_task(bind=True, name="ingest_media", max_retries=3)
def ingest_media(
    self: Any, media_id: UUID | str, request_id: str | None = None, *, _test_force_run: bool = False
) -> None:
    """Work on one item. Without an extractor for its kind nothing happens and nothing changes."""
    app = app_behind(self.app)
    if _test_force_run and app.settings.env not in {"test", "local"}:
        raise RuntimeError("_test_force_run forbidden in production")
    with logging.task_log_context(request_id=request_id, media_id=media_id):
        if _test_force_run:
            runner.fail_unimplemented(app.tools, UUID(str(media_id)))
        else:
            _wake(self, Work(EXTRACTION, UUID(str(media_id))))


@shared_task(bind=True, name="do_work")
def do_work(self: Any, kind: str, row_id: UUID | str) -> None:
    """Work of any other kind."""
    _wake(self, Work(kind, UUID(str(row_id))))


@shared_task(bind=True, name="retry_media", max_retries=3)
def retry_media(
    self: Any, media_id: UUID | str, actor_user_id: UUID | str, request_id: str | None = None
) -> None:
    """Reset a failed media and announce it, as POST /media/{id}/retry does."""
    app = app_behind(self.app)
    with logging.task_log_context(request_id=request_id, media_id=media_id):
        submit.retry_failed_item(
            app.sessions, app.queue, UUID(str(media_id)), UUID(str(actor_user_id)), request_id
        )


def _wake(task: Any, work: Work) -> None:
    """In a worker, wake a thread, which takes everything that is due. Without workers, do the work here."""
    app = app_behind(task.app)
    if task.request.is_eager or task.request.called_directly:
        app.kernel.run(work)
    else:
        app.queue.bell.ring()


def app_behind(celery: Celery) -> App:
    """Return the app that this Celery was made for, or build one from the environment."""
    known: App | None = getattr(celery, "nexus", None)
    if known is None:
        chosen = settings.load()
        nexus_app.load_extractors(chosen)
        known = celery.nexus = nexus_app.build(chosen)
    return known
