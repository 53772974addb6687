"""Work that hangs, breaks while it is written, or is taken away: nothing else suffers from it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Table, select

from nexus.app import App, build
from nexus.db.editorial import jobs as jobs_table
from nexus.db.session import Statement, wall_clock
from nexus.db.tables import media, refreshes
from nexus.editorial import editing, jobs
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.libraries import catalog
from nexus.libraries.quota import Operation
from nexus.media import queries, refresh, runner, submit
from nexus.media.documents import Origin
from nexus.media.lifecycle import (
    claim_due,
    mark_ready_for_reading,
    release,
    renew_leases,
    worker_start_attempt,
)
from nexus.media.runner import Outcome
from nexus.media.turns import Turns
from nexus.queue.local import Local
from nexus.states.media import Kind, Status
from nexus.work.leases import Leases
from nexus.worker.threads import Workers
from tests.editorial import TEXT
from tests.job_walks import LEASE, PAGE, job_events, new_job
from tests.processes import eventually
from tests.support import SetClock, history_of, make_settings, new_media, row_of
from tests.walks import fail, start, status_of


def test_a_lease_is_not_renewed_beyond_what_one_media_may_take(app: App) -> None:
    leases = Leases(app.sessions, timedelta(seconds=0.03), timedelta(0), renew_leases)
    media_id = new_media(app)
    start(app, media_id)
    claim = row_of(app.sessions, media_id)
    with leases.hold((claim.id, claim.processing_attempts)):
        assert leases.held() == [(media_id, 1)]
        gone = threading.Event()
        while leases.held():
            assert not gone.wait(0.01)
        assert row_of(app.sessions, media_id).lease_expires_at == claim.lease_expires_at
    leases.close()


def works_on_an_item(app: App) -> None:
    assert runner.run(app.tools, new_media(app)) is Outcome.READABLE


def works_on_a_refresh(app: App) -> None:
    user, extract = uuid4(), AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE]
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain(None, "old")
    media_id = new_media(app, user)
    runner.run(app.tools, media_id)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    refresh.request(app.sessions, Local(), media_id, user, None)
    assert refresh.run(app.tools, media_id) == "revision 2"


def works_on_a_step(app: App) -> None:
    job_id = new_job(app, uuid4())
    with app.sessions.begin() as session:
        claim = jobs.start_fetch(session, job_id, LEASE, "test")
        assert jobs.mark_fetched(session, job_id, claim.attempt, PAGE, "test")
    assert editing.run(app.tools, job_id)
    assert job_events(app, job_id)[-2:] == ["claim_extraction", "extracted"]


@pytest.mark.parametrize(
    ("work", "table"),
    [(works_on_an_item, media), (works_on_a_refresh, refreshes), (works_on_a_step, jobs_table)],
    ids=lambda given: getattr(given, "name", None),
)
def test_the_lease_of_all_work_is_short_and_renewed_while_it_runs(
    database_url: str, tmp_path: Path, work: Callable[[App], None], table: Table
) -> None:
    app = build(make_settings(database_url, tmp_path, lease_seconds=0.6))
    held = Statement(select(table.c.lease_expires_at).where(table.c.lease_expires_at.is_not(None)))

    def until() -> datetime:
        with app.sessions.read() as session:
            (row,) = session.all(held)
            moment: datetime = row.lease_expires_at
            return moment

    def extract(source: Source) -> Extraction:
        first = until()
        assert first <= wall_clock() + timedelta(seconds=0.6)
        eventually(lambda: until() > first + timedelta(seconds=0.6), "it is renewed")
        return Extraction.plain(None, TEXT)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    work(app)
    app.close()


def test_text_that_no_database_can_hold_is_cleaned(app: App) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain(
        "A \ud800title\x00", "bad \ud800 text"
    )
    media_id = new_media(app)
    assert runner.run(app.tools, media_id) is Outcome.READABLE
    assert row_of(app.sessions, media_id).title == "A title"


@pytest.mark.parametrize("empty", [(), ("",), (" \n",), ("\x00",), ("\ud800",)])
def test_what_holds_no_text_is_not_readable(app: App, empty: tuple[str, ...]) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain("A title", *empty)
    media_id = new_media(app)
    assert runner.run(app.tools, media_id) is Outcome.FAILED
    assert row_of(app.sessions, media_id).last_error_code == "E_EMPTY_CONTENT"


def test_a_worker_that_stumbles_gives_back_what_it_did_not_begin(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain(None, "text")
    user = uuid4()
    waiting = {new_media(app, user) for _ in range(5)}
    claims = Turns(app.sessions, timedelta(seconds=60)).claim([Kind.WEB_ARTICLE], 5)

    class Once(Workers):
        def run_once(self) -> None:
            self._turns.claim = lambda kinds, most: claims  # type: ignore[method-assign]
            self._work_once()

    def breaks(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(runner, "attempt", breaks)
    with pytest.raises(ConnectionError):
        Once(app).run_once()
    begun = {media_id for media_id in waiting if status_of(app.sessions, media_id) is Status.EXTRACTING}
    assert len(begun) == 1
    assert {row_of(app.sessions, media_id).tries for media_id in waiting - begun} == {0}


def test_giving_back_and_renewing_at_once_do_not_deadlock(clean_postgres: str, tmp_path: Path) -> None:
    app = build(make_settings(clean_postgres, tmp_path))
    user = uuid4()
    for _ in range(10):
        for _ in range(30):
            new_media(app, user)
        with app.sessions.begin() as session:
            claims = claim_due(session, Kind.WEB_ARTICLE, user, 30)
        holds = [(claim.id, claim.processing_attempts) for claim in claims]
        barrier = threading.Barrier(2)
        with ThreadPoolExecutor(1) as other:
            renewed = other.submit(renew_together, app, holds, barrier)
            barrier.wait()
            runner.give_back(app.tools, holds)
            renewed.result()
    app.close()


def renew_together(app: App, holds: list[tuple[UUID, int]], barrier: threading.Barrier) -> None:
    barrier.wait()
    with app.sessions.begin() as session:
        renew_leases(session, sorted(holds))


def test_a_claim_of_another_process_is_not_given_back(app: App) -> None:
    """Only an attempt that this process was given is its own to give back."""
    media_id = new_media(app)
    attempt = start(app, media_id)
    assert app.tools.leases.held() == []
    runner.give_back(app.tools, app.tools.leases.held())
    with app.sessions.begin() as session:
        assert mark_ready_for_reading(
            session, media_id, attempt, Extraction.plain(None, "text"), Origin("tests")
        )


def test_what_is_put_off_is_not_announced(app: App, clock: SetClock) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain(None, "text")
    user, url = uuid4(), "https://example.com/put-off"
    first = submit.url(app.sessions, app.queue, {}, user, "web_article", url)
    assert first.enqueued
    with app.sessions.begin() as session:
        worker_start_attempt(session, first.media_id)
        release(session, first.media_id, 1, "E_X", session.now + timedelta(hours=1))
    again = submit.url(app.sessions, app.queue, {}, user, "web_article", url)
    assert (again.media_id, again.created, again.enqueued) == (first.media_id, False, False)


def test_a_retry_costs_no_allowance(app: App) -> None:
    user, url, limits = uuid4(), "https://example.com/failed", {Operation.INGEST_URLS: 1}
    media_id = submit.url(app.sessions, app.queue, limits, user, "web_article", url).media_id
    fail(app, media_id, start(app, media_id))
    assert submit.url(app.sessions, app.queue, limits, user, "web_article", url).media_id == media_id
    assert [entry.event for entry in history_of(app.sessions, media_id)][-1] == "retry"


def test_a_viewer_of_many_libraries_sees_each_media_once(app: App) -> None:
    user = uuid4()
    wanted = [new_media(app, user) for _ in range(7)]
    with app.sessions.begin() as session:
        for number in range(queries.WALKS + 3):
            library = catalog.create(session, user, f"Library {number}")
            catalog.add_media(session, library, wanted[number % 7], user)
    seen: list[UUID] = []
    cursor = None
    while True:
        with app.sessions.read() as session:
            page = queries.newest(session, user, cursor=cursor, most=2)
            assert len(queries.newest(session, user, status=Status.PENDING, most=50).items) == 7
        seen += [view.row.id for view in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(wanted)
