"""The Celery tasks in eager mode: safe even when they are called by accident."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import structlog
from sqlalchemy import event
from structlog.testing import capture_logs

from nexus import logging
from nexus.app import App, build
from nexus.errors import FetchFailed, InvalidState
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media import submit
from nexus.states.media import Kind, MediaStatus
from nexus.worker import tasks  # noqa: F401 registers the tasks
from tests.kit.clock import SetClock
from tests.kit.media import (
    events_of,
    everything_of,
    good_extractor,
    new_media,
    row_of,
    status_of,
    walk_media_to,
)
from tests.kit.settings import make_settings


@pytest.fixture
def eager(database_url: str, redis_url: str, tmp_path: Path, clock: SetClock) -> Iterator[App]:
    """Nexus on Celery, whose tasks run in the caller."""
    settings = make_settings(
        database_url, tmp_path, redis_url=redis_url, queue="celery", celery_always_eager=True
    )
    built = build(settings, clock)
    yield built
    built.close()


def apply(app: App, name: str, *arguments: object, **options: object) -> None:
    app.queue.app.tasks[name].apply(args=arguments, kwargs=options, throw=True).get()


def test_a_task_without_an_extractor_changes_nothing(eager: App) -> None:
    media_id = new_media(eager)
    before = everything_of(eager.sessions, media_id)
    apply(eager, "ingest_media", str(media_id), "request-1")
    assert everything_of(eager.sessions, media_id) == before


def test_a_forced_run_walks_the_failure_path(eager: App) -> None:
    media_id = new_media(eager)
    apply(eager, "ingest_media", str(media_id), _test_force_run=True)
    row = row_of(eager.sessions, media_id)
    assert row.processing_status == "failed"
    assert (row.failure_stage, row.last_error_code) == ("extract", "E_EXTRACTOR_NOT_IMPLEMENTED")
    assert row.processing_attempts == 1
    assert events_of(eager.sessions, media_id) == ["create", "start", "fail"]


def test_a_forced_run_of_a_media_that_is_not_pending_changes_nothing(eager: App) -> None:
    media_id = new_media(eager)
    walk_media_to(eager, media_id, MediaStatus.READY_FOR_READING)
    before = everything_of(eager.sessions, media_id)
    apply(eager, "ingest_media", media_id, _test_force_run=True)
    assert everything_of(eager.sessions, media_id) == before


def test_a_forced_run_is_forbidden_in_prod(sqlite_url: str, tmp_path: Path) -> None:
    """Refused before any database session is opened."""
    settings = make_settings(sqlite_url, tmp_path, env="prod", queue="celery", celery_always_eager=True)
    app = build(settings)
    opened: list[object] = []
    event.listen(app.sessions.engine, "do_connect", lambda *given: opened.append(given))
    with pytest.raises(RuntimeError, match="_test_force_run forbidden in production"):
        apply(app, "ingest_media", str(uuid4()), _test_force_run=True)
    assert opened == []
    apply(app, "ingest_media", str(uuid4()))
    assert opened
    app.close()


def test_a_duplicate_delivery_does_the_work_once(eager: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    media_id = new_media(eager)
    apply(eager, "ingest_media", str(media_id))
    before = everything_of(eager.sessions, media_id)
    assert before.row.processing_status == "ready_for_reading"
    apply(eager, "ingest_media", str(media_id))
    assert everything_of(eager.sessions, media_id) == before


def test_an_announcement_runs_the_task(eager: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    added = submit.url(
        eager.sessions, eager.queue, eager.limits, uuid4(), "web_article", "https://example.com/"
    )
    assert added.enqueued
    assert status_of(eager.sessions, added.media_id) is MediaStatus.READY_FOR_READING


def test_a_task_that_fails_transiently_runs_again_when_the_database_says(eager: App) -> None:
    calls = []

    def extract(source: Source) -> Extraction:
        calls.append(source.attempt)
        raise FetchFailed

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    media_id = new_media(eager)
    eager.queue.app.tasks["ingest_media"].apply(args=[str(media_id)])
    assert calls == [1]
    assert status_of(eager.sessions, media_id) is MediaStatus.PENDING


def test_the_retry_task_resets_and_announces(eager: App) -> None:
    user = uuid4()
    media_id = new_media(eager, user)
    apply(eager, "ingest_media", str(media_id), _test_force_run=True)
    apply(eager, "retry_media", str(media_id), str(user))
    assert status_of(eager.sessions, media_id) is MediaStatus.PENDING
    apply(eager, "ingest_media", str(media_id), _test_force_run=True)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    apply(eager, "retry_media", str(media_id), str(user), "request-2")
    assert status_of(eager.sessions, media_id) is MediaStatus.READY_FOR_READING


def test_the_retry_task_refuses_a_media_that_has_not_failed(eager: App) -> None:
    user = uuid4()
    media_id = new_media(eager, user)
    before = everything_of(eager.sessions, media_id)
    with pytest.raises(InvalidState):
        apply(eager, "retry_media", str(media_id), str(user))
    assert everything_of(eager.sessions, media_id) == before


def test_log_lines_of_a_task_carry_its_request_and_media(eager: App) -> None:
    seen: list[dict[str, object]] = []

    def extract(source: Source) -> Extraction:
        seen.append(structlog.contextvars.get_contextvars())
        return good_extractor(source)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    media_id = new_media(eager)
    with capture_logs():
        apply(eager, "ingest_media", str(media_id), "request-3")
    assert seen == [{"request_id": "request-3", "media_id": str(media_id)}]
    assert structlog.contextvars.get_contextvars() == {}
    with logging.task_log_context(None, media_id=media_id):
        assert structlog.contextvars.get_contextvars() == {"media_id": str(media_id)}
