"""The stream of events over HTTP: complete, in order, and only what one may see."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from threading import Event as Flag
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from nexus.app import App
from nexus.libraries.access import Role
from nexus.media.add import add_url
from nexus.states.media import MediaStatus
from nexus.upkeep import events as stream_of
from nexus.web.api import events as web_events
from nexus.web.http import cookies
from nexus.web.http.bearer import issue_token
from tests.kit.http import (
    NO_CERTIFICATES,
    PATIENCE,
    Caller,
    Event,
    Site,
    Stream,
    data,
    follow,
    problem,
    serve,
)
from tests.kit.media import fail_media, history_of, new_media, share_media, walk_media_to
from tests.kit.sign_ins import cookie_of, link_key

pytestmark = pytest.mark.usefixtures("frequent_looks")


def short(event: Event) -> tuple[str, str]:
    return event.data["media_id"], event.data["event"]


def expected(app: App, *media: UUID) -> list[tuple[str, str]]:
    rows = [row for media_id in media for row in history_of(app.sessions, media_id)]
    return [(str(row.subject_id), row.event) for row in sorted(rows, key=lambda row: (row.tx, row.id))]


def place(event: Event) -> tuple[int, ...]:
    return tuple(map(int, event.id.split("-")))


def test_a_transition_is_sent_as_an_event(app: App, me: Caller) -> None:
    with follow(me) as stream:
        media_id = me.add()
        walk_media_to(app, media_id, MediaStatus.FAILED)
        created, started, failed = stream.take(3)
    assert [event.name for event in (created, started, failed)] == ["media"] * 3
    assert created.data["actor"] == "you"
    at = failed.data.pop("at")
    assert at.endswith("+00:00")
    assert failed.data == {
        "media_id": str(media_id),
        "event": "fail",
        "from_status": "extracting",
        "to_status": "failed",
        "actor": "worker",
        "attempt": 1,
        "error_code": "E_EXTRACTION_FAILED",
    }


def test_a_reader_gets_exactly_the_visible_events_in_order(app: App, me: Caller, site: Site) -> None:
    """From their own and shared libraries, and nobody else's."""
    you = site.caller()
    shared, foreign = you.add(), you.add()
    me.get("/libraries")
    share_media(app, you.user, shared, (me.user, Role.MEMBER))
    with follow(me) as stream:
        mine = me.add()
        for media_id in (mine, foreign, shared):
            walk_media_to(app, media_id, MediaStatus.READY)
        you.add()
        last = me.add()
        wanted = [*expected(app, shared)[1:], *expected(app, mine), *expected(app, last)]
        found = stream.take(len(wanted))
        stream.heartbeat()
    assert sorted(map(short, found)) == sorted(wanted)
    assert [place(event) for event in found] == sorted({place(event) for event in found})
    assert [short(event) for event in found if event.data["media_id"] == str(mine)] == expected(app, mine)
    assert short(found[-1]) == (str(last), "create")


def test_a_removed_member_gets_no_more_events(app: App, me: Caller, site: Site) -> None:
    you = site.caller()
    me.get("/libraries")
    shared = you.add()
    library = share_media(app, you.user, shared, (me.user, Role.MEMBER))
    with follow(me) as stream:
        attempt = walk_media_to(app, shared, MediaStatus.EXTRACTING)
        assert stream.next().data["media_id"] == str(shared)
        data(you.delete(f"/libraries/{library}/members/{me.user}"))
        fail_media(app, shared, attempt)
        own = me.add()
        assert stream.next().data["media_id"] == str(own)


def test_a_new_reader_gets_only_new_events(app: App, me: Caller) -> None:
    me.add()
    with follow(me) as stream:
        media_id = me.add()
        assert short(stream.next()) == (str(media_id), "create")


