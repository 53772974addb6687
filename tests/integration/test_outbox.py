"""Texts that are ready at the same time are written together, and none of them suffers from its company."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from nexus.app import App, build
from nexus.db.drivers import CommitUnanswered
from nexus.db.session import Row
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction
from nexus.media import runner
from nexus.media.documents import Origin, Readable
from nexus.media.lifecycle import mark_all_ready_for_reading, renew_leases
from nexus.media.runner import Done, Outcome
from nexus.media.workbench import Tools
from nexus.states.media import Kind, Status
from nexus.worker.outbox import Outbox
from tests.support import make_settings, new_media, row_of
from tests.walks import events_of, start, status_of, whole


def ended(app: App, count: int) -> list[Done]:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain("A title", "text")
    return [runner.attempt(app.tools, claimed(app)) for _ in range(count)]


def claimed(app: App) -> Row:
    media_id = new_media(app)
    start(app, media_id)
    return row_of(app.sessions, media_id)


def readable(app: App, done: Sequence[Done]) -> list[bool]:
    return [status_of(app.sessions, one.claim.id) is Status.READY_FOR_READING for one in done]


@pytest.fixture
def outbox(app: App) -> Iterator[Outbox]:
    made = Outbox(app.tools)
    made.start()
    yield made
    made.close(30)


class Writing:
    """Stands in the writer's way until it is let go on, and counts what is written together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._settle = runner.settle
        monkeypatch.setattr(runner, "settle", self)

    def __call__(self, tools: Tools, done: Sequence[Done]) -> list[Outcome]:
        self.sizes.append(len(done))
        self.begun.set()
        assert self.go_on.wait(30)
        return self._settle(tools, done)


def test_what_ends_while_others_are_written_is_written_together(
    app: App, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Writing(monkeypatch)
    done = ended(app, 4)
    outbox.put(done[0])
    assert writing.begun.wait(30)
    for one in done[1:]:
        outbox.put(one)
    writing.go_on.set()
    outbox.close(30)
    assert writing.sizes == [1, 3]
    assert all(readable(app, done))


def test_a_text_that_is_very_large_goes_alone(
    app: App, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus.worker.outbox.MOST_TEXT", 6)  # each has four characters
    writing = Writing(monkeypatch)
    done = ended(app, 3)
    outbox.put(done[0])
    assert writing.begun.wait(30)
    for one in done[1:]:
        outbox.put(one)
    writing.go_on.set()
    outbox.close(30)
    assert writing.sizes == [1, 1, 1]
    assert all(readable(app, done))


def test_a_full_outbox_makes_the_next_one_wait(
    app: App, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus.worker.outbox.MOST", 2)
    writing = Writing(monkeypatch)
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


def test_one_that_the_database_refuses_does_not_take_its_neighbours_with_it(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ended(app, 3)
    settle = runner.settle

    def picky(tools: Tools, several: Sequence[Done]) -> list[Outcome]:
        if done[1] in several:
            raise ValueError
        return settle(tools, several)

    monkeypatch.setattr(runner, "settle", picky)
    written_by(Outbox(app.tools), done)
    assert readable(app, done) == [True, False, True]


def test_a_database_that_comes_back_gets_what_was_found_meanwhile(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus.db.patience.PAUSES", (0.0,) * 5)
    away = iter([True] * 3)
    settle = runner.settle

    def flaky(tools: Tools, several: Sequence[Done]) -> list[Outcome]:
        if next(away, False):
            raise CommitUnanswered
        return settle(tools, several)

    monkeypatch.setattr(runner, "settle", flaky)
    done = ended(app, 3)
    written_by(Outbox(app.tools), done)
    assert all(readable(app, done))


def test_a_lease_is_held_until_its_result_is_written(
    app: App, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Writing(monkeypatch)
    (done,) = ended(app, 1)
    app.tools.leases.take([done.hold])
    outbox.put(done)
    assert writing.begun.wait(30)
    assert app.tools.leases.held() == [done.hold]
    writing.go_on.set()
    outbox.close(30)
    assert app.tools.leases.held() == []


def written_by(outbox: Outbox, done: Sequence[Done]) -> None:
    """All of them at once."""
    for one in done:
        outbox.put(one)
    outbox.start()
    outbox.close(30)


def test_one_that_lost_its_lease_is_left_out_and_its_text_is_not_written(app: App) -> None:
    ready = [as_ready(app, claimed(app)) for _ in range(3)]
    lost = ready[1].media_id
    stale = [ready[0], replace(ready[1], attempt=7), ready[2]]
    with app.sessions.begin() as session:
        moved = mark_all_ready_for_reading(session, stale)
    assert moved == {ready[0].media_id, ready[2].media_id}
    for one in (ready[0], ready[2]):
        assert whole(app.sessions, one.media_id).texts == ["text"]
        assert events_of(app.sessions, one.media_id) == ["create", "start", "readable"]
    assert status_of(app.sessions, lost) is Status.EXTRACTING
    assert whole(app.sessions, lost).texts == []
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


def as_ready(app: App, claim: Row) -> Readable:
    found = Extraction.plain(None, "text")
    return Readable.of(claim.id, claim.processing_attempts, found, Origin("tests"))


def renew(app: App, holds: list[tuple[UUID, int]], barrier: threading.Barrier) -> None:
    barrier.wait(30)
    with app.sessions.begin() as session:
        renew_leases(session, sorted(holds))


def write(app: App, ready: list[Readable], barrier: threading.Barrier) -> set[UUID]:
    barrier.wait(30)
    with app.sessions.single() as session:
        return mark_all_ready_for_reading(session, ready)
