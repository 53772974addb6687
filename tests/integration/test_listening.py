"""How far people have listened, and what they want to hear next: for themselves alone, on all of their devices."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from nexus.app import App
from nexus.db.recordings import heard as heard_table
from nexus.db.recordings import listening as listening_table
from nexus.db.session import Statement
from nexus.errors import InvalidRequest, InvalidState, NotFound
from nexus.libraries import members
from nexus.libraries.access import Role
from nexus.media import deletions
from nexus.media.recordings import heard, listening
from nexus.media.recordings.heard import HeardSoFar
from tests.kit.clock import SetClock
from tests.kit.http import Caller, data, problem
from tests.kit.media import new_media, share_media
from tests.kit.recordings import about, add_recording, transcript

MOMENT = SetClock().time


def listened(app: App, media_id: UUID, user: UUID, seconds: float, minutes: float = 0) -> HeardSoFar:
    """Say where they were so many minutes ago."""
    with app.sessions.begin() as session:
        return heard.report_heard(session, media_id, user, seconds, session.now - timedelta(minutes=minutes))


def where(app: App, media_id: UUID, user: UUID) -> HeardSoFar | None:
    with app.sessions.read() as session:
        return heard.heard_so_far(session, media_id, user)


def enqueue(app: App, user: UUID, *media_ids: UUID, is_next: bool = False) -> None:
    for media_id in media_ids:
        with app.sessions.begin() as session:
            listening.queue_item(session, media_id, user, is_next=is_next)


def queue(app: App, user: UUID) -> list[UUID]:
    with app.sessions.read() as session:
        return [view.row.id for view in listening.list_queue(session, user)]


def after(app: App, user: UUID, media_id: UUID | None) -> UUID | None:
    with app.sessions.read() as session:
        found = listening.next_queued(session, user, media_id)
    return None if found is None else found.row.id


def video(app: App, user: UUID) -> UUID:
    return new_media(app, user, f"https://harbour.example/{uuid4().hex}", "video")


def rows(app: App) -> set[tuple[str, UUID]]:
    """The tables that hold something, and whose that is."""
    with app.sessions.read() as session:
        return {
            (table.name, row.user_id)
            for table in (heard_table, listening_table)
            for row in session.all(Statement(select(table)))
        }


@pytest.fixture
def user() -> UUID:
    return uuid4()


def test_the_device_that_was_there_last_decides_where_a_listener_is(app: App, user: UUID) -> None:
    media_id = video(app, user)
    assert where(app, media_id, user) is None
    assert listened(app, media_id, user, 100.5, minutes=5).seconds == 100.5
    assert listened(app, media_id, user, 20.0, minutes=10).seconds == 100.5
    assert listened(app, media_id, user, 7.0, minutes=1).seconds == 7.0
    assert where(app, media_id, user) == (7.0, MOMENT - timedelta(minutes=1))


def test_no_device_is_in_the_future(app: App, user: UUID) -> None:
    media_id = video(app, user)
    assert listened(app, media_id, user, 5.0, minutes=-60).at == MOMENT
    assert listened(app, media_id, user, 6.0).seconds == 6.0


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_at_the_end_of_all_time_breaks_nothing(app: App, me: Caller, at: str) -> None:
    address = f"/media/{video(app, me.user)}/heard"
    answer = me.put(address, json={"seconds": 1, "at": at})
    assert answer.status_code in {200, 400}


def test_where_a_listener_is_stays_with_them(app: App, user: UUID) -> None:
    media_id, other = video(app, user), uuid4()
    listened(app, media_id, user, 5.0)
    with pytest.raises(NotFound):
        where(app, media_id, other)
    with pytest.raises(NotFound):
        listened(app, media_id, other, 9.0)
    share_media(app, user, media_id, (other, Role.MEMBER))
    assert where(app, media_id, other) is None
    listened(app, media_id, other, 9.0)
    assert where(app, media_id, user) == (5.0, MOMENT)


def test_the_queue_keeps_the_order_of_its_owner(app: App, user: UUID) -> None:
    one, two, three, four = (video(app, user) for _ in range(4))
    enqueue(app, user, one, two, three, one)
    assert queue(app, user) == [one, two, three]
    enqueue(app, user, four, is_next=True)
    enqueue(app, user, three, is_next=True)
    assert queue(app, user) == [three, four, one, two]
    with app.sessions.begin() as session:
        listening.move_queued(session, three, user, 2)
    assert queue(app, user) == [four, one, three, two]
    with app.sessions.begin() as session:
        listening.move_queued(session, four, user, 99)
        assert listening.unqueue_item(session, one, user)
        assert not listening.unqueue_item(session, one, user)
    assert queue(app, user) == [three, two, four]
    assert queue(app, uuid4()) == []


def test_the_next_item_is_the_one_behind_the_present_one(app: App, user: UUID) -> None:
    one, two, elsewhere = (video(app, user) for _ in range(3))
    assert after(app, user, None) is None
    enqueue(app, user, one, two)
    assert after(app, user, one) == two
    assert after(app, user, two) == one
    assert after(app, user, elsewhere) == one
    assert after(app, user, None) == one


def test_only_what_can_be_played_and_read_is_queued(app: App, user: UUID) -> None:
    article, theirs = new_media(app, user), video(app, uuid4())
    with pytest.raises(InvalidState):
        enqueue(app, user, article)
    with pytest.raises(NotFound):
        enqueue(app, user, theirs)
    with pytest.raises(NotFound), app.sessions.begin() as session:
        listening.move_queued(session, theirs, user, 0)
    assert queue(app, user) == []


def test_a_queue_has_an_end(app: App, user: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_QUEUED", 2)
    one, two, three = (video(app, user) for _ in range(3))
    enqueue(app, user, one, two, one)
    with pytest.raises(InvalidRequest):
        enqueue(app, user, three)
    assert queue(app, user) == [one, two]


def test_what_nobody_can_read_any_more_is_forgotten(app: App, user: UUID) -> None:
    media_id, guest = video(app, user), uuid4()
    library = share_media(app, user, media_id, (guest, Role.MEMBER))
    for one in (user, guest):
        enqueue(app, one, media_id)
        listened(app, media_id, one, 5.0)
    with app.sessions.begin() as session:
        members.remove_member(session, library, guest, guest)
    assert rows(app) == {("heard", user), ("listening", user)}
    deletions.delete_media_and_files(app.sessions, app.files, user, media_id)
    assert rows(app) == set()


def test_the_api_tells_and_keeps_where_a_listener_is(app: App, me: Caller, you: Caller) -> None:
    media_id = add_recording(app, me.user, about(None), transcript())
    assert data(me.get(f"/media/{media_id}/heard"))["seconds"] == 0
    put = me.put(f"/media/{media_id}/heard", json={"seconds": 12.5, "at": MOMENT.isoformat()})
    assert data(put)["at"] == MOMENT.isoformat()
    assert data(me.get(f"/media/{media_id}/heard"))["seconds"] == 12.5
    assert problem(you.get(f"/media/{media_id}/heard")) == (404, "E_NOT_FOUND")
    assert problem(you.put(f"/media/{media_id}/heard", json={"seconds": 1.0})) == (404, "E_NOT_FOUND")


@pytest.mark.parametrize("seconds", [-1, "5", None, 1e12, True])
def test_a_place_that_is_none_is_refused(app: App, me: Caller, seconds: object) -> None:
    media_id = video(app, me.user)
    assert me.put(f"/media/{media_id}/heard", json={"seconds": seconds}).status_code == 400


def test_the_api_keeps_a_queue(app: App, me: Caller, you: Caller) -> None:
    one, two = str(video(app, me.user)), str(video(app, me.user))
    for media_id in (one, two):
        data(me.post("/listening", json={"media_id": media_id}))
    data(me.put(f"/listening/{two}", json={"position": 0}))
    assert [item["id"] for item in data(me.get("/listening"))["items"]] == [two, one]
    assert data(you.get("/listening"))["items"] == []
    assert problem(you.post("/listening", json={"media_id": one})) == (404, "E_NOT_FOUND")
    assert problem(you.put(f"/listening/{one}", json={"position": 0})) == (404, "E_NOT_FOUND")
    data(me.delete(f"/listening/{two}"))
    data(me.delete(f"/listening/{two}"))
    assert [item["id"] for item in data(me.get("/listening"))["items"]] == [one]
    article = str(me.add())
    assert problem(me.post("/listening", json={"media_id": article})) == (409, "E_INVALID_STATE")
