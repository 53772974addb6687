"""What one user may take of a server that others use too: threads, requests, uploads, and room for files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from nexus.app import App
from nexus.errors import StorageFull
from nexus.extract.feeds.results import NamedFeed
from nexus.media import uploads as verbs
from nexus.media.feeds import outlines
from nexus.media.feeds.subscribing import Wishes
from nexus.settings import Settings
from nexus.storage import Storage
from nexus.storage.digest import Digest
from nexus.web.http import threads
from tests.kit.clock import SetClock
from tests.kit.crowd import Crowd
from tests.kit.feeds import RSS, rss
from tests.kit.http import PATIENCE, Caller, Site, data, follow, problem
from tests.kit.http_imports import TEXT, open_batch, stage_file, wait_for_import
from tests.kit.http_uploads import begin_upload, send_bytes, upload_fields, upload_file
from tests.kit.job_calls import begin_job, call_step, job_of
from tests.kit.recordings import about, add_recording
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.settings import make_settings
from tests.kit.sign_ins import cookie_of
from tests.kit.uploads import Uploader, unique_pdf
from tests.kit.users import new_user
from tests.kit.waiting import eventually
from tests.kit.wire import request as wired
from tests.kit.wire import wire

GIB, MIB = 1024**3, 1024**2
#: For a few files of a test.
ROOM = 4000


@pytest.fixture
def shares() -> dict[str, object]:
    """The settings that a test is about."""
    return {}


@pytest.fixture
def settings(database_url: str, tmp_path: Path, pages: Pages, shares: dict[str, object]) -> Settings:
    fetching = {"fetch_allow": (pages.place,), "fetch_delay_seconds": 0, "fetch_per_host": 64}
    return make_settings(database_url, tmp_path, **fetching, **shares)


def with_shares(**given: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shares", [given], ids=[""])


@pytest.fixture
def crowd() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


@pytest.fixture
def few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has three threads of each sort, so that a few calls can take all that one user gets."""
    monkeypatch.setattr(threads, "QUICK_THREADS", 3)
    monkeypatch.setattr(threads, "PATIENT_THREADS", 3)


def refused(response: Any) -> tuple[int, str]:
    """The status and code of a refusal that says when to ask again."""
    assert int(response.headers["Retry-After"]) > 0
    return problem(response)