def test_a_resumed_stream_loses_and_repeats_nothing(
    app: App, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More events than one poll reads, with a cut after every few, while more are written."""
    monkeypatch.setattr(stream_of, "BATCH", 16)
    monkeypatch.setattr(stream_of.events_after, "__defaults__", (16,))
    user = me.user
    me.get("/libraries")
    with follow(me) as stream:
        written: list[UUID] = []

        def write() -> None:
            for _ in range(30):
                written.append(new_media(app, user))
                walk_media_to(app, written[-1], MediaStatus.READY)

        writer = Thread(target=write)
        writer.start()
        found = stream.take(1)
    total = 30 * 5
    for cut in (1, 2, 3, 5, 8, 13, 15, 16, 17, 21, 34):
        with follow(me, last=found[-1].id) as stream:
            found += stream.take(min(cut, total - len(found)))
    with follow(me, last=found[-1].id) as stream:
        found += stream.take(total - len(found))
        writer.join()
        stream.heartbeat()
    assert list(map(short, found)) == expected(app, *written)
    with follow(me, last="0-0") as stream:
        assert stream.take(total) == found


def test_a_stream_cut_before_its_first_event_loses_nothing(app: App, me: Caller) -> None:
    """The greeting has an id, so that a reader who has seen nothing yet loses nothing."""
    me.get("/libraries")
    with me.stream("GET", "/events") as response:
        hello = Stream(response).next()
    media_id = me.add()
    with follow(me, last=hello.id) as stream:
        assert short(stream.next()) == (str(media_id), "create")


def test_transactions_that_commit_out_of_order_lose_no_event(postgres_site: Site) -> None:
    """A transaction that began first and ended last is skipped neither by an open nor by a resumed stream."""
    app, me = postgres_site.app, postgres_site.caller()
    me.get("/libraries")
    with follow(me) as stream, ExitStack() as slow:
        before = me.add()
        seen = stream.next()
        session = slow.enter_context(app.sessions.begin())
        first = add_url(session, me.user, "web_article", "https://example.com/slow", {}).media_id
        second = new_media(app, me.user)
        stream.heartbeat()
        stream.heartbeat()
        with follow(me, last=seen.id) as resumed:
            resumed.heartbeat()
            slow.close()
            assert [short(event) for event in resumed.take(2)] == expected(app, first, second)
        assert [short(event) for event in stream.take(2)] == expected(app, first, second)
    assert short(seen) == (str(before), "create")


class Undone(Exception):
    pass


def test_a_transaction_that_is_rolled_back_delays_no_event(postgres_site: Site) -> None:
    app, me = postgres_site.app, postgres_site.caller()
    me.get("/libraries")
    with follow(me) as stream:
        with suppress(Undone), app.sessions.begin() as session:
            add_url(session, me.user, "web_article", "https://example.com/undone", {})
            later = new_media(app, me.user)
            raise Undone
        assert short(stream.next()) == (str(later), "create")


RUBBISH = (b"", b"rubbish", b"1", b"-", b"1-", b"-1", b"1-2-3", b"1.5-1", b"+1-1", b"1 - 1", b"\xb2-\xb2")
TOO_LARGE = (b"9223372036854775808-0", b"0-9223372036854775808", b"9" * 65 + b"-1")


def test_a_forged_last_event_id_is_refused(me: Caller) -> None:
    for last in RUBBISH + TOO_LARGE:
        answer = me.get("/events", headers={"Last-Event-ID": last})
        assert problem(answer) == (400, "E_INVALID_REQUEST"), last


def test_a_cookie_or_a_token_opens_the_stream(site: Site) -> None:
    user = uuid4()
    cookie = {"Cookie": cookie_of(site.app.sessions, user)}
    by_cookie, by_token = site.anyone(**cookie), site.caller(user)
    with follow(by_cookie) as one, follow(by_token) as other:
        media_id = by_token.add()
        assert short(one.next()) == short(other.next()) == (str(media_id), "create")


def test_the_stream_needs_a_cookie_or_a_token(site: Site) -> None:
    user, settings = uuid4(), site.app.settings
    unauthorized = (401, "E_UNAUTHORIZED")
    tokens = {
        "none": {},
        "rubbish": {"Cookie": f"{cookies.SESSION}=rubbish"},
        "a sign-in link": {"Cookie": f"{cookies.SESSION}={link_key(site.app.sessions, user)}"},
        "a bearer token": {"Cookie": f"{cookies.SESSION}={issue_token(settings, user)}"},
        "a bad token and a good cookie": {
            "Authorization": "Bearer rubbish",
            "Cookie": cookie_of(site.app.sessions, user),
        },
    }
    for name, headers in tokens.items():
        assert problem(site.anyone(**headers).get("/events")) == unauthorized, name


def test_a_cookie_opens_only_the_stream_of_the_api(site: Site) -> None:
    cookie = {"Cookie": cookie_of(site.app.sessions, uuid4())}
    for path in ("/media", "/libraries"):
        assert problem(site.anyone(**cookie).get(path)) == (401, "E_UNAUTHORIZED")


def test_the_stream_names_its_type_and_request_and_is_not_cached(me: Caller) -> None:
    with me.stream("GET", "/events", headers={"X-Request-ID": "mine"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-request-id"] == "mine"
        assert "retry: 1000" in Stream(response).block()


def test_an_idle_stream_sends_heartbeats(me: Caller) -> None:
    with follow(me) as stream:
        for _ in range(2):
            said, _ = stream.block()
            assert said == ": still here"


def test_a_stream_sends_heartbeats_while_others_are_busy(app: App, me: Caller) -> None:
    """Events of others are not sent as heartbeats."""
    busy, enough = uuid4(), Flag()

    def write() -> None:
        while not enough.is_set():
            new_media(app, busy)

    writer = Thread(target=write)
    with follow(me) as stream:
        writer.start()
        try:
            for _ in range(2):
                said, _ = stream.block()
                assert said == ": still here"
        finally:
            enough.set()
            writer.join()


def test_progress_of_an_import_causes_no_queries_for_other_readers(
    app: App, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    real = web_events.Feed.read

    def counted(feed: web_events.Feed, *given: Any) -> Any:
        reads.append(given)
        return real(feed, *given)

    with follow(me) as stream:
        stream.heartbeat()
        monkeypatch.setattr(web_events.Feed, "read", counted)
        for _ in range(100):
            app.imports.listener()
        stream.heartbeat()
    assert reads == []


def test_a_stopping_server_does_not_wait_for_open_streams(app: App) -> None:
    with serve(app) as site:
        client = httpx2.Client(
            base_url=site.url, timeout=PATIENCE, headers=dict(site.caller().headers), verify=NO_CERTIFICATES
        )
        with client, follow(client) as stream:
            site.stop()
            assert ends(stream)


def ends(stream: Stream) -> bool:
    """Whole or cut; it only has to end."""
    try:
        while stream.block():
            pass
    except (httpx2.RemoteProtocolError, httpx2.ReadError):
        pass
    return True


def test_polling_for_events_ends_with_the_last_reader(site: Site, me: Caller) -> None:
    """And starts again with the next reader."""
    for _ in range(3):
        with follow(me) as one, follow(me) as other:
            media_id = me.add()
            assert short(one.next()) == short(other.next()) == (str(media_id), "create")


def test_readers_that_come_and_go_do_not_disturb_others(site: Site, me: Caller) -> None:
    """Connections that are cut while everybody waits for the same news."""
    rounds = 60

    def come_and_go(_: int) -> None:
        with follow(me):
            pass

    with follow(me) as steady, ThreadPoolExecutor(6) as pool:
        leaving = pool.map(come_and_go, range(rounds))
        added = [str(me.add()) for _ in range(rounds)]
        assert [event.data["media_id"] for event in steady.take(rounds)] == added
        list(leaving)
        steady.heartbeat()
