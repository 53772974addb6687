"""An announcement that fails costs time and nothing else: its work is committed, and the sweep finds it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from nexus.app import App, build
from nexus.db.session import Statement
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media import refresh
from nexus.settings import Settings
from nexus.states import job
from nexus.states.media import Kind, MediaStatus
from nexus.worker import tasks  # noqa: F401 registers the tasks
from tests.kit import jobs
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data, serve
from tests.kit.media import good_extractor, new_media, row_of, status_of, walk_media_to
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, unique_pdf
from tests.kit.work import steps_due, sweep

COUNTED = "nexus_announcements_failed_total"
#: Celery raises ModuleNotFoundError for the one, whose client is not installed, and NameError for the other.
MISSING_CLIENT = "mongodb://127.0.0.1/nexus"
BROKEN_CLIENT = "confluentkafka://127.0.0.1/nexus"
Submit = Callable[[App, Caller], UUID]


@contextmanager
def nonsense() -> Iterator[str]:
    """A port whose server speaks, but not the protocol of Redis."""
    with create_server(("127.0.0.1", 0)) as listening:

        def answer_for_ever() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer_for_ever, daemon=True)
        thread.start()
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"
        listening.shutdown(2)
        thread.join()


@contextmanager
def nobody() -> Iterator[str]:
    """A port that nobody listens on."""
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield f"redis://127.0.0.1:{port}/0"


@pytest.fixture(params=["nonsense", "nobody", "missing client", "broken client"])
def broken_broker(request: pytest.FixtureRequest) -> Iterator[str]:
    places = {"nonsense": nonsense, "nobody": nobody}
    if request.param in places:
        with places[request.param]() as url:
            yield url
    else:
        yield MISSING_CLIENT if request.param == "missing client" else BROKEN_CLIENT


@pytest.fixture
def settings(database_url: str, broken_broker: str, tmp_path: Path) -> Settings:
    return make_settings(database_url, tmp_path, queue="celery", redis_url=broken_broker)


@pytest.fixture(autouse=True)
def good_extractors(no_extractors: None) -> None:
    AVAILABLE_EXTRACTORS.update({Kind.WEB_ARTICLE: good_extractor, Kind.PDF: good_extractor})


def by_url(app: App, me: Caller) -> UUID:
    answer = data(me.post("/media/url", json={"kind": "web_article", "url": "https://example.com/a"}))
    assert (answer["created"], answer["enqueued"]) == (True, False)
    return UUID(answer["media_id"])


def by_retry(app: App, me: Caller) -> UUID:
    media_id = new_media(app, me.user)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    assert data(me.post(f"/media/{media_id}/retry"))["enqueued"] is False
    return media_id


def by_upload(app: App, me: Caller) -> UUID:
    media_id = Uploader(app, me.user).sent(unique_pdf())
    answer = data(me.post(f"/media/{media_id}/ingest"))
    assert (answer["media_id"], answer["enqueued"]) == (str(media_id), False)
    return media_id


@contextmanager
def mended(app: App, clock: SetClock) -> Iterator[App]:
    """The same installation a while later, with a working queue."""
    clock.forward(seconds=app.settings.lease_seconds + 1)
    made = build(app.settings.model_copy(update={"queue": "inline"}), clock)
    yield made
    made.close()


@pytest.mark.parametrize("submit", [by_url, by_retry, by_upload])
def test_a_request_whose_announcement_fails_succeeds_and_the_sweep_finishes_it(
    app: App, site: Site, clock: SetClock, submit: Submit
) -> None:
    with capture_logs() as logs:
        media_id = submit(app, site.caller())
    assert status_of(app.sessions, media_id) is MediaStatus.PENDING
    lines = [line for line in logs if line["event"] == "announce_failed"]
    assert [(line["kind"], line["id"]) for line in lines] == [("extraction", str(media_id))]
    assert all(line["reason"] and line["log_level"] == "warning" for line in lines)
    assert f"{COUNTED} 1.0" in site.anyone().get("/metrics").text.splitlines()
    with mended(app, clock) as later:
        sweep(later.tools, later.queue)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING


def test_a_refresh_whose_announcement_fails_waits_for_the_sweep(
    app: App, site: Site, clock: SetClock
) -> None:
    me = site.caller()
    media_id = new_media(app, me.user)
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    assert data(me.post(f"/media/{media_id}/refresh"))["enqueued"] is False
    with app.sessions.read() as session:
        assert refresh.present(session, media_id, me.user) is not None
    with mended(app, clock) as later:
        sweep(later.tools, later.queue)
    with app.sessions.read() as session:
        assert refresh.present(session, media_id, me.user) is None


def test_jobs_whose_announcements_fail_wait_for_a_worker(app: App, site: Site) -> None:
    me = site.caller()
    ids = [jobs.new_job(app, me.user) for _ in range(3)]
    for job_id in ids:
        jobs.walk_job_to(app, job_id, me.user, job.JobStatus.FAILED)
    code = me.get(f"/api/ingestion-jobs/{ids[0]}").json()["job"]["errorCode"]
    answer = me.post("/api/ingestion-jobs/failed/retry", json={"errorCode": code})
    assert (answer.status_code, set(answer.json()["jobIds"])) == (200, set(map(str, ids)))
    assert set(steps_due(app.tools)) == set(ids)
    assert f"{COUNTED} 3.0" in site.anyone().get("/metrics").text.splitlines()


def test_a_sweep_goes_on_after_announcements_that_fail(app: App, clock: SetClock) -> None:
    user = uuid4()
    ids = {new_media(app, user) for _ in range(3)}
    clock.forward(minutes=2)
    app.queue.workers_look = False
    with capture_logs() as logs:
        assert sweep(app.tools, app.queue).announced == 0
    failed = {line["id"] for line in logs if line["event"] == "announce_failed"}
    assert failed == set(map(str, ids))


def test_the_retry_task_succeeds_even_if_its_announcement_fails(app: App) -> None:
    me = Uploader(app)
    media_id = new_media(app, me.id)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    app.queue.app.tasks["retry_media"].apply(args=[str(media_id), str(me.id)], throw=True).get()
    assert status_of(app.sessions, media_id) is MediaStatus.PENDING


def test_work_that_breaks_off_within_the_request_does_not_break_the_request(
    database_url: str, tmp_path: Path, clock: SetClock
) -> None:
    """The database refuses the result: the table for it is gone until somebody brings it back."""

    def rename(was: str, to: str) -> None:
        with app.sessions.begin() as session:
            session.run(Statement(text(f"ALTER TABLE {was} RENAME TO {to}")))

    def read_without_a_table(source: Source) -> Extraction:
        rename("fragments", "gone")
        return good_extractor(source)

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = read_without_a_table
    app = build(make_settings(database_url, tmp_path, queue="inline"), clock)
    try:
        with serve(app) as site:
            media_id = by_url(app, site.caller())
            assert f"{COUNTED} 1.0" in site.anyone().get("/metrics").text.splitlines()
        assert status_of(app.sessions, media_id) is MediaStatus.EXTRACTING
        rename("gone", "fragments")
        AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = good_extractor
        clock.forward(seconds=app.settings.lease_seconds + 1)
        sweep(app.tools, app.queue)
        clock.forward(seconds=60)
        sweep(app.tools, app.queue)
        assert row_of(app.sessions, media_id).processing_status == "ready_for_reading"
    finally:
        app.close()
