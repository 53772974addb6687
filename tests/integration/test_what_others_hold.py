"""Nobody learns what others hold: an item looks the same whether or not a stranger had it before."""

from typing import Any
from uuid import UUID

import pytest

from nexus.app import App
from nexus.media.lifecycle import retry_media
from nexus.states.media import MediaStatus
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data
from tests.kit.media import new_file, new_media, share_media, start_extraction, walk_media_to
from tests.kit.sign_ins import cookie_of

URL = "https://example.com/an-article"
DATES = ("created_at", "updated_at", "processing_started_at", "processing_completed_at", "failed_at")


def submit(caller: Caller) -> dict[str, Any]:
    done: dict[str, Any] = data(caller.post("/media/url", json={"kind": "web_article", "url": URL}))
    return done


def events(caller: Caller, media_id: object, **params: object) -> list[tuple[str, str, str | None]]:
    found = data(caller.get(f"/media/{media_id}/history", params=params))["items"]
    return [(event["event"], event["actor"], event["actor_name"]) for event in found]


def test_created_tells_whether_an_item_is_new_to_the_caller(me: Caller, you: Caller) -> None:
    assert submit(me)["created"] is True
    assert submit(you) == {**submit(me), "created": True}
    assert submit(you)["created"] is False


def test_nobody_gets_an_unlisted_video_by_guessing_its_number(me: Caller, you: Caller) -> None:
    mine = me.add("https://vimeo.com/76979871/8272103f6e", "video")
    guessed = you.add("https://vimeo.com/76979871", "video")
    assert guessed != mine
    assert "8272103f6e" not in you.get(f"/media/{guessed}").text
    assert you.add("https://player.vimeo.com/video/76979871?h=8272103f6e", "video") == mine


def test_an_item_in_a_shared_library_is_not_new(app: App, me: Caller, you: Caller) -> None:
    media_id = UUID(submit(me)["media_id"])
    you.get("/libraries")
    data(me.let_in(str(share_media(app, me.user, media_id)), you.user))
    assert submit(you)["created"] is False


@pytest.mark.parametrize("status", [MediaStatus.READY, MediaStatus.FAILED])
def test_dates_are_the_callers_own(
    app: App, me: Caller, you: Caller, clock: SetClock, status: MediaStatus
) -> None:
    media_id = UUID(submit(me)["media_id"])
    walk_media_to(app, media_id, status)
    begun = clock().isoformat()
    clock.forward(days=30)
    now = clock().isoformat()
    submit(you)
    if status is MediaStatus.FAILED:  # which adding it has retried
        walk_media_to(app, media_id, MediaStatus.FAILED)
    for shown in (data(you.get(f"/media/{media_id}")), data(you.get("/media"))["items"][0]):
        assert {shown[name] for name in DATES if shown[name]} == {now}
    mine = data(me.get(f"/media/{media_id}"))
    assert mine["created_at"] == begun


def test_no_date_of_a_stranger_is_on_the_page_of_an_item(
    app: App, site: Site, me: Caller, you: Caller, clock: SetClock
) -> None:
    media_id = UUID(submit(me)["media_id"])
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    clock.forward(days=30)
    submit(you)
    cookie = cookie_of(app.sessions, you.user)
    seen = you.get(f"/items/{media_id}", headers={"Authorization": "", "Cookie": cookie}).text
    facts = seen[seen.index('id="facts"') : seen.index("<dt>Text")]
    assert "31 Jan 2026" in facts
    assert "1 Jan 2026" not in facts.replace("31 Jan 2026", "")


def test_the_requested_address_does_not_tell_who_was_first(me: Caller, you: Caller) -> None:
    media_id = submit(me)["media_id"]
    submit(you)
    first, second = (data(who.get(f"/media/{media_id}")) for who in (me, you))
    assert first == second


def test_history_begins_when_the_caller_got_the_item(
    app: App, me: Caller, you: Caller, clock: SetClock
) -> None:
    media_id = UUID(submit(me)["media_id"])
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    clock.forward(days=1)
    submit(you)
    assert events(me, media_id) == [
        ("create", "you", None),
        ("start", "worker", None),
        ("readable", "worker", None),
    ]
    assert events(you, media_id) == [("create", "you", None)]
    [entry] = data(you.get(f"/media/{media_id}/history"))["items"]
    assert (entry["at"], entry["from_status"], entry["to_status"]) == (clock().isoformat(), None, "pending")


def test_what_a_stranger_did_is_not_in_history(app: App, me: Caller, you: Caller) -> None:
    media_id = UUID(submit(me)["media_id"])
    submit(you)
    walk_media_to(app, media_id, MediaStatus.FAILED)
    with app.sessions.begin() as session:
        retry_media(session, media_id, you.user)
    common = [("start", "worker", None), ("fail", "worker", None)]
    assert events(me, media_id) == [("create", "you", None), *common]
    assert events(you, media_id) == [("create", "you", None), *common, ("retry", "you", None)]


def test_what_a_member_did_is_in_history_under_their_name(app: App, me: Caller, you: Caller) -> None:
    """And under no name if they have none."""
    media_id = UUID(submit(me)["media_id"])
    library = str(share_media(app, me.user, media_id))
    for caller in (me, you):
        caller.get("/libraries")
    data(me.let_in(library, you.user, "admin"))
    walk_media_to(app, media_id, MediaStatus.FAILED)
    with app.sessions.begin() as session:
        retry_media(session, media_id, you.user)
    assert events(me, media_id)[-1] == ("retry", "someone", None)
    data(you.patch("/me", json={"name": "Ann Lee"}))
    assert events(me, media_id)[-1] == ("retry", "someone", "Ann Lee")
    assert events(you, media_id)[-1] == ("retry", "you", "Ann Lee")
    data(me.delete(f"/libraries/{library}/members/{you.user}"))
    assert [event for event, _, _ in events(me, media_id)] == ["create", "start", "fail"]


def test_a_library_shared_with_somebody_is_not_enough_if_it_does_not_hold_the_item(
    app: App, me: Caller, you: Caller
) -> None:
    media_id = UUID(submit(me)["media_id"])
    submit(you)
    data(me.let_in(me.library(), you.user))
    walk_media_to(app, media_id, MediaStatus.FAILED)
    with app.sessions.begin() as session:
        retry_media(session, media_id, you.user)
    assert "someone" not in {actor for _, actor, _ in events(me, media_id)}


def test_history_of_a_late_holder_is_read_page_by_page(
    app: App, me: Caller, you: Caller, clock: SetClock
) -> None:
    media_id = UUID(submit(me)["media_id"])
    clock.forward(days=1)
    submit(you)
    start_extraction(app, media_id)
    seen, cursor = [], None
    while True:
        part = data(
            you.get(
                f"/media/{media_id}/history", params={"limit": 1, **({"cursor": cursor} if cursor else {})}
            )
        )
        seen += [event["event"] for event in part["items"]]
        cursor = part["next_cursor"]
        if cursor is None:
            break
    assert seen == ["create", "start"]


def test_only_its_uploader_is_told_so(app: App, me: Caller, you: Caller) -> None:
    """What a member sees tells admins and the uploader apart."""
    media_id = new_file(app, me.user, "a" * 64)
    you.get("/libraries")
    data(me.let_in(str(share_media(app, me.user, media_id)), you.user, "admin"))
    assert [data(who.get(f"/media/{media_id}"))["is_uploader"] for who in (me, you)] == [True, False]
    assert data(me.get(f"/media/{new_media(app, me.user)}"))["is_uploader"] is False
