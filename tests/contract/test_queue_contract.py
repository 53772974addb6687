"""One scenario on every queue and both databases: the outcome is the same everywhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import structlog
from structlog.contextvars import merge_contextvars

from nexus.extract import AVAILABLE_EXTRACTORS
from nexus.media import submit
from nexus.media.submit import Submitted
from nexus.worker.threads import Sweeper, Workers
from tests.kit import servers
from tests.kit.databases import copied_postgres
from tests.kit.installation import Nexus, installed
from tests.kit.media import MediaRecord, everything_of, row_of, status_of
from tests.kit.plugins import extract_by_url
from tests.kit.waiting import eventually

BACKOFF = 0.2
SETTLED = {"ready_for_reading", "failed"}
TALES = ("ok", "fail", "crash", "transient", "second")
#: event, attempt, error code; the same on every queue.
READ = [("create", 0, None), ("start", 1, None), ("readable", 1, None)]
FAILED = [("create", 0, None), ("start", 1, None), ("fail", 1, "E_EXTRACTION_FAILED")]
AWAY = "E_FETCH_FAILED"
HISTORIES = {
    "ok": READ,
    "fail": FAILED,
    "crash": FAILED,
    "transient": [
        ("create", 0, None),
        *[("start", 1, None), ("release", 1, AWAY)],
        *[("start", 2, None), ("release", 2, AWAY)],
        *[("start", 3, None), ("fail", 3, AWAY)],
    ],
    "second": [
        ("create", 0, None),
        *[("start", 1, None), ("release", 1, AWAY)],
        *[("start", 2, None), ("readable", 2, None)],
    ],
}

Logs = Callable[[], list[dict[str, Any]]]


@dataclass(frozen=True)
class Told:
    """The requests, their answers, and the final state of each media."""

    answers: dict[str, Submitted]
    found: dict[str, MediaRecord]
    video: Submitted
    video_found: MediaRecord
    logs: list[dict[str, Any]]

    def row(self, tale: str) -> Any:
        return self.found[tale].row


@contextmanager
def collected_logs() -> Iterator[Logs]:
    """The log lines of this process and all its threads."""
    seen: list[dict[str, Any]] = []

    def collect(_logger: object, _method: str, event: dict[str, Any]) -> dict[str, Any]:
        seen.append(dict(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[merge_contextvars, collect])
    try:
        yield lambda: seen
    finally:
        structlog.configure(**before)


@contextmanager
def threads(nexus: Nexus, *kinds: type[Workers | Sweeper]) -> Iterator[Logs]:
    with ExitStack() as stack:
        for kind in kinds:
            part = kind(nexus.app)
            part.start()
            stack.callback(part.stop)
        yield list


def sweep(nexus: Nexus) -> AbstractContextManager[Logs]:
    """The caller does the work; the sweep brings back what has to be tried again."""
    return threads(nexus, Sweeper)


def workers(nexus: Nexus) -> AbstractContextManager[Logs]:
    return threads(nexus, Workers, Sweeper)


@contextmanager
def celery(nexus: Nexus) -> Iterator[Logs]:
    worker = nexus.worker()
    yield worker.events


@dataclass(frozen=True)
class Kind:
    settings: dict[str, Any]
    working: Callable[[Nexus], AbstractContextManager[Logs]]


QUEUES = {
    "inline": Kind({"queue": "inline"}, sweep),
    "local": Kind({"queue": "local"}, workers),
    "eager": Kind({"queue": "celery", "celery_always_eager": True}, sweep),
    "celery": Kind({"queue": "celery"}, celery),
}


def tell(nexus: Nexus, tale: str, kind: str = "web_article") -> Submitted:
    app = nexus.app
    url = f"https://example.com/{tale}/{uuid4().hex}"
    return submit.url(app.sessions, app.queue, app.limits, uuid4(), kind, url, f"request-{tale}")


def listen(nexus: Nexus, queue: Kind) -> Told:
    """Announce everything, then start the workers and wait for the end.

    In this order, because a sweep between a commit and its announcement does the work without a request id.
    """
    with collected_logs() as own:
        answers = {tale: tell(nexus, tale) for tale in TALES}
        video = tell(nexus, "video", "video")
        with queue.working(nexus) as others:
            wait_for_the_end(
                nexus, {answer.media_id for answer in answers.values()}, lambda: own() + others()
            )
            logs = own() + others()
    sessions = nexus.app.sessions
    found = {tale: everything_of(sessions, answer.media_id) for tale, answer in answers.items()}
    return Told(answers, found, video, everything_of(sessions, video.media_id), logs)


def wait_for_the_end(nexus: Nexus, ids: set[UUID], logs: Logs) -> None:
    sessions = nexus.app.sessions
    eventually(lambda: {status_of(sessions, media_id) for media_id in ids} <= SETTLED, "all is settled")
    for media_id in ids:
        last = (str(media_id), row_of(sessions, media_id).processing_attempts)
        eventually(lambda last=last: last in ended(logs()), f"the end of {last} is logged")


def ended(logs: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(line["media_id"], line["attempt"]) for line in logs if line["event"] == "ingest_ended"}


@pytest.fixture(
    scope="module",
    params=[f"{queue}-{database}" for queue in QUEUES for database in ("sqlite", "postgres")],
)
def told(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    migrated_sqlite: Path,
    postgres_template: str,
) -> Told:
    queue, database = request.param.split("-")
    folder = tmp_path_factory.mktemp("nexus")
    before = dict(AVAILABLE_EXTRACTORS)
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(extract_by_url.FOLDER, str(folder))
        stack.callback(AVAILABLE_EXTRACTORS.update, before)
        stack.callback(AVAILABLE_EXTRACTORS.clear)
        extract_by_url.register()
        if database == "sqlite":
            url = f"sqlite:///{shutil.copy(migrated_sqlite, folder / 'nexus.sqlite3')}"
        else:
            url = stack.enter_context(copied_postgres(postgres_template))
        more = {**QUEUES[queue].settings, "backoff_seconds": BACKOFF, "lease_seconds": 30.0}
        if queue == "celery":
            more["redis_url"] = stack.enter_context(servers.redis())
        nexus = stack.enter_context(installed(url, folder, **more))
        return listen(nexus, QUEUES[queue])


def test_an_announced_item_becomes_readable_with_its_text(told: Told) -> None:
    assert told.answers["ok"].enqueued
    assert told.row("ok").processing_status == "ready_for_reading"
    assert told.row("ok").title == "Attempt 1"
    assert told.found["ok"].texts == extract_by_url.texts(1)


@pytest.mark.parametrize("tale", ["fail", "crash"])
def test_an_item_without_text_fails_with_its_stage_and_code(told: Told, tale: str) -> None:
    row = told.row(tale)
    assert (row.processing_status, row.failure_stage) == ("failed", "extract")
    assert (row.last_error_code, row.processing_attempts) == ("E_EXTRACTION_FAILED", 1)
    assert "a message that may hold" not in row.last_error_message
    assert told.found[tale].texts == []


def test_an_unreachable_item_is_tried_three_times(told: Told) -> None:
    row = told.row("transient")
    assert (row.processing_status, row.last_error_code) == ("failed", "E_FETCH_FAILED")
    assert (row.processing_attempts, row.tries) == (3, 3)


def test_an_item_that_can_be_reached_later_becomes_readable(told: Told) -> None:
    row = told.row("second")
    assert (row.processing_status, row.processing_attempts, row.tries) == ("ready_for_reading", 2, 0)
    assert told.found["second"].texts == extract_by_url.texts(2)


def test_the_waits_between_tries_grow(told: Told) -> None:
    """Each is at least half of the backoff, which doubles."""
    steps = pairwise(told.found["transient"].history)
    waits = [(then.at - first.at).total_seconds() for first, then in steps if first.event == "release"]
    assert len(waits) == 2
    assert waits[0] >= BACKOFF / 2
    assert waits[1] >= BACKOFF


def test_a_kind_without_an_extractor_is_not_announced_and_nothing_changes(told: Told) -> None:
    assert told.video.created
    assert not told.video.enqueued
    row = told.video_found.row
    assert (row.processing_status, row.processing_attempts) == ("pending", 0)
    assert row.updated_at == row.created_at
    assert [entry.event for entry in told.video_found.history] == ["create"]


@pytest.mark.parametrize("tale", TALES)
def test_the_request_id_is_in_the_log_lines_of_the_work(told: Told, tale: str) -> None:
    media_id = str(told.answers[tale].media_id)
    mine = [line for line in told.logs if line.get("media_id") == media_id and line.get("attempt") == 1]
    assert [line["event"] for line in mine] == ["ingest_started", "ingest_ended"]
    assert {line.get("request_id") for line in mine} == {f"request-{tale}"}


@pytest.mark.parametrize("tale", TALES)
def test_the_history_is_the_same_on_every_queue(told: Told, tale: str) -> None:
    entries = told.found[tale].history
    assert [(e.event, e.attempt, e.error_code) for e in entries] == HISTORIES[tale]
    assert {e.actor for e in entries[1:]} == {"worker"}
    assert told.row(tale).processing_attempts == entries[-1].attempt
    assert told.row(tale).lease_expires_at is None
