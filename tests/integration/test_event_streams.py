"""Many streams at once: what they cost, how they move on, and what holds them up."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import make_url, text

from nexus.app import App
from nexus.media.add import add_url
from nexus.states.job import JobStatus
from nexus.states.media import MediaStatus
from nexus.upkeep import events as stream_of
from nexus.upkeep.events import StreamPlace
from nexus.web.api import events as web_events
from tests.kit.http import Caller, Site, Stream, follow, problem
from tests.kit.jobs import new_job, walk_job_to
from tests.kit.media import new_media, walk_media_to
from tests.kit.waiting import eventually

pytestmark = pytest.mark.usefixtures("frequent_looks")


def dsn(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def next_id(stream: Stream) -> StreamPlace:
    """The place that the next heartbeat names."""
    while not (lines := stream.block())[0].startswith(":"):
        pass
    return StreamPlace.parse(lines[1].removeprefix("id: "))


def test_idle_streams_cost_no_query_of_their_own(
    app: App, site: Site, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each asked the database whenever anything happened to anybody."""
    own: list[Any] = []
    looks: list[set[UUID]] = []
    real_read, real_look = web_events.Feed.read, stream_of.look

    def read(feed: web_events.Feed, *given: Any) -> Any:
        own.append(given)
        return real_read(feed, *given)

    def look(session: Any, viewers: set[UUID], place: StreamPlace) -> Any:
        looks.append(viewers)
        return real_look(session, viewers, place)

    with ExitStack() as stack:
        idle = [site.caller() for _ in range(5)]
        streams = [stack.enter_context(follow(caller)) for caller in idle]
        mine = stack.enter_context(follow(me))
        for stream in streams:
            stream.heartbeat()  # a reader who came during a look has caught up with it
        monkeypatch.setattr(web_events.Feed, "read", read)
        monkeypatch.setattr(stream_of, "look", look)
        added = [str(me.add()) for _ in range(10)]
        assert [event.data["media_id"] for event in mine.take(10)] == added
        for stream in streams:
            stream.heartbeat()
    assert own == []
    assert {caller.user for caller in (me, *idle)} in looks


def test_the_place_of_an_idle_reader_moves_on(app: App, site: Site, me: Caller) -> None:
    """So a reader who reconnects later need not search what others did."""
    you = site.caller()
    with follow(me) as stream:
        before = next_id(stream)
        you.add()
        while (place := next_id(stream)) == before:
            pass
    with app.sessions.read() as session:
        assert place == stream_of.newest_place(session) > before
    media_id = me.add()
    with follow(me, last=str(place)) as stream:
        assert stream.next().data["media_id"] == str(media_id)


def test_a_reader_too_far_behind_loses_nothing(app: App, me: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_events, "MOST_WAITING", 3)
    me.get("/libraries")
    with follow(me) as stream:
        added = [new_media(app, me.user) for _ in range(20)]
        for media_id in added:
            walk_media_to(app, media_id, MediaStatus.FAILED)
        found = stream.take(60)
    assert len({event.id for event in found}) == 60
    assert [event.id for event in found] == sorted((event.id for event in found), key=StreamPlace.parse)


def all_events(app: App, viewer: UUID) -> list[Any]:
    place, found = StreamPlace(0, 0), []
    with app.sessions.read() as session:
        until = stream_of.newest_place(session)
        while place < until:
            passage = stream_of.events_after(session, viewer, place, until)
            assert passage.place > place
            place, found = passage.place, [*found, *passage.rows]
    return found


