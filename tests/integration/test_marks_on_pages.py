"""Reading on the pages: marks, titles, progress, and lists that their address filters and sorts."""

from __future__ import annotations

import json
import re
from html import unescape
from uuid import UUID, uuid4

import httpx2
import pytest

from nexus.app import App
from nexus.states.media import MediaStatus
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data, problem
from tests.kit.media import walk_media_to
from tests.kit.sign_ins import cookie_of

NOWHERE = UUID(int=7)


@pytest.fixture
def browser(app: App, site: Site, me: Caller) -> httpx2.Client:
    return site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)


def ready(app: App, me: Caller, url: str | None = None) -> UUID:
    media_id = me.add(url)
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    return media_id


def listed(browser: httpx2.Client, address: str) -> list[UUID]:
    return [UUID(one) for one in re.findall(r'data-media="([^"]+)"', browser.get(address).text)]


def noted(me: Caller, media_id: UUID) -> dict[str, bool]:
    shelf = data(me.get(f"/media/{media_id}/shelf"))
    return {name: shelf[f"is_{name}"] for name in ("read", "archived", "favourite")}


@pytest.mark.parametrize("mark", ["read", "archived", "favourite"])
def test_a_mark_is_set_and_taken_back_and_leads_back_to_the_list(
    mark: str, browser: httpx2.Client, me: Caller
) -> None:
    item = me.add()
    here = {"list": "show=unread&sort=title"}
    sent = browser.post(f"/items/{item}/marks", data={mark: "true", **here})
    assert (sent.status_code, sent.headers["location"]) == (303, "/?show=unread&sort=title")
    assert noted(me, item) == {"read": False, "archived": False, "favourite": False, mark: True}
    back = browser.post(f"/items/{item}/marks", data={mark: "false", "back": "item"})
    assert back.headers["location"] == f"/items/{item}"
    assert not noted(me, item)[mark]


def test_a_mark_by_script_tells_the_page_to_look_again(browser: httpx2.Client, me: Caller) -> None:
    item = me.add()
    sent = browser.post(f"/items/{item}/marks", data={"read": "true"}, headers={"HX-Request": "true"})
    assert (sent.status_code, str(item) in sent.headers["hx-trigger"]) == (204, True)


def test_marks_are_ones_own(app: App, site: Site, browser: httpx2.Client, me: Caller) -> None:
    other = site.caller()
    theirs, shared = other.add(), f"https://example.com/{uuid4().hex}"
    assert browser.post(f"/items/{theirs}/marks", data={"read": "true"}).status_code == 404
    assert browser.post(f"/items/{NOWHERE}/title", data={"title": "Mine"}).status_code == 404
    one, same = me.add(shared), other.add(shared)
    assert one == same
    browser.post(f"/items/{one}/marks", data={"archived": "true", "favourite": "true"})
    assert noted(other, one) == {"read": False, "archived": False, "favourite": False}
    assert browser.post(f"/items/{one}/marks", data={"read": "perhaps"}).status_code == 400


def test_another_site_marks_nothing(app: App, site: Site, me: Caller) -> None:
    item = me.add()
    stranger = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin="https://evil.example")
    for path, given in (("marks", {"read": "true"}), ("title", {"title": "Evil"})):
        assert stranger.post(f"/items/{item}/{path}", data=given).status_code == 403
    assert (
        stranger.post("/items/mark-selected", data={"mark": "read", "chosen": [str(item)]}).status_code == 403
    )
    sent = stranger.post(f"/items/{item}/progress", json={"revision": 1, "fraction": 0.5})
    assert problem(sent) == (403, "E_FORBIDDEN")
    assert noted(me, item) == {"read": False, "archived": False, "favourite": False}


def test_each_tab_shows_what_its_name_says(app: App, browser: httpx2.Client, me: Caller) -> None:
    plain, read, archived, favourite = (ready(app, me) for _ in range(4))
    browser.post(f"/items/{read}/marks", data={"read": "true"})
    browser.post(f"/items/{archived}/marks", data={"archived": "true", "favourite": "true"})
    browser.post(f"/items/{favourite}/marks", data={"favourite": "true"})
    pending = me.add()
    assert set(listed(browser, "/")) == {plain, read, favourite, pending}
    assert set(listed(browser, "/?show=unread")) == {plain, favourite, pending}
    assert listed(browser, "/?show=archive") == [archived]
    assert set(listed(browser, "/?show=favourites")) == {favourite, archived}
    assert set(listed(browser, "/?show=ready")) == {plain, read, favourite}
    assert listed(browser, "/?show=working") == [pending]
    assert listed(browser, "/?show=failed") == []
    for item, show, belongs in (
        (archived, "all", False),
        (archived, "archive", True),
        (read, "unread", False),
    ):
        row = browser.get(f"/items/{item}/row?show={show}").text
        assert ("data-elsewhere" not in row) is belongs


def test_a_list_is_filtered_by_kind_site_and_day(
    app: App, browser: httpx2.Client, me: Caller, clock: SetClock
) -> None:
    old = me.add("https://www.tides.example/old")
    first = clock().date()
    clock.forward(days=3)
    new, video = me.add("https://tides.example/new"), me.add("https://youtu.be/dQw4w9WgXcQ", "video")
    today = clock().date()
    assert listed(browser, "/?site=tides.example") == [new, old]
    assert listed(browser, "/?site=WWW.Tides.example&sort=oldest") == [old, new]
    assert listed(browser, "/?kind=video") == [video]
    assert set(listed(browser, f"/?since={today}")) == {new, video}
    assert listed(browser, f"/?until={first}") == [old]
    assert listed(browser, f"/?since={today}&kind=web_article&site=tides.example") == [new]
    page = browser.get(f"/?since={today}&kind=video&site=tides.example").text
    assert "Nothing matches these filters" in page
    for filtered, belongs in (("site=tides.example", True), ("kind=pdf", False), (f"until={first}", False)):
        row = browser.get(f"/items/{new}/row?{filtered}").text
        assert ("data-elsewhere" not in row) is belongs


