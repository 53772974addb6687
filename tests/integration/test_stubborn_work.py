"""Work that hangs, fails to be written, or is taken away does not affect other work."""

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
from nexus.editorial import jobs
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.libraries import catalog
from nexus.libraries.quota import Operation
from nexus.media import queries, refresh, submit
from nexus.media.lifecycle import (
    BACKLOG,
    EXTRACTION,
    claim_due,
    mark_ready_for_reading,
    release,
    worker_start_attempt,
)
from nexus.media.list_filters import Wanted
from nexus.media.listing import list_items
from nexus.media.runner import Extracting, Outcome
from nexus.media.texts import Found
from nexus.queue import Work
from nexus.queue.local import LocalQueue
from nexus.states.media import Kind, MediaStatus
from nexus.work.handler import Hold
from nexus.work.leases import Leases
from nexus.work.turns import Turns
from nexus.worker.threads import Workers
from tests.kit.clock import SetClock
from tests.kit.job_calls import TEXT
from tests.kit.jobs import LEASE, PAGE, job_events, new_job, start_fetch
from tests.kit.media import fail_media, history_of, new_media, row_of, start_extraction, status_of
from tests.kit.settings import make_settings
from tests.kit.waiting import eventually
from tests.kit.work import extract_item, refresh_item, take_step


def test_a_lease_is_not_renewed_beyond_what_one_media_may_take(app: App) -> None:
    leases = Leases(app.sessions, timedelta(seconds=0.03), timedelta(0))
    leases.backlogs[EXTRACTION] = BACKLOG
    media_id = new_media(app)
    start_extraction(app, media_id)
    claim = row_of(app.sessions, media_id)
    hold = Hold(Work(EXTRACTION, media_id), claim.processing_attempts)
    with leases.hold(hold):
        assert leases.held() == [hold]
        gone = threading.Event()
        while leases.held():
            assert not gone.wait(0.01)
        assert row_of(app.sessions, media_id).lease_expires_at == claim.lease_expires_at
    leases.close()


def works_on_an_item(app: App) -> None:
    assert extract_item(app.tools, new_media(app)) is Outcome.READABLE


def works_on_a_refresh(app: App) -> None:
    user, extract = uuid4(), AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE]
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain(None, "old")
    media_id = new_media(app, user)
    extract_item(app.tools, media_id)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    assert refresh_item(app.tools, media_id) == "revision 2"


def works_on_a_step(app: App) -> None:
    job_id = new_job(app, uuid4())
    with app.sessions.begin() as session:
        claim = start_fetch(session, job_id, LEASE, "test")
        assert jobs.mark_fetched(session, job_id, claim.attempt, PAGE, "test")
    assert take_step(app.tools, job_id)
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
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert row_of(app.sessions, media_id).title == "A title"


@pytest.mark.parametrize("empty", [(), ("",), (" \n",), ("\x00",), ("\ud800",)])
def test_an_extraction_without_text_does_not_become_readable(app: App, empty: tuple[str, ...]) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain("A title", *empty)
    media_id = new_media(app)
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert row_of(app.sessions, media_id).last_error_code == "E_EMPTY_CONTENT"


def test_a_worker_that_fails_gives_back_the_claims_it_did_not_begin(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda source: Extraction.plain(None, "text")
    user = uuid4()
    waiting = {new_media(app, user) for _ in range(5)}
    claims = Turns(app.sessions, timedelta(seconds=60)).claim(Extracting(app.tools), 5)

    class Once(Workers):
        def run_once(self) -> None:
            given = {EXTRACTION: claims}
            self._turns.claim = lambda handler, most: given.pop(handler.kind, [])  # type: ignore[method-assign]
            self._work_once()

    def breaks(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(app.kernel, "attempt", breaks)
    with pytest.raises(ConnectionError):
        Once(app).run_once()
    begun = {media_id for media_id in waiting if status_of(app.sessions, media_id) is MediaStatus.EXTRACTING}
    assert len(begun) == 1
    assert {row_of(app.sessions, media_id).tries for media_id in waiting - begun} == {0}


def test_giving_back_and_renewing_claims_at_once_do_not_deadlock(clean_postgres: str, tmp_path: Path) -> None:
    app = build(make_settings(clean_postgres, tmp_path))
    user = uuid4()
    for _ in range(10):
        for _ in range(30):
            new_media(app, user)
        with app.sessions.begin() as session:
            claims = claim_due(session, Kind.WEB_ARTICLE, user, 30)
        holds = [Hold(Work(EXTRACTION, claim.id), claim.processing_attempts) for claim in claims]
        barrier = threading.Barrier(2)
        with ThreadPoolExecutor(1) as other:
            renewed = other.submit(renew_together, app, holds, barrier)
            barrier.wait()
            app.kernel.give_back(holds)
            renewed.result()
    app.close()


def renew_together(app: App, holds: list[Hold], barrier: threading.Barrier) -> None:
    barrier.wait()
    with app.sessions.begin() as session:
        BACKLOG.renew(session, [(hold.work.id, hold.attempt) for hold in sorted(holds)], session.now + LEASE)


def test_a_claim_of_another_process_is_not_given_back(app: App) -> None:
    """A process may only give back its own attempts."""
    media_id = new_media(app)
    attempt = start_extraction(app, media_id)
    assert app.tools.leases.held() == []
    app.kernel.give_back(app.kernel.leases.held())
    with app.sessions.begin() as session:
        assert mark_ready_for_reading(
            session, media_id, attempt, Found(Extraction.plain(None, "text"), "tests")
        )


def test_a_postponed_media_is_not_announced(app: App, clock: SetClock) -> None:
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
    fail_media(app, media_id, start_extraction(app, media_id))
    assert submit.url(app.sessions, app.queue, limits, user, "web_article", url).media_id == media_id
    assert [entry.event for entry in history_of(app.sessions, media_id)][-1] == "retry"


def test_a_viewer_of_many_libraries_sees_each_media_once(app: App) -> None:
    user = uuid4()
    wanted = [new_media(app, user) for _ in range(7)]
    with app.sessions.begin() as session:
        for number in range(queries.WALKS + 3):
            library = catalog.create_library(session, user, f"Library {number}")
            catalog.add_media(session, library, wanted[number % 7], user)
    seen: list[UUID] = []
    cursor, pending = None, Wanted(statuses=frozenset({MediaStatus.PENDING}))
    while True:
        with app.sessions.read() as session:
            page = list_items(session, user, cursor=cursor, most=2)
            assert len(list_items(session, user, pending, most=50).items) == 7
        seen += [view.row.id for view in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(wanted)
