"""History shows what changes no state: refreshes, entered texts and shares, and who did them."""

from __future__ import annotations

from uuid import UUID

import pytest

from nexus.app import App
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media import refresh
from nexus.media.runner import Outcome
from nexus.queue.local import LocalQueue
from nexus.states.media import Kind
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data, problem
from tests.kit.sign_ins import cookie_of
from tests.kit.work import extract_item, refresh_item

URL = "https://example.com/a-page"


@pytest.fixture(autouse=True)
def changing() -> None:
    """Every attempt finds another text."""
    found = iter(range(100))

    def extract(source: Source) -> Extraction:
        return Extraction.plain("A title", f"The text number {next(found)}.")

    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract


@pytest.fixture
def page(app: App, me: Caller) -> UUID:
    media_id = me.add(URL)
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    return media_id


def refreshed(app: App, clock: SetClock, media_id: UUID, user: UUID) -> None:
    clock.forward(minutes=1)
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    assert str(refresh_item(app.tools, media_id)).startswith("revision ")


def changes(caller: Caller, media_id: UUID) -> list[tuple[str, str, str | None]]:
    found = data(caller.get(f"/media/{media_id}/changes"))["items"]
    return [(one["event"], one["actor"], one["library"]) for one in found]


def test_refreshes_and_entered_texts_are_told(app: App, clock: SetClock, me: Caller, page: UUID) -> None:
    refreshed(app, clock, page, me.user)
    clock.forward(minutes=1)
    data(me.post(f"/media/{page}/text", json={"text": "My own text."}))
    assert changes(me, page) == [("refresh", "you", None), ("enter_text", "you", None)]


def test_what_others_do_is_told_inside_shared_libraries_only(
    app: App, clock: SetClock, site: Site, me: Caller, page: UUID
) -> None:
    stranger, friend = site.caller(), site.caller()
    stranger.add(URL)
    refreshed(app, clock, page, stranger.user)
    assert changes(me, page) == []
    shared = me.library("Shared")
    me.let_in(shared, friend.user)
    clock.forward(minutes=1)
    data(me.post(f"/libraries/{shared}/media", json={"media_id": str(page)}))
    friend.add(URL)
    refreshed(app, clock, page, friend.user)
    data(friend.post(f"/media/{page}/text", json={"text": "Of the friend alone."}))
    clock.forward(minutes=1)
    own = me.library("Private")
    data(me.post(f"/libraries/{own}/media", json={"media_id": str(page)}))
    together = [("item_shared", "you", "Shared"), ("refresh", "someone", None)]
    assert changes(me, page) == [*together, ("item_shared", "you", "Private")]
    assert set(changes(friend, page)) == {
        ("item_shared", "someone", "Shared"),
        ("refresh", "you", None),
        ("enter_text", "you", None),
    }
    assert problem(site.caller().get(f"/media/{page}/changes")) == (404, "E_NOT_FOUND")


def test_what_a_friend_did_before_sharing_stays_untold(
    app: App, clock: SetClock, site: Site, me: Caller, page: UUID
) -> None:
    friend = site.caller()
    friend.add(URL)
    refreshed(app, clock, page, friend.user)
    clock.forward(minutes=1)
    shared = me.library("Shared")
    me.let_in(shared, friend.user)
    data(me.post(f"/libraries/{shared}/media", json={"media_id": str(page)}))
    assert changes(me, page) == [("item_shared", "you", "Shared")]
    refreshed(app, clock, page, friend.user)
    assert changes(me, page) == [("item_shared", "you", "Shared"), ("refresh", "someone", None)]


def test_the_page_says_who_did_what(app: App, clock: SetClock, site: Site, me: Caller, page: UUID) -> None:
    refreshed(app, clock, page, me.user)
    shared = me.library("Research")
    data(me.post(f"/libraries/{shared}/media", json={"media_id": str(page)}))
    data(me.patch("/me", json={"name": "Ann Lee"}))
    browser = site.anyone(Cookie=cookie_of(app.sessions, me.user))
    shown = " ".join(browser.get(f"/items/{page}").text.split())
    assert "Refreshed: the text has changed" in shown
    assert "Added to Research" in shown
    assert "by Ann Lee (you)" in shown