class TestThreads:
    @with_shares(slow_calls_per_user=2)
    def test_slow_fetches_of_one_user_do_not_delay_those_of_another(
        self, few_threads: None, site: Site, pages: Pages, crowd: ThreadPoolExecutor
    ) -> None:
        me, you = site.caller(), site.caller()
        pages["/quick"] = Answer(b"<p>Here it is.")
        mine = [begin_job(me, pages, f"/held/{n}") for n in range(8)]
        yours = begin_job(you, pages, "/quick")
        calls = [crowd.submit(call_step, site.caller(me.user), job_id, "fetch") for job_id in mine]
        eventually(lambda: len(pages.asked) >= 2, "the first of them wait for the site")
        assert job_of(call_step(you, yours, "fetch"))["status"] == "EXTRACTING"
        assert not any(call.done() for call in calls)
        pages.gate.set()
        assert {call.result(PATIENCE).status_code for call in calls} == {200}

    @with_shares(slow_calls_per_user=3)
    def test_confirming_uploads_on_a_slow_store_holds_no_thread_of_reads(
        self,
        few_threads: None,
        app: App,
        site: Site,
        crowd: ThreadPoolExecutor,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        me, body = site.caller(), unique_pdf()
        media_id = me.add()
        begun = [begin_upload(me, body) for _ in range(3)]
        for one in begun:
            data(send_bytes(site, one, body))
        with held_store(app.files.storage, monkeypatch) as waiting:
            calls: list[Future[Any]] = [
                crowd.submit(site.caller(me.user).post, f"/media/{one['media_id']}/ingest") for one in begun
            ]
            eventually(lambda: len(waiting) == 3, "every one of them waits for the store")
            assert data(me.get(f"/media/{media_id}"))["id"] == str(media_id)
        assert {call.result(PATIENCE).status_code for call in calls} == {200}

    @with_shares(threads_per_user=1)
    def test_reads_of_one_user_wait_for_each_other_and_not_for_others(
        self,
        few_threads: None,
        app: App,
        site: Site,
        crowd: ThreadPoolExecutor,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Whatever makes them slow."""
        me, you = site.caller(), site.caller()
        media_id = you.add()
        me.get("/libraries")
        gate, began = threading.Event(), threading.Semaphore(0)

        def hold(*_: Any) -> None:
            began.release()
            assert gate.wait(PATIENCE)

        monkeypatch.setattr("nexus.web.api.libraries.catalog.list_libraries", hold)
        calls = [crowd.submit(site.caller(me.user).get, "/libraries") for _ in range(6)]
        assert began.acquire(timeout=PATIENCE)
        monkeypatch.undo()
        assert data(you.get(f"/media/{media_id}"))["id"] == str(media_id)
        gate.set()
        for call in calls:
            call.result(PATIENCE)


@contextmanager
def held_store(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A store that answers nothing inside of the block; what its callers wait for."""
    gate, waiting = threading.Event(), list[str]()
    real = type(storage).digest

    def digest(store: Storage, path: str) -> Digest | None:
        waiting.append(path)
        assert gate.wait(PATIENCE)
        return real(store, path)

    monkeypatch.setattr(type(storage), "digest", digest)
    try:
        yield waiting
    finally:
        gate.set()


class TestRequests:
    @with_shares(requests_per_minute=3)
    def test_a_user_who_asks_too_often_is_told_to_wait(self, site: Site) -> None:
        me, you = site.caller(), site.caller()
        assert [me.get("/libraries").status_code for _ in range(3)] == [200, 200, 200]
        late = me.get("/libraries")
        assert refused(late) == (429, "E_RATE_LIMITED")
        assert "3 requests within a minute" in late.json()["error"]["message"]
        assert refused(me.post("/media/upload/init", json={})) == (429, "E_RATE_LIMITED")
        assert data(you.get("/libraries"))
        assert site.anyone().get("/healthz").status_code == 200

    @with_shares(requests_per_minute=2)
    def test_pages_and_feeds_count_as_well(self, app: App, site: Site) -> None:
        me = site.caller()
        browser = site.anyone(Cookie=cookie_of(app.sessions, me.user))
        assert browser.get("/").status_code == 200
        assert me.get("/api/stories.atom").status_code == 200
        page = browser.get("/", headers={"Accept": "text/html"})
        assert page.status_code == 429
        assert int(page.headers["Retry-After"]) > 0
        assert "Wait a moment" in page.text
        assert me.get("/api/stories.atom").status_code == 429

    @with_shares(requests_at_once=2)
    @pytest.mark.usefixtures("frequent_looks")
    def test_a_user_has_only_so_many_requests_open_at_once(self, site: Site) -> None:
        """Event streams are requests too."""
        me, you = site.caller(), site.caller()
        with ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(follow(me))
            assert refused(me.get("/libraries")) == (429, "E_RATE_LIMITED")
            assert data(you.get("/libraries"))
        eventually(lambda: me.get("/libraries").status_code == 200, "streams that are closed don't count")

    @with_shares(bodies_mib_per_user=16)
    def test_a_server_holds_only_so_much_of_what_a_user_sends(self, site: Site) -> None:
        """Nobody fills its memory with requests that never end. Others are served meanwhile."""
        me, you, piece = site.caller(), site.caller(), b"x" * (9 * MIB)
        held = site.server.config.app.state.shares._held  # type: ignore[union-attr]
        with wire(site) as first, wire(site) as second, wire(site) as third:
            first.send(unfinished_transcript(me) + piece)
            eventually(lambda: held[me.user] == len(piece), "it has arrived")
            second.send(unfinished_transcript(me) + piece)
            answered = second.answer()
            assert (answered.status, int(answered.headers["retry-after"])) == (429, 1)
            assert b"more than 16 MiB at once" in answered.body
            third.send(unfinished_transcript(you) + piece)
            eventually(lambda: held[you.user] == len(piece), "it is none of theirs")
            assert data(me.get("/libraries"))
        eventually(lambda: not held, "what is not sent any more is not held")

    def test_somebody_who_leaves_while_they_send_is_no_error(self, site: Site) -> None:
        me = site.caller()
        held = site.server.config.app.state.shares._held  # type: ignore[union-attr]
        with capture_logs() as lines:
            with wire(site) as line:
                line.send(unfinished_transcript(me) + b"x")
                eventually(lambda: held[me.user] == 1, "it has arrived")
            eventually(lambda: not held, "it is over")
        (ended,) = [line for line in lines if line.get("path", "").endswith("/transcript")]
        assert ended["status"] == 499
        assert not [line for line in lines if line["event"] == "request_broke"]

    @with_shares(streams_per_user=2)
    def test_a_user_plays_only_so_many_recordings_at_once(self, app: App, site: Site, pages: Pages) -> None:
        """Each is a connection to its site, and a site hears from Nexus seldom."""
        pages["/sound"] = Answer(bytes(32 * MIB), "audio/mpeg")
        me, you = site.caller(), site.caller()
        known = about(pages.url("/sound"))
        mine, yours = (f"/media/{add_recording(app, one.user, known)}/sound" for one in (me, you))
        with ExitStack() as playing:
            for _ in range(2):
                assert playing.enter_context(me.stream("GET", mine)).status_code == 200
            assert refused(me.get(mine)) == (429, "E_RATE_LIMITED")
            with you.stream("GET", yours) as other:
                assert other.status_code == 200
        eventually(lambda: is_played(me, mine), "what is played no more does not count")
        assert len(pages.asked) == 4


def unfinished_transcript(caller: Caller) -> bytes:
    """The head of a request whose body is larger than what is ever sent of it."""
    signed = [f"{name}: {caller.headers[name]}" for name in ("Authorization", "X-Nexus-Internal")]
    return wired(f"PUT /media/{uuid4()}/transcript", f"Content-Length: {10 * MIB}", *signed)


def is_played(caller: Caller, address: str) -> bool:
    with caller.stream("GET", address) as answer:
        return answer.status_code == 200


class TestUploads:
    @with_shares(uploads_per_user=2)
    def test_a_user_has_only_so_many_uploads_open(self, app: App, site: Site, clock: SetClock) -> None:
        me, you, body = site.caller(), site.caller(), unique_pdf()
        first, _ = begin_upload(me, body), begin_upload(me, body)
        late = me.post("/media/upload/init", json=upload_fields(body))
        assert refused(late) == (429, "E_RATE_LIMITED")
        assert int(late.headers["Retry-After"]) <= app.settings.link_seconds
        begin_upload(you, body)
        data(send_bytes(site, first, body))
        data(me.post(f"/media/{first['media_id']}/ingest"))
        begin_upload(me, unique_pdf())
        assert refused(me.post("/media/upload/init", json=upload_fields(body))) == (429, "E_RATE_LIMITED")
        clock.forward(seconds=app.settings.link_seconds + 1)
        begin_upload(me, unique_pdf())

    @with_shares(stored_gib_per_user=ROOM / GIB)
    def test_the_files_of_a_user_take_up_only_so_much(self, site: Site) -> None:
        me, you = site.caller(), site.caller()
        media_id = upload_file(site, me, unique_pdf(ROOM - 1000))
        late = me.post("/media/upload/init", json=upload_fields(unique_pdf(1001)))
        assert problem(late) == (507, "E_STORAGE_FULL")
        assert "Delete some" in late.json()["error"]["message"]
        upload_file(site, you, unique_pdf(ROOM))
        data(me.delete(f"/media/{media_id}"))
        upload_file(site, me, unique_pdf(ROOM))

    @with_shares(stored_gib_per_user=ROOM / GIB)
    def test_what_was_begun_counts_before_it_arrives(self, site: Site) -> None:
        me = site.caller()
        begin_upload(me, unique_pdf(ROOM - 1000))
        late = me.post("/media/upload/init", json=upload_fields(unique_pdf(1001)))
        assert problem(late) == (507, "E_STORAGE_FULL")

    @with_shares(stored_gib_per_user=ROOM / GIB)
    def test_uploads_that_begin_at_once_share_the_room(self, app: App) -> None:
        me, crowd = Uploader(app), Crowd(8)
        verbs.begin_upload(app.sessions, app.files, me.id, _expected(1))

        def begin(_: int) -> bool:
            try:
                verbs.begin_upload(app.sessions, app.files, me.id, _expected(ROOM - 1000))
            except StorageFull:
                return False
            return True

        assert sorted(crowd.rush(begin)) == [*[False] * 7, True]
        crowd.close()

    @with_shares(stored_gib_per_user=ROOM / GIB, uploads_per_user=1)
    def test_the_local_owner_stores_what_they_like(self, app: App) -> None:
        me = Uploader(app)
        files = replace(app.files, shares=replace(app.files.shares, owner=me.id))
        for _ in range(3):
            verbs.begin_upload(app.sessions, files, me.id, _expected(ROOM))


def _expected(size: int) -> verbs.Expected:
    return verbs.Expected("pdf", "a file.pdf", "application/pdf", size)


class TestSubscriptions:
    @with_shares(subscriptions_per_user=2)
    def test_a_user_subscribes_to_only_so_many_feeds(self, site: Site, pages: Pages) -> None:
        me, you = site.caller(), site.caller()
        for path in ("/a", "/b", "/c"):
            pages[path] = Answer(rss([]), RSS)
        made = [data(subscribe_at(me, pages, path))["id"] for path in ("/a", "/b")]
        assert problem(subscribe_at(me, pages, "/c")) == (409, "E_TOO_MANY_SUBSCRIPTIONS")
        assert problem(subscribe_at(me, pages, "/a")) == (409, "E_CONFLICT")
        assert len(data(me.get("/subscriptions"))["items"]) == 2
        data(subscribe_at(you, pages, "/c"))
        data(me.delete(f"/subscriptions/{made[0]}"))
        data(subscribe_at(me, pages, "/c"))

    @with_shares(subscriptions_per_user=2)
    def test_opml_brings_what_fits_and_names_the_rest(self, app: App, site: Site, pages: Pages) -> None:
        me = site.caller()
        first, *others = (pages.url(f"/{name}") for name in "abcd")
        done = data(me.post("/feeds/opml", json={"opml": opml_of(first)}))
        assert (len(done["subscription_ids"]), done["left_out"]) == (1, [])
        done = data(me.post("/feeds/opml", json={"opml": opml_of(*others, first)}))
        assert (len(done["subscription_ids"]), done["known"], done["left_out"]) == (1, [first], others[1:])
        browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), **{"Sec-Fetch-Site": "same-origin"})
        shown = browser.post("/following/opml", files={"file": ("reader.opml", opml_of(*others))})
        assert "2 were left out" in shown.text
        assert all(address in shown.text for address in others[1:])

    @with_shares(subscriptions_per_user=3)
    def test_subscriptions_that_are_made_at_once_share_the_places(self, app: App) -> None:
        me, crowd = new_user(app), Crowd(8)

        def made(number: int) -> int:
            named = [NamedFeed(f"https://example.com/{number}")]
            return len(outlines.subscribe_to_all(app.tools, me, named, Wishes()).made)

        assert sum(crowd.rush(made)) == 3
        crowd.close()


