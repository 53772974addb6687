"""Celery tasks: a wake-up comes in, the pipeline decides. They open their own sessions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from celery import Celery, shared_task

from nexus import app as nexus_app
from nexus import logging, settings
from nexus.app import App
from nexus.media import runner, submit
from nexus.media.runner import Outcome
from nexus.upkeep import dispatch

log = logging.get(__name__)


@shared_task(bind=True, name="ingest_media", max_retries=3)
def ingest_media(
    self: Any, media_id: UUID | str, request_id: str | None = None, *, _test_force_run: bool = False
) -> None:
    """Work on one media. Without an extractor for its kind nothing happens and nothing changes."""
    app = app_of(self.app)
    if _test_force_run and app.settings.env not in {"test", "local"}:
        raise RuntimeError("_test_force_run forbidden in production")
    with logging.task_log_context(request_id=request_id, media_id=media_id):
        if _test_force_run:
            runner.fail_unimplemented(app.tools, UUID(str(media_id)))
        elif dispatch.run(app.tools, UUID(str(media_id)), request_id) is Outcome.RELEASED:
            # The database decides when it is due; this only comes back around that time.
            raise self.retry(countdown=app.tools.backoff_seconds * 2**self.request.retries)


@shared_task(bind=True, name="retry_media", max_retries=3)
def retry_media(
    self: Any, media_id: UUID | str, actor_user_id: UUID | str, request_id: str | None = None
) -> None:
    """Reset a failed media and announce it, as POST /media/{id}/retry does."""
    app = app_of(self.app)
    with logging.task_log_context(request_id=request_id, media_id=media_id):
        submit.retry(app.sessions, app.queue, UUID(str(media_id)), UUID(str(actor_user_id)), request_id)


def app_of(celery: Celery) -> App:
    """The app that this Celery was made for; one from the environment where it was made for none."""
    known: App | None = getattr(celery, "nexus", None)
    if known is None:
        chosen = settings.load()
        nexus_app.load_extractors(chosen)
        known = celery.nexus = nexus_app.build(chosen)
    return known
