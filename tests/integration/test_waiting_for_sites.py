"""Waiting is not trying: a site that asks for time is left alone, and everything else from it runs in turn later."""

from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from nexus.app import App
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media.runner import Outcome
from nexus.settings import Settings
from nexus.states.media import Kind, MediaStatus
from tests.kit.articles import ARTICLE
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data
from tests.kit.job_calls import begin_job, call_step, job_of
from tests.kit.media import history_of, new_media, row_of, status_of
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.settings import make_settings
from tests.kit.sign_ins import cookie_of
from tests.kit.work import extract_item, take_step

ASKED_TO_WAIT = Answer(b"", status=429, headers={"Retry-After": "600"})
OTHERS = 12


@pytest.fixture
def settings(database_url: str, tmp_path: Path, pages: Pages) -> Settings:
    return make_settings(database_url, tmp_path, fetch_allow=(pages.place,), fetch_delay_seconds=0)


@pytest.fixture
def pages(pages: Pages) -> Pages:
    pages["/busy"] = ASKED_TO_WAIT
    for number in range(OTHERS):
        pages[f"/{number}"] = Answer(ARTICLE.encode())
    pages["/boats"] = Answer(ARTICLE.encode())
    return pages


@pytest.fixture(autouse=True)
def fetching() -> None:
    """Items are read by what only fetches them."""

    def extract(source: Source) -> Extraction:
        source.bench.fetch(source.url or "")
        return Extraction.plain("A title", "A text.")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract


def end_rest(app: App) -> None:
    """The time that the site asked for is over."""
    app.tools.fetcher._pace.book.change("127.0.0.1", lambda state, _: state.rests.clear())


def paths(pages: Pages) -> list[str]:
    return [path for path, _ in pages.asked]


def test_one_429_costs_the_other_items_of_its_host_no_try(app: App, clock: SetClock, pages: Pages) -> None:
    busy = new_media(app, url=pages.url("/busy"))
    others = [new_media(app, url=pages.url(f"/{number}")) for number in range(OTHERS)]
    assert extract_item(app.tools, busy) is Outcome.RELEASED
    assert row_of(app.sessions, busy).tries == 1
    for _ in range(4):
        began = app.sessions.clock()
        for media_id in others:
            assert extract_item(app.tools, media_id) is Outcome.RELEASED
            row = row_of(app.sessions, media_id)
            assert row.tries == 0
            assert timedelta(seconds=500) < row.run_after - began <= timedelta(seconds=600)
            assert history_of(app.sessions, media_id)[-1].error_code == "E_FETCH_BUSY"
            assert extract_item(app.tools, media_id) is None, "it waits"
        clock.forward(minutes=20)
    assert paths(pages) == ["/busy"]
    end_rest(app)
    for media_id in others:
        assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert sorted(paths(pages)) == sorted(["/busy", *(f"/{number}" for number in range(OTHERS))])


def test_a_429_to_a_request_of_its_own_is_a_try(app: App, clock: SetClock, pages: Pages) -> None:
    busy = new_media(app, url=pages.url("/busy"))
    for expected in (Outcome.RELEASED, Outcome.RELEASED, Outcome.FAILED):
        assert extract_item(app.tools, busy) is expected
        clock.forward(minutes=20)
        end_rest(app)
    row = row_of(app.sessions, busy)
    assert (row.processing_status, row.last_error_code) == (MediaStatus.FAILED, "E_FETCH_RATE_LIMITED")
    assert paths(pages) == ["/busy"] * 3


def page_of(app: App, site: Site, me: Caller, path: str) -> str:
    cookie = cookie_of(app.sessions, me.user)
    answer = site.anyone(Cookie=cookie).get(path)
    assert answer.status_code == 200
    return " ".join(answer.text.split())


def test_an_item_says_which_site_it_waits_for(
    app: App, clock: SetClock, site: Site, me: Caller, pages: Pages
) -> None:
    extract_item(app.tools, me.add(pages.url("/busy")))
    media_id = me.add(pages.url("/1"))
    assert "Waiting for 127.0.0.1" not in page_of(app, site, me, f"/items/{media_id}")
    new = data(me.get(f"/media/{media_id}"))
    assert (new["waiting_for"], new["waiting_until"]) == (None, None)
    assert extract_item(app.tools, media_id) is Outcome.RELEASED
    until = f"{row_of(app.sessions, media_id).run_after:%H:%M} UTC</time>"
    told = data(me.get(f"/media/{media_id}"))
    assert told["waiting_for"] == "127.0.0.1"
    assert datetime.fromisoformat(told["waiting_until"]) == row_of(app.sessions, media_id).run_after
    for path in ("/", f"/items/{media_id}"):
        shown = page_of(app, site, me, path)
        assert "Waiting for 127.0.0.1 until <time" in shown
        assert until in shown
    clock.forward(minutes=20)
    assert "Waiting for 127.0.0.1" not in page_of(app, site, me, f"/items/{media_id}")
    assert status_of(app.sessions, media_id) is MediaStatus.PENDING
    end_rest(app)
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    (read,) = [item for item in data(me.get("/media"))["items"] if item["id"] == str(media_id)]
    assert (read["waiting_for"], read["waiting_until"]) == (None, None)


def test_a_job_says_which_site_it_waits_for(
    app: App, clock: SetClock, site: Site, me: Caller, pages: Pages
) -> None:
    extract_item(app.tools, me.add(pages.url("/busy")))
    job_id = begin_job(me, pages)
    assert job_of(me.get(f"/api/ingestion-jobs/{job_id}"))["waitingUntil"] is None
    left = job_of(call_step(me, job_id, "fetch"))
    assert left["status"] == "FETCHING"
    assert left["waitingUntil"] > app.sessions.clock().isoformat()
    for path in ("/admin/jobs", f"/admin/jobs/{job_id}"):
        assert "Waiting for 127.0.0.1 until <time" in page_of(app, site, me, path)
    assert take_step(app.tools, UUID(job_id)) is None, "it waits"
    end_rest(app)
    clock.forward(minutes=20)
    assert take_step(app.tools, UUID(job_id)) is not None
    fetched = job_of(me.get(f"/api/ingestion-jobs/{job_id}"))
    assert (fetched["waitingUntil"], fetched["httpStatus"]) == (None, 200)
    assert paths(pages) == ["/busy", "/boats"]