def subscribe_at(me: Caller, pages: Pages, path: str) -> Any:
    return me.post("/subscriptions", json={"url": pages.url(path)})


def opml_of(*addresses: str) -> str:
    outlined = "".join(f'<outline xmlUrl="{one}"/>' for one in addresses)
    return f'<opml version="2.0"><body>{outlined}</body></opml>'


@pytest.mark.wall_clock
@pytest.mark.usefixtures("installed_extractors")
class TestStaging:
    @with_shares(staged_gib_per_user=2.5 * len(TEXT) / GIB)
    def test_files_that_wait_for_an_import_take_up_only_so_much(self, app: App, site: Site) -> None:
        me, you = site.caller(), site.caller()
        batch = open_batch(me)
        first = data(stage_file(me, batch, "one.txt", TEXT))
        data(stage_file(me, batch, "two.txt", TEXT))
        late = stage_file(me, batch, "three.txt", TEXT)
        assert problem(late) == (507, "E_STORAGE_FULL")
        assert "Start the import" in late.json()["error"]["message"]
        assert len(list(app.imports.staging_folder().iterdir())) == 2
        data(stage_file(you, open_batch(you), "one.txt", TEXT))
        data(me.delete(f"/imports/batches/{batch}/sources/{first['id']}"))
        data(stage_file(me, batch, "three.txt", TEXT))
        data(me.delete(f"/imports/batches/{batch}"))
        data(stage_file(me, open_batch(me), "four.txt", TEXT * 2))

    @with_shares(staged_gib_per_user=1.5 * len(TEXT) / GIB)
    def test_a_form_that_is_too_large_together_is_refused_before_it_is_kept(
        self, app: App, site: Site
    ) -> None:
        me = site.caller()
        browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), **{"Sec-Fetch-Site": "same-origin"})
        files = [("files", (f"{n}.txt", TEXT)) for n in range(2)]
        assert browser.post("/import/files", files=files).status_code == 507
        data(stage_file(me, open_batch(me), "one.txt", TEXT))

    @with_shares(stored_gib_per_user=1.5 * len(TEXT) / GIB)
    def test_an_import_that_would_take_up_too_much_keeps_nothing(self, site: Site) -> None:
        me = site.caller()
        batch = open_batch(me)
        ids = [data(stage_file(me, batch, f"{n}.txt", TEXT + b"%d" % n))["id"] for n in range(2)]
        data(me.post(f"/imports/batches/{batch}/start"))
        stopped = wait_for_import(me, "PAUSED", "COMPLETE")
        assert (stopped["status"], stopped["error"]["code"]) == ("PAUSED", "E_STORAGE_FULL")
        assert data(me.get("/media"))["items"] == []
        data(me.delete(f"/imports/batches/{batch}/sources/{ids[0]}"))
        data(me.post("/imports/attempt/resume"))
        assert wait_for_import(me, "PAUSED", "COMPLETE")["status"] == "COMPLETE"
