"""Subscriptions over HTTP: the whole way, who may do what, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from nexus.app import App, kernel_for
from nexus.media.feeds.polling import POLL
from nexus.media.queries import cursor_after
from nexus.queue import Work
from tests.kit.clock import SetClock
from tests.kit.feeds import RSS, Story, dated, episode, rss
from tests.kit.http import Caller, Site, data, problem
from tests.kit.servers.web_pages import Answer, Pages

Poll = Callable[[dict[str, Any]], str | None]


@pytest.fixture
def poll(app: App) -> Poll:
    return lambda made: kernel_for(app.tools).run(Work(POLL, UUID(made["id"])))


def subscribed(me: Caller, pages: Pages, *stories: Story, **wishes: Any) -> dict[str, Any]:
    pages["/feed"] = Answer(rss(stories), RSS)
    made: dict[str, Any] = data(me.post("/subscriptions", json={"url": pages.url("/feed"), **wishes}))
    return made


def items_of(me: Caller, made: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = data(me.get(f"/subscriptions/{made['id']}/items", params=params))["items"]
    return found


def test_the_whole_way_of_a_podcast(me: Caller, pages: Pages, poll: Poll, clock: SetClock) -> None:
    made = subscribed(me, pages, *(episode(f"e{day}", date=dated(day)) for day in (3, 2, 1)), takes_first=1)
    assert (made["title"], made["is_podcast"], made["takes_new"]) == ("The feed", True, True)
    assert (made["status"], made["may_change"], made["items"]) == ("active", True, 0)
    poll(made)
    found = items_of(me, made)
    assert [(one["title"], one["taken_at"] is not None) for one in found] == [
        ("e3", True),
        ("e2", False),
        ("e1", False),
    ]
    assert [one["kind"] for one in found] == ["podcast_episode"] * 3
    assert [one["title"] for one in items_of(me, made, state="previews")] == ["e2", "e1"]
    taken = data(me.post(f"/subscriptions/{made['id']}/items/{found[1]['id']}/take"))
    assert taken["created"]
    again = data(me.post(f"/subscriptions/{made['id']}/items/{found[1]['id']}/take"))
    assert (again["media_id"], again["created"]) == (taken["media_id"], False)
    assert data(me.post(f"/subscriptions/{made['id']}/take")) == {"taken": 1, "left": 0}
    assert {one["title"] for one in data(me.get("/media"))["items"]} == {"e1", "e2", "e3"}
    data(me.delete(f"/subscriptions/{made['id']}", params={"items": "remove"}))
    assert data(me.get("/media"))["items"] == []
    assert problem(me.get(f"/subscriptions/{made['id']}")) == (404, "E_NOT_FOUND")


def test_unsubscribing_keeps_what_was_brought(me: Caller, pages: Pages, poll: Poll) -> None:
    made = subscribed(me, pages, episode("e1"))
    poll(made)
    data(me.delete(f"/subscriptions/{made['id']}"))
    assert [one["title"] for one in data(me.get("/media"))["items"]] == ["e1"]


def test_what_the_library_had_before_stays_when_items_are_removed(
    me: Caller, pages: Pages, poll: Poll, clock: SetClock
) -> None:
    url = pages.url("/story")
    data(me.post("/media/url", json={"kind": "web_article", "url": url}))
    clock.forward(minutes=1)
    made = subscribed(me, pages, Story("one", link=url), takes_new=True)
    poll(made)
    assert items_of(me, made)[0]["media_id"] is not None
    data(me.delete(f"/subscriptions/{made['id']}", params={"items": "remove"}))
    assert len(data(me.get("/media"))["items"]) == 1


def test_a_page_leads_to_its_feed_and_a_preview_keeps_nothing(me: Caller, pages: Pages) -> None:
    pages["/"] = Answer(
        b'<html><head><title>T</title><link rel="alternate" type="application/rss+xml" href="/a.xml">'
        b'<link rel="alternate" type="application/rss+xml" href="/b.xml" title="B"></head></html>'
    )
    pages["/a.xml"] = Answer(rss([Story(str(number)) for number in range(20)], title="A"), RSS)
    found = data(me.post("/feeds/preview", json={"url": pages.url("/")}))
    assert (found["title"], found["url"], len(found["items"])) == ("A", pages.url("/a.xml"), 10)
    assert found["others"] == [{"url": pages.url("/b.xml"), "title": "B"}]
    assert data(me.get("/subscriptions"))["items"] == []


def test_a_feed_in_a_common_place_is_found(me: Caller, pages: Pages) -> None:
    pages["/blog/"] = Answer(b"<html><head><title>T</title></head><body>Hi</body></html>")
    pages["/feed.xml"] = Answer(rss([Story("one")]), RSS)
    assert data(me.post("/feeds/preview", json={"url": pages.url("/blog/")}))["url"] == pages.url("/feed.xml")


@pytest.mark.parametrize(
    ("path", "answer", "code"),
    [
        ("/page", Answer(b"<html><body>Hi</body></html>"), "E_NO_FEED"),
        ("/text", Answer(b"hello", "text/plain"), "E_NO_FEED"),
        ("/gone", Answer(b"", status=410), "E_FEED_UNREACHABLE"),
        ("/down", Answer(b"", status=503), "E_FEED_UNREACHABLE"),
    ],
)
def test_an_address_without_a_feed_is_refused(
    me: Caller, pages: Pages, path: str, answer: Answer, code: str
) -> None:
    pages[path] = answer
    for call in ("/subscriptions", "/feeds/preview"):
        assert problem(me.post(call, json={"url": pages.url(path)})) == (400, code)
    assert data(me.get("/subscriptions"))["items"] == []


@pytest.mark.parametrize(
    "url", ["", "ftp://example.com/feed", "rubbish", "file:///etc/passwd", "http://a:b@c.example/"]
)
def test_what_is_no_address_is_refused(me: Caller, url: str) -> None:
    status, code = problem(me.post("/subscriptions", json={"url": url}))
    assert (status, code) == (400, "E_INVALID_URL")


def test_a_library_has_a_feed_once(me: Caller, you: Caller, pages: Pages) -> None:
    made = subscribed(me, pages, Story("one"))
    assert problem(me.post("/subscriptions", json={"url": f"{made['url']}?utm_source=x#top"})) == (
        409,
        "E_CONFLICT",
    )
    assert data(you.post("/subscriptions", json={"url": made["url"]}))["id"] != made["id"]


def test_members_see_a_subscription_and_admins_change_it(
    me: Caller, you: Caller, pages: Pages, poll: Poll
) -> None:
    library = data(me.post("/libraries", json={"name": "Shared"}))["id"]
    made = subscribed(me, pages, Story("one"), library_id=library)
    poll(made)
    place = f"/subscriptions/{made['id']}"
    (item,) = items_of(me, made)
    calls = [
        lambda caller: caller.patch(place, json={"status": "paused"}),
        lambda caller: caller.post(f"{place}/take"),
        lambda caller: caller.post(f"{place}/items/{item['id']}/take"),
        lambda caller: caller.delete(place),
        lambda caller: caller.post("/subscriptions", json={"url": pages.url("/feed"), "library_id": library}),
    ]
    assert {problem(call(you)) for call in calls} == {(404, "E_NOT_FOUND")}
    assert problem(you.get(place)) == problem(you.get(f"{place}/items")) == (404, "E_NOT_FOUND")
    me.let_in(library, you.user)
    assert data(you.get(place))["may_change"] is False
    assert len(items_of(you, made)) == 1
    assert data(you.get(f"{place}/items/{item['id']}"))["text"] == "A few words."
    assert {problem(call(you)) for call in calls} == {(403, "E_FORBIDDEN")}


def test_pausing_resuming_and_polling(me: Caller, pages: Pages, poll: Poll, clock: SetClock) -> None:
    made = subscribed(me, pages, Story("one"))
    place = f"/subscriptions/{made['id']}"
    assert poll(made) == "1 new"
    assert problem(me.post(f"{place}/poll")) == (429, "E_RATE_LIMITED")
    assert poll(made) is None
    clock.forward(minutes=2)
    assert data(me.post(f"{place}/poll"))["asked"]
    assert poll(made) == "0 new"
    paused = data(me.patch(place, json={"status": "paused"}))
    assert (paused["status"], paused["next_poll_at"]) == ("paused", None)
    clock.forward(days=3)
    assert poll(made) is None
    assert problem(me.post(f"{place}/poll")) == (409, "E_INVALID_STATE")
    assert data(me.patch(place, json={"status": "paused"}))["status"] == "paused"
    assert data(me.patch(place, json={"status": "active", "takes_new": True}))["takes_new"] is True
    assert poll(made) == "0 new"


def test_a_feed_that_is_gone_can_be_resumed_but_not_paused(
    me: Caller, pages: Pages, poll: Poll, clock: SetClock
) -> None:
    made = subscribed(me, pages, Story("one"))
    pages["/feed"] = Answer(b"", status=410)
    poll(made)
    place = f"/subscriptions/{made['id']}"
    gone = data(me.get(place))
    assert (gone["status"], gone["error_code"]) == ("gone", "E_FEED_GONE")
    assert problem(me.patch(place, json={"status": "paused"})) == (409, "E_INVALID_STATE")
    pages["/feed"] = Answer(rss([Story("one")]), RSS)
    back = data(me.patch(place, json={"status": "active"}))
    assert (back["status"], back["error_code"], back["failures"]) == ("active", None, 0)
    assert poll(made) == "1 new"


def test_opml_goes_in_and_comes_out_again(me: Caller, you: Caller, pages: Pages, poll: Poll) -> None:
    opml = (
        f'<opml version="2.0"><body><outline text="&lt;Folder&gt;"><outline text="A" xmlUrl="{pages.url("/feed")}"/>'
        f'<outline xmlUrl="{pages.url("/b")}"/></outline><outline xmlUrl="{pages.url("/feed")}"/></body></opml>'
    )
    done = data(me.post("/feeds/opml", json={"opml": opml}))
    assert (len(done["subscription_ids"]), done["known"], done["refused"]) == (2, [], [])
    pages["/feed"] = Answer(rss([Story("one")], title='A "quoted" & other title'), RSS)
    for made in done["subscription_ids"]:
        poll({"id": made})
    again = data(me.post("/feeds/opml", json={"opml": opml}))
    assert (again["subscription_ids"], len(again["known"])) == ([], 2)
    out = me.get("/feeds/opml")
    assert out.headers["content-type"].startswith("text/x-opml")
    assert "A &quot;quoted&quot; &amp; other title" in out.text
    taken = data(you.post("/feeds/opml", json={"opml": out.text}))
    assert len(taken["subscription_ids"]) == 2


@pytest.mark.parametrize(
    "opml", ["", "hello", "<opml/>", "<html></html>", "<opml><body><outline text='x'/></body></opml>"]
)
def test_what_is_no_opml_is_refused(me: Caller, opml: str) -> None:
    assert problem(me.post("/feeds/opml", json={"opml": opml})) == (400, "E_INVALID_REQUEST")


def test_items_come_in_pages_that_lack_nothing(me: Caller, pages: Pages, poll: Poll) -> None:
    """Many of them have the same date."""
    made = subscribed(me, pages, *(Story(str(number), date=dated(1 + number // 10)) for number in range(50)))
    poll(made)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": 7, **({"cursor": cursor} if cursor else {})}
        page = data(me.get(f"/subscriptions/{made['id']}/items", params=params))
        seen += [one["title"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen, key=int) == [str(number) for number in range(50)]
    for rubbish in ("rubbish", cursor_after("0001-01-01T00:00:00+14:00", str(uuid4()))):
        refused = me.get(f"/subscriptions/{made['id']}/items", params={"cursor": rubbish})
        assert problem(refused) == (400, "E_INVALID_REQUEST")


def test_an_item_of_another_subscription_is_not_found(me: Caller, pages: Pages, poll: Poll) -> None:
    mine = subscribed(me, pages, Story("one"))
    poll(mine)
    (item,) = items_of(me, mine)
    pages["/other"] = Answer(rss([Story("x")]), RSS)
    other = data(me.post("/subscriptions", json={"url": pages.url("/other")}))
    for place in (
        f"/subscriptions/{other['id']}/items/{item['id']}",
        f"/subscriptions/{mine['id']}/items/{uuid4()}",
    ):
        assert problem(me.get(place)) == problem(me.post(f"{place}/take")) == (404, "E_NOT_FOUND")


def test_the_audit_log_knows_who_subscribed(site: Site, me: Caller, pages: Pages) -> None:
    made = subscribed(me, pages, Story("one"))
    data(me.delete(f"/subscriptions/{made['id']}"))
    events = [one["event"] for one in data(me.get("/audit"))["items"]]
    assert {"subscribed", "unsubscribed"} <= set(events)