@pytest.mark.parametrize(("stretch", "batch"), [(1, 1), (3, 2), (7, 500), (10_000, 3)])
def test_a_long_history_is_read_the_same_by_both_ways(
    stretch: int, batch: int, app: App, me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of everybody's events, or by what the reader may see."""
    me.get("/libraries")
    somebody = uuid4()
    for owner in (me.user, somebody, somebody, me.user, somebody):
        walk_media_to(app, new_media(app, owner), MediaStatus.FAILED)
        walk_job_to(app, new_job(app, owner), owner, JobStatus.SAVED)
    expected = all_events(app, me.user)
    monkeypatch.setattr(stream_of, "STRETCH", stretch)
    monkeypatch.setattr(stream_of.events_after, "__defaults__", (batch,))
    assert {row.subject for row in expected} == {"media", "job", "story"}
    assert all_events(app, me.user) == expected


def test_nothing_is_lost_while_many_write_at_once(postgres_site: Site) -> None:
    """Transactions overlap and commit in any order, and streams are cut and resumed in between."""
    app, me = postgres_site.app, postgres_site.caller()
    me.get("/libraries")

    def write(number: int) -> list[str]:
        made = []
        for _ in range(15):
            with app.sessions.begin() as session:
                for _ in range(1 + number % 3):
                    url = f"https://example.com/{uuid4().hex}"
                    made.append(str(add_url(session, me.user, "web_article", url, {}).media_id))
        return made

    total = sum(15 * (1 + number % 3) for number in range(6))
    with ThreadPoolExecutor(6) as pool:
        with follow(me) as stream:
            writing = [pool.submit(write, number) for number in range(6)]
            found = stream.take(5)
        while len(found) < total:
            with follow(me, last=found[-1].id) as stream:
                found += stream.take(min(17, total - len(found)))
        made = [media_id for written in writing for media_id in written.result()]
    assert sorted(event.data["media_id"] for event in found) == sorted(made)


def test_transactions_of_other_databases_hold_no_events_back(
    postgres_site: Site, postgres_server_url: str
) -> None:
    app, me = postgres_site.app, postgres_site.caller()
    with psycopg.connect(dsn(postgres_server_url)) as other:
        assert other.info.dbname != make_url(app.settings.database).database
        other.execute("SELECT pg_current_xact_id()")
        with follow(me) as stream:
            media_id = me.add()
            assert stream.next().data["media_id"] == str(media_id)
        other.rollback()


def test_an_unprivileged_database_user_sees_which_transactions_are_open(
    postgres_site: Site, clean_postgres: str
) -> None:
    """A number that is hidden would let events of that transaction be skipped."""
    admin = psycopg.connect(dsn(clean_postgres), autocommit=True)
    admin.execute("DROP ROLE IF EXISTS nexus_plain")
    admin.execute("CREATE ROLE nexus_plain LOGIN")
    plain = make_url(clean_postgres).set(username="nexus_plain").render_as_string(hide_password=False)
    with admin, psycopg.connect(dsn(plain), autocommit=True) as looking:
        with admin.transaction():
            row = admin.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
            assert looking.execute(stream_of._OLDEST_OPEN).fetchone() == row
        settled = looking.execute(stream_of._OLDEST_OPEN).fetchone()
        assert settled is not None
        assert row is not None
        assert settled > row
    with psycopg.connect(dsn(clean_postgres), autocommit=True) as again:
        again.execute("DROP ROLE nexus_plain")


def test_a_restored_dump_replays_nothing(postgres_site: Site) -> None:
    """Its rows have the numbers of transactions that this server reaches only later."""
    app, me = postgres_site.app, postgres_site.caller()
    media_id = me.add()
    walk_media_to(app, media_id, MediaStatus.FAILED)
    with app.sessions.engine.begin() as connection:
        connection.execute(text("UPDATE history SET tx = pg_current_xact_id()::text::bigint + 20 + id"))
    with follow(me) as stream:
        for _ in range(60):
            with app.sessions.engine.begin() as connection:
                connection.execute(text("SELECT pg_current_xact_id()"))
        latest = me.add()
        assert stream.next().data["media_id"] == str(latest)
        stream.heartbeat()


def test_a_user_has_only_so_many_streams(app: App, site: Site, me: Caller) -> None:
    most = app.settings.streams_per_user
    with ExitStack() as stack:
        first = ExitStack()
        first.enter_context(follow(me))
        for _ in range(most - 1):
            stack.enter_context(follow(me))
        refused = stack.enter_context(me.stream("GET", "/events"))
        assert refused.status_code == 429  # otherwise it has no end to read to
        refused.read()
        assert problem(refused) == (429, "E_RATE_LIMITED")
        assert f"{most} places" in refused.json()["error"]["message"]
        with follow(site.caller()) as other:
            other.heartbeat()
        first.close()
        eventually(lambda: opens(me), "the place of a stream that was closed is free")


def opens(caller: Caller) -> bool:
    with caller.stream("GET", "/events") as response:
        return response.status_code == 200