def test_unknown_filters_show_everything(browser: httpx2.Client, me: Caller) -> None:
    item = me.add()
    odd = "show=x&kind=x&since=x&until=0001-01-01&sort=x&site="
    page = browser.get(f"/?{odd}")
    assert str(item) in page.text
    assert 'data-list=""' in page.text
    assert browser.get("/?until=9999-12-31").status_code == 200


def test_a_list_is_sorted_and_its_pages_keep_the_order(app: App, browser: httpx2.Client, me: Caller) -> None:
    items = [me.add() for _ in range(55)]
    for at, item in enumerate(items):
        browser.post(f"/items/{item}/title", data={"title": f"Title {54 - at:02}"})
    page = browser.get("/?sort=title").text
    assert "data-sorted" in page, "what arrives is not put on top of it"
    more = re.search(r'<li class="more" id="more"><a [^>]*href="([^"]+)"', page)
    assert more is not None
    address = unescape(more[1])
    assert address.startswith("/?sort=title&cursor=")
    assert listed(browser, "/?sort=title") + listed(browser, address) == items[::-1]
    assert browser.get(f"/?sort=site&cursor={address.rpartition('=')[2]}").status_code == 400


def test_selected_items_are_marked(browser: httpx2.Client, site: Site, me: Caller) -> None:
    one, two, theirs = me.add(), me.add(), site.caller().add()
    chosen = {"chosen": [str(one), str(two), str(theirs)], "list": "sort=title"}
    for mark, name, value in (
        ("read", "read", True),
        ("archived", "archived", True),
        ("unread", "read", False),
    ):
        sent = browser.post("/items/mark-selected", data={"mark": mark, **chosen})
        assert sent.headers["location"] == f"/?sort=title&done={mark}&count=2&refused=1"
        assert noted(me, one)[name] is noted(me, two)[name] is value
    assert "2 items were marked as unread." in " ".join(browser.get(sent.headers["location"]).text.split())
    assert browser.post("/items/mark-selected", data={"mark": "rubbish", **chosen}).status_code == 400


def test_a_title_of_ones_own_is_shown_everywhere_and_can_be_dropped(
    app: App, browser: httpx2.Client, me: Caller
) -> None:
    item = ready(app, me)
    original = data(me.get(f"/media/{item}"))["title"]
    sent = browser.post(f"/items/{item}/title", data={"title": "  My <own>  words "})
    assert sent.headers["location"] == f"/items/{item}"
    page = browser.get(f"/items/{item}").text
    assert re.search(r"<h1[^>]*>My &lt;own&gt; words</h1>", page)
    assert f'Its original title is “<span dir="auto">{original}</span>”' in page
    assert "My &lt;own&gt; words" in browser.get("/").text
    browser.post(f"/items/{item}/title", data={"title": ""})
    assert re.search(rf"<h1[^>]*>{re.escape(original)}</h1>", browser.get(f"/items/{item}").text)
    assert browser.post(f"/items/{item}/title", data={"title": "x" * 501}).status_code == 400


def test_progress_is_kept_shown_in_the_list_and_given_to_other_devices(
    app: App, browser: httpx2.Client, me: Caller
) -> None:
    item = ready(app, me)
    place = {"fragment": 0, "block": 0, "far": 0.4}
    sent = browser.post(f"/items/{item}/progress", json={"revision": 1, "fraction": 0.4, "place": place})
    assert data(sent)["progress"] == 0.4
    assert "40% read" in browser.get("/").text
    kept = re.search(r'data-place="([^"]+)"', browser.get(f"/items/{item}").text)
    assert kept is not None
    given = json.loads(unescape(kept[1]))
    assert {name: given[name] for name in place} == place
    data(browser.post(f"/items/{item}/progress", json={"revision": 1, "fraction": 1.0}))
    assert noted(me, item)["read"]
    assert "% read" not in browser.get("/").text


@pytest.mark.parametrize("wrong", [{}, {"revision": 1, "fraction": 2}, {"revision": 0, "fraction": 0.1}])
def test_progress_that_makes_no_sense_is_refused(
    wrong: dict[str, float], browser: httpx2.Client, me: Caller
) -> None:
    assert problem(browser.post(f"/items/{me.add()}/progress", json=wrong)) == (400, "E_INVALID_REQUEST")


def test_progress_in_what_one_can_not_read_is_not_found(browser: httpx2.Client, site: Site) -> None:
    for item in (NOWHERE, site.caller().add()):
        sent = browser.post(f"/items/{item}/progress", json={"revision": 1, "fraction": 0.5})
        assert problem(sent) == (404, "E_NOT_FOUND")


def test_a_row_shows_the_state_only_if_it_is_not_ready(app: App, browser: httpx2.Client, me: Caller) -> None:
    done, pending = ready(app, me), me.add()
    assert re.search(r'<span class="badge badge-ready" hidden>', browser.get(f"/items/{done}/row").text)
    assert re.search(r'<span class="badge badge-[a-z]+">', browser.get(f"/items/{pending}/row").text)
