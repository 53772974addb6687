"""Leases and fences: a live worker keeps its lease, a frozen one loses it, and its late result is discarded."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url
from structlog.testing import capture_logs

from nexus.app import App
from nexus.db.rows import MediaRow
from nexus.errors import ExtractionFailed, FetchFailed, WorkError
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media.lifecycle import EXTRACTION
from nexus.media.runner import Extracting, Outcome
from nexus.queue import Work
from nexus.states.media import Kind, MediaStatus
from nexus.work.handler import Claim
from nexus.work.retry import backoff
from nexus.work.turns import Turns
from tests.kit.clock import SetClock
from tests.kit.faults.killed_workers import check_kept_promises
from tests.kit.installation import Nexus, installed, submit_media
from tests.kit.media import (
    MediaRecord,
    events_of,
    everything_of,
    good_extractor,
    new_media,
    row_of,
    status_of,
)
from tests.kit.plugins import extract_by_url
from tests.kit.processes import Process
from tests.kit.waiting import eventually
from tests.kit.work import extract_item, sweep


@pytest.fixture
def nexus(own_database_url: str, tmp_path: Path) -> Iterator[Nexus]:
    with installed(own_database_url, tmp_path) as made:
        yield made


def test_a_worker_that_froze_and_wakes_up_writes_nothing(nexus: Nexus) -> None:
    (media_id,) = submit_media(nexus, "freezing")
    frozen = nexus.worker()
    eventually(nexus.starts, "the first worker begins")
    freeze(nexus, frozen)
    nexus.worker()
    sessions = nexus.app.sessions
    eventually(lambda: status_of(sessions, media_id) is MediaStatus.READY_FOR_READING, "another finishes it")
    before = everything_of(sessions, media_id)

    nexus.open_gate()
    frozen.send(signal.SIGCONT)
    eventually(lambda: frozen.events("ingest_ended"), "the first one brings its result")
    (refused,) = frozen.events("unexpected_state")
    assert (refused["media_id"], refused["attempt"], refused["stale"]) == (str(media_id), 1, False)
    assert frozen.events("ingest_ended")[0]["outcome"] == "stale"
    assert everything_of(sessions, media_id) == before
    assert before.texts == extract_by_url.texts(2)
    assert [start.attempt for start in nexus.starts()] == [1, 2]
    check_kept_promises(nexus, [media_id])
    assert frozen.stop() == 0


def freeze(nexus: Nexus, process: Process) -> None:
    """Between two transactions. On SQLite one that is frozen inside is the only writer until it wakes up."""

    def outside() -> bool:
        process.send(signal.SIGSTOP)
        eventually(lambda: " (stopped)" in Path(f"/proc/{process.pid}/status").read_text(), "it stands still")
        if nobody_writes(nexus):
            return True
        process.send(signal.SIGCONT)
        return False

    eventually(outside, "it is frozen")


def nobody_writes(nexus: Nexus) -> bool:
    url = make_url(nexus.database)
    try:
        if url.get_backend_name() == "sqlite":
            with closing(sqlite3.connect(str(url.database), timeout=0.2, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
        else:
            address = url.set(drivername="postgresql").render_as_string(hide_password=False)
            with psycopg.connect(address) as connection:
                connection.execute("SELECT id FROM media FOR UPDATE NOWAIT")
    except (sqlite3.OperationalError, psycopg.errors.LockNotAvailable):
        return False
    return True


def test_work_that_outlasts_its_lease_keeps_it_while_its_worker_lives(nexus: Nexus) -> None:
    """A second worker sweeps all the time."""
    (media_id,) = submit_media(nexus, "gated")
    lease = timedelta(seconds=6)
    workers = [nexus.worker(lease_seconds=lease.total_seconds()) for _ in range(2)]
    eventually(nexus.starts, "one of them begins")
    for worker in workers:
        worker.wait_for("worker_ready")
    sessions = nexus.app.sessions
    first = row_of(sessions, media_id).lease_expires_at
    eventually(lambda: row_of(sessions, media_id).lease_expires_at > first + lease, "it is renewed")
    nexus.open_gate()
    eventually(lambda: status_of(sessions, media_id) is MediaStatus.READY_FOR_READING, "it ends")
    assert events_of(sessions, media_id) == ["create", "start", "readable"]
    assert len(nexus.starts()) == 1


class TakenOver:
    """An extractor that is still at work while its lease runs out and another worker does the whole job."""

    def __init__(self, app: App, clock: SetClock, ending: WorkError | None) -> None:
        self._app, self._clock, self._ending = app, clock, ending
        self.left: MediaRecord | None = None

    def __call__(self, source: Source) -> Extraction:
        self._clock.forward(seconds=61)
        assert sweep(self._app.tools, self._app.queue).released == 1
        self._clock.forward(seconds=61)
        AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
        assert extract_item(self._app.tools, source.media_id) is Outcome.READABLE
        self.left = everything_of(self._app.sessions, source.media_id)
        if self._ending:
            raise self._ending
        return Extraction.plain("Too late", "too late")


@pytest.mark.parametrize("ending", [None, ExtractionFailed(), FetchFailed()])
def test_a_result_of_an_older_attempt_changes_nothing(
    app: App, clock: SetClock, ending: WorkError | None
) -> None:
    extract = TakenOver(app, clock, ending)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    media_id = new_media(app)
    with capture_logs() as logs:
        assert extract_item(app.tools, media_id) is Outcome.STALE
    assert everything_of(app.sessions, media_id) == extract.left
    assert row_of(app.sessions, media_id).processing_attempts == 2
    events = {line["event"] for line in logs}
    assert events & {"unexpected_state", "late_failure_ignored"}


def test_a_result_of_an_older_attempt_does_not_end_the_present_one(app: App, clock: SetClock) -> None:
    """Both are extracting; only the fence tells them apart."""
    present: list[Claim[MediaRow]] = []

    def extract(source: Source) -> Extraction:
        clock.forward(seconds=61)
        sweep(app.tools, app.queue)
        clock.forward(seconds=61)
        present.extend(claim(app))
        return Extraction.plain("Too late", "too late")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    media_id = new_media(app)
    assert extract_item(app.tools, media_id) is Outcome.STALE
    assert status_of(app.sessions, media_id) is MediaStatus.EXTRACTING
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    assert app.kernel.finish(present[0]) is Outcome.READABLE
    assert events_of(app.sessions, media_id) == ["create", "start", "release", "start", "readable"]


def claim(app: App) -> list[Claim[MediaRow]]:
    return Turns(app.sessions, app.tools.leases.length).claim(Extracting(app.tools), 10)


@pytest.mark.parametrize("way", ["batch", "single"])
def test_the_lease_begins_at_the_claim_and_not_at_the_announcement(
    app: App, clock: SetClock, way: str
) -> None:
    seen: list[Any] = []

    def extract(source: Source) -> Extraction:
        seen.append(row_of(app.sessions, source.media_id))
        return good_extractor(source)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    media_id = new_media(app)
    app.queue.announce(Work(EXTRACTION, media_id))
    clock.forward(hours=1)
    assert sweep(app.tools, app.queue).released == 0
    if way == "batch":
        app.kernel.finish(claim(app)[0])
    else:
        extract_item(app.tools, media_id)
    assert seen[0].lease_expires_at == clock.time + app.tools.leases.length
    assert seen[0].processing_started_at == clock.time


def test_backoff_doubles_and_stays_within_its_jitter() -> None:
    for tries, most in ((1, 5.0), (2, 10.0), (3, 20.0)):
        waits = [backoff(5.0, tries).total_seconds() for _ in range(500)]
        assert all(most / 2 <= wait <= most for wait in waits)
        assert max(waits) - min(waits) > most / 4
    assert backoff(0, 3) == timedelta(0)


def test_a_transient_failure_waits_longer_each_time(app: App, clock: SetClock) -> None:
    def extract(source: Source) -> Extraction:
        raise FetchFailed

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    ids = [new_media(app) for _ in range(10)]
    base = app.settings.backoff_seconds
    for most in (base, 2 * base):
        assert {extract_item(app.tools, media_id) for media_id in ids} == {Outcome.RELEASED}
        waits = [(row_of(app.sessions, one).run_after - clock.time).total_seconds() for one in ids]
        assert all(most / 2 <= wait <= most for wait in waits)
        assert len(set(waits)) > 1
        clock.forward(seconds=most / 2 - 0.01)
        assert {extract_item(app.tools, media_id) for media_id in ids} == {None}
        clock.forward(seconds=most / 2 + 0.01)
    assert {extract_item(app.tools, media_id) for media_id in ids} == {Outcome.FAILED}


def test_a_worker_that_dies_three_times_fails_its_media(app: App, clock: SetClock) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
    media_id = new_media(app, user=uuid4())
    for _ in range(3):
        assert len(claim(app)) == 1
        clock.forward(seconds=61)
        assert sweep(app.tools, app.queue).released == 1
        clock.forward(seconds=61)
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.failure_stage) == ("failed", "extract")
    assert (row.last_error_code, row.processing_attempts) == ("E_JOB_TIMEOUT", 3)
    assert events_of(app.sessions, media_id) == ["create", *["start", "release"] * 2, "start", "fail"]
