"""Nobody learns from the event stream what strangers hold or do, whichever way it is read."""

from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.libraries import members
from nexus.libraries.access import Role, ensure_user
from nexus.media import history
from nexus.media.add import add_url
from nexus.media.feeds.subscribing import Wishes, change_subscription, subscribe_unseen
from nexus.media.lifecycle import retry_media
from nexus.states.media import MediaStatus
from nexus.upkeep import events
from nexus.upkeep.events import StreamPlace
from tests.kit.clock import SetClock
from tests.kit.http import Caller, data, follow
from tests.kit.media import fail_media, new_file, share_media, walk_media_to

URL = "https://example.com/an-article"
START = StreamPlace(0, 0)
Told = list[tuple[str, UUID | None]]


def person(actor: str) -> UUID | None:
    return UUID(actor) if len(actor) == 36 else None


def told(app: App, viewer: UUID, monkeypatch: pytest.MonkeyPatch) -> Told:
    """What the viewer is told of items: as news, as somebody who comes back, and by way of their own items."""
    with app.sessions.read() as session:
        until = events.newest_place(session)
        live = events.look(session, [viewer], START).rows.get(viewer, [])
        resumed = events.events_after(session, viewer, START, until).rows
        with monkeypatch.context() as few:
            few.setattr(events, "STRETCH", 1)
            few.setattr(events, "SPARSE", 0)
            own = events.events_after(session, viewer, START, until).rows
    assert live == resumed == own
    return [(row.event, person(row.actor)) for row in live]


def written(app: App, viewer: UUID, media_id: UUID) -> Told:
    """What the page of an item says of its history."""
    with app.sessions.read() as session:
        rows = [known.entry for known in history.events(session, media_id, viewer).items]
    return [(row.event, person(row.actor)) for row in rows if row.id]


def someone(app: App) -> UUID:
    with app.sessions.begin() as session:
        ensure_user(session, user := uuid4())
    return user


def add(app: App, user: UUID) -> UUID:
    with app.sessions.begin() as session:
        return add_url(session, user, "web_article", URL, {}).media_id


def retry(app: App, user: UUID, media_id: UUID) -> None:
    with app.sessions.begin() as session:
        retry_media(session, media_id, user)


def test_a_late_holder_is_told_nothing_from_before(
    app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, stranger = someone(app), someone(app)
    media_id = add(app, stranger)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    retry(app, stranger, media_id)
    clock.forward(days=1)
    add(app, me)
    assert told(app, me, monkeypatch) == written(app, me, media_id) == []
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    assert told(app, me, monkeypatch) == written(app, me, media_id) == [("start", None), ("readable", None)]


def test_what_a_stranger_does_with_the_same_item_is_not_told(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, stranger = someone(app), someone(app)
    media_id = add(app, me)
    add(app, stranger)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    retry(app, stranger, media_id)
    mine: Told = [("create", me), ("start", None), ("fail", None)]
    assert told(app, me, monkeypatch) == written(app, me, media_id) == mine


def test_the_first_holder_is_told_what_a_worker_with_a_late_clock_did(
    app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = someone(app)
    media_id = add(app, me)
    attempt = walk_media_to(app, media_id, MediaStatus.EXTRACTING)
    clock.forward(seconds=-3)
    fail_media(app, media_id, attempt)
    everything: Told = [("create", me), ("start", None), ("fail", None)]
    assert told(app, me, monkeypatch) == written(app, me, media_id) == everything


def test_what_a_member_does_inside_a_shared_library_is_told(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, member = someone(app), someone(app)
    media_id = add(app, me)
    library = share_media(app, me, media_id, (member, Role.ADMIN))
    walk_media_to(app, media_id, MediaStatus.FAILED)
    retry(app, member, media_id)
    everything: Told = [("create", me), ("start", None), ("fail", None), ("retry", member)]
    assert told(app, me, monkeypatch) == written(app, me, media_id) == everything
    with app.sessions.begin() as session:
        members.remove_member(session, library, member, me)
    assert told(app, me, monkeypatch) == written(app, me, media_id) == everything[:-1]


def test_what_a_member_did_with_their_own_copy_before_is_not_told(
    app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before the library held the item, nor before they were a member."""
    me, member = someone(app), someone(app)
    media_id = add(app, me)
    add(app, member)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    retry(app, member, media_id)
    clock.forward(days=1)
    share_media(app, me, media_id, (member, Role.ADMIN))
    before: Told = [("create", me), ("start", None), ("fail", None)]
    assert told(app, me, monkeypatch) == written(app, me, media_id) == before
    walk_media_to(app, media_id, MediaStatus.FAILED)
    retry(app, member, media_id)
    after: Told = [*before, *before[1:], ("retry", member)]
    assert told(app, me, monkeypatch) == written(app, me, media_id) == after


def test_a_member_is_told_of_a_shared_file_from_the_day_it_was_shared(
    app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, member = someone(app), someone(app)
    media_id = new_file(app, me, "a" * 64)
    clock.forward(days=1)
    share_media(app, me, media_id, (member, Role.MEMBER))
    walk_media_to(app, media_id, MediaStatus.EXTRACTING)
    assert told(app, member, monkeypatch) == written(app, member, media_id) == [("start", None)]


@pytest.mark.usefixtures("frequent_looks")
def test_a_stream_from_the_beginning_has_nothing_of_a_stranger(
    app: App, me: Caller, you: Caller, clock: SetClock
) -> None:
    media_id = add(app, someone(app))
    walk_media_to(app, media_id, MediaStatus.FAILED)
    clock.forward(days=1)
    own = me.add()
    me.post("/media/url", json={"kind": "web_article", "url": URL})
    you.get("/libraries")
    with follow(me, last="0-0") as stream:
        created, retried = stream.take(2)
        stream.heartbeat()
    assert (created.data["media_id"], created.data["actor"]) == (str(own), "you")
    assert (retried.data["media_id"], retried.data["event"], retried.data["actor"]) == (
        str(media_id),
        "retry",
        "you",
    )


def test_the_states_of_a_subscription_are_told_to_the_members_of_its_library(
    app: App, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, member, stranger = someone(app), someone(app), someone(app)
    library = share_media(app, me, add(app, me), (member, Role.MEMBER))
    with app.sessions.begin() as session:
        made = subscribe_unseen(session, me, "https://example.com/feed", Wishes(), library)
        assert made is not None
    with app.sessions.begin() as session:
        change_subscription(session, made.id, me, is_paused=True)
    for viewer in (me, member):
        assert told(app, viewer, monkeypatch)[-2:] == [("create", me), ("pause", me)]
    assert told(app, stranger, monkeypatch) == []
    with app.sessions.begin() as session:
        members.remove_member(session, library, member, me)
    assert told(app, member, monkeypatch) == []


def test_an_event_names_the_subscription_that_it_is_about(app: App, me: Caller) -> None:
    with app.sessions.begin() as session:
        made = subscribe_unseen(session, me.user, "https://example.com/feed", Wishes())
    assert made is not None
    with follow(me) as stream:
        data(me.patch(f"/subscriptions/{made.id}", json={"status": "paused"}))
        event = stream.next()
    assert (event.name, event.data["subscription_id"]) == ("subscription", str(made.id))
    assert (event.data["event"], event.data["to_status"], event.data["actor"]) == ("pause", "paused", "you")
    assert "media_id" not in event.data
