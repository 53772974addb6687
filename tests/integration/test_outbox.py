"""Texts that are ready at the same time are written together, and one failure does not affect the others."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from nexus.app import App, build
from nexus.db.drivers import CommitUnanswered
from nexus.db.rows import MediaRow
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction
from nexus.media.extraction import Nothing
from nexus.media.lifecycle import BACKLOG, mark_all_ready_for_reading
from nexus.media.runner import Extracting
from nexus.media.texts import Found, Readable
from nexus.states.media import Kind, MediaStatus
from nexus.work.handler import Claim, EndedAttempt
from nexus.worker.outbox import Outbox
from tests.kit.media import events_of, everything_of, new_media, row_of, start_extraction, status_of
from tests.kit.settings import make_settings

Done = EndedAttempt[MediaRow, Readable | Nothing]


def ended(app: App, count: int) -> list[Done]:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain("A title", "text")
    return [app.kernel.attempt(claim(app)) for _ in range(count)]


def claim(app: App) -> Claim[MediaRow]:
    media_id = new_media(app)
    with app.sessions.begin() as session:
        found = Extracting(app.tools).claim(session, media_id, app.tools.leases.length)
    assert found is not None
    return found


def claimed(app: App) -> Any:
    media_id = new_media(app)
    start_extraction(app, media_id)
    return row_of(app.sessions, media_id)


def readable(app: App, done: Sequence[Done]) -> list[bool]:
    return [status_of(app.sessions, one.claim.subject.id) is MediaStatus.READY_FOR_READING for one in done]


@pytest.fixture
def outbox(app: App) -> Iterator[Outbox]:
    made = Outbox(app.kernel)
    made.start()
    yield made
    made.close(30)


class Writing:
    """Holds the writer back until the test lets it go, and counts what is written together."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._settle = app.kernel.settle
        monkeypatch.setattr(app.kernel, "settle", self)

    def __call__(self, done: Sequence[Done]) -> list[str]:
        self.sizes.append(len(done))
        self.begun.set()
        assert self.go_on.wait(30)
        return self._settle(done)


def put_during_a_write(outbox: Outbox, writing: Writing, done: list[Done]) -> None:
    """The first alone, the others while that is being written."""
    outbox.put(done[0])
    assert writing.begun.wait(30)
    for one in done[1:]:
        outbox.put(one)
    writing.go_on.set()
    outbox.close(30)


def test_results_that_arrive_during_a_write_are_written_together(
    app: App, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Writing(app, monkeypatch)
    done = ended(app, 4)
    put_during_a_write(outbox, writing, done)
    assert writing.sizes == [1, 3]
    assert all(readable(app, done))


def test_a_very_large_text_is_written_alone(
    app: App, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus.worker.outbox.MOST_TEXT", 6)  # each has four characters
    writing = Writing(app, monkeypatch)
    done = ended(app, 3)
    put_during_a_write(outbox, writing, done)
    assert writing.sizes == [1, 1, 1]
    assert all(readable(app, done))


def test_a_full_outbox_makes_the_next_result_wait(
    app: App, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus.worker.outbox.MOST", 2)
    writing = Writing(app, monkeypatch)
    done = ended(app, 4)
    outbox.put(done[0])
    assert writing.begun.wait(30)
    for one in done[1:3]:
        outbox.put(one)
    with ThreadPoolExecutor(1) as threads:
        last = threads.submit(outbox.put, done[3])
        with pytest.raises(TimeoutError):
            last.result(0.05)
        writing.go_on.set()
        last.result(30)
    outbox.close(30)
    assert writing.sizes == [1, 2, 1]
    assert all(readable(app, done))


def test_a_result_that_the_database_refuses_does_not_fail_its_neighbours(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ended(app, 3)
    settle = app.kernel.settle

    def picky(several: Sequence[Done]) -> list[str]:
        if done[1] in several:
            raise ValueError
        return settle(several)

    monkeypatch.setattr(app.kernel, "settle", picky)
    written_by(Outbox(app.kernel), done)
    assert readable(app, done) == [True, False, True]


def test_a_database_that_comes_back_gets_the_results_of_the_meantime(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus.db.patience.PAUSES", (0.0,) * 5)
    away = iter([True] * 3)
    settle = app.kernel.settle

    def flaky(several: Sequence[Done]) -> list[str]:
        if next(away, False):
            raise CommitUnanswered
        return settle(several)

    monkeypatch.setattr(app.kernel, "settle", flaky)
    done = ended(app, 3)
    written_by(Outbox(app.kernel), done)
    assert all(readable(app, done))


def test_a_lease_is_held_until_its_result_is_written(
    app: App, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Writing(app, monkeypatch)
    (done,) = ended(app, 1)
    app.tools.leases.take([done.claim.hold])
    outbox.put(done)
    assert writing.begun.wait(30)
    assert app.tools.leases.held() == [done.claim.hold]
    writing.go_on.set()
    outbox.close(30)
    assert app.tools.leases.held() == []


def written_by(outbox: Outbox, done: Sequence[Done]) -> None:
    """All of them at once."""
    for one in done:
        outbox.put(one)
    outbox.start()
    outbox.close(30)


def test_a_result_that_lost_its_lease_is_not_written(app: App) -> None:
    ready = [as_ready(app, claimed(app)) for _ in range(3)]
    lost = ready[1].media_id
    stale = [ready[0], replace(ready[1], attempt=7), ready[2]]
    with app.sessions.begin() as session:
        moved = mark_all_ready_for_reading(session, stale)
    assert moved == {ready[0].media_id, ready[2].media_id}
    for one in (ready[0], ready[2]):
        assert everything_of(app.sessions, one.media_id).texts == ["text"]
        assert events_of(app.sessions, one.media_id) == ["create", "start", "readable"]
    assert status_of(app.sessions, lost) is MediaStatus.EXTRACTING
    assert everything_of(app.sessions, lost).texts == []
    assert events_of(app.sessions, lost) == ["create", "start"]


def test_writing_together_and_renewing_leases_at_once_do_not_deadlock(
    clean_postgres: str, tmp_path: Path
) -> None:
    app = build(make_settings(clean_postgres, tmp_path))
    for _ in range(20):
        ready = [as_ready(app, claimed(app)) for _ in range(20)]
        backwards = sorted(ready, key=lambda one: one.media_id, reverse=True)
        barrier = threading.Barrier(3)
        with ThreadPoolExecutor(3) as threads:
            renewed = threads.submit(renew, app, [(one.media_id, one.attempt) for one in ready], barrier)
            written = [threads.submit(write, app, texts, barrier) for texts in (backwards, ready)]
            renewed.result(60)
            first, second = (moved.result(60) for moved in written)
        assert first | second == {one.media_id for one in ready}
        for one in ready:
            assert events_of(app.sessions, one.media_id) == ["create", "start", "readable"]
    app.close()


def as_ready(app: App, claim: Any) -> Readable:
    found = Extraction.plain(None, "text")
    return Readable.of(claim.id, claim.processing_attempts, Found(found, "tests"))


def renew(app: App, holds: list[tuple[UUID, int]], barrier: threading.Barrier) -> None:
    barrier.wait(30)
    with app.sessions.begin() as session:
        BACKLOG.renew(session, sorted(holds), session.now + timedelta(seconds=60))


def write(app: App, ready: list[Readable], barrier: threading.Barrier) -> set[UUID]:
    barrier.wait(30)
    with app.sessions.single() as session:
        return mark_all_ready_for_reading(session, ready)
