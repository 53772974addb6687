"""Libraries on the pages: opened, filled, emptied, renamed and deleted. Every address of a list keeps its filters."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import httpx2
import pytest

from nexus.app import App
from nexus.errors import FetchTimeout
from nexus.media import lifecycle
from nexus.states.media import Stage
from tests.kit.http import Caller, Site, data
from tests.kit.sign_ins import cookie_of

NOWHERE = UUID(int=7)


@pytest.fixture
def browser(app: App, site: Site, me: Caller) -> httpx2.Client:
    return page_of(app, site, me)


def page_of(app: App, site: Site, caller: Caller) -> httpx2.Client:
    return site.anyone(Cookie=cookie_of(app.sessions, caller.user), Origin=site.url)


def held(caller: Caller, library: str) -> set[UUID]:
    return {UUID(one["id"]) for one in data(caller.get(f"/libraries/{library}/media"))["items"]}


def listed(page: str) -> set[UUID]:
    return {UUID(one) for one in re.findall(r'data-media="([^"]+)"', page)}


def put(caller: Caller, library: str, *media_ids: UUID) -> None:
    for media_id in media_ids:
        data(caller.post(f"/libraries/{library}/media", json={"media_id": str(media_id)}))


def said(answer: httpx2.Response) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


def test_an_open_library_shows_what_it_holds_and_the_menu_names_all(
    browser: httpx2.Client, me: Caller
) -> None:
    inside, outside, research = me.add(), me.add(), me.library("Research")
    put(me, research, inside)
    page = browser.get(f"/?library={research}").text
    assert listed(page) == {inside}
    assert re.search(r"<h1[^>]*>Research</h1>", page)
    menu = page[page.index('aria-label="Libraries"') : page.index("Manage libraries")]
    names = " ".join(re.sub(r"<[^>]+>", " ", menu).split())
    assert "All libraries My library 2 items Research 1 item" in names
    assert listed(browser.get("/").text) == {inside, outside}


def test_every_link_of_a_list_keeps_its_filters(app: App, browser: httpx2.Client, me: Caller) -> None:
    research = me.library("Research")
    put(me, research, *(me.add() for _ in range(60)))
    page = browser.get(f"/?library={research}&show=working").text
    more = re.search(r'<li class="more" id="more"><a [^>]*href="([^"]+)"', page)
    assert more is not None
    address = more[1].replace("&amp;", "&")
    assert address.startswith(f"/?library={research}&show=working&cursor=")
    assert len(listed(page) | listed(browser.get(address).text)) == 60
    assert f'name="list" value="library={research}&amp;show=working"' in page
    for show in ("failed", "ready"):
        assert f'href="/?library={research}&amp;show={show}"' in page
    assert 'href="/?show=working"' in page, "all libraries, with the same filter"
    assert f'data-list="library={research}&amp;show=working"' in page, "live updates ask with it"


def test_what_is_done_with_selected_items_leads_back_to_the_same_list(
    browser: httpx2.Client, me: Caller
) -> None:
    research = me.library("Research")
    here = {"list": f"library={research}&show=failed", "chosen": [str(uuid4())]}
    for verb, past in (("retry", "retried"), ("delete", "removed"), ("copy", "copied"), ("move", "moved")):
        sent = browser.post(f"/items/{verb}-selected", data={**here, "to": me.default_library()})
        assert sent.headers["location"] == f"/?library={research}&show=failed&done={past}&count=0&refused=1"
        assert f"1 could not be {past}" in said(browser.get(sent.headers["location"]))


def test_the_query_of_a_list_leads_nowhere_else(browser: httpx2.Client) -> None:
    for odd in ("https://evil.example", "//evil.example/", "show=rubbish&next=//evil.example", "a&b=%zz"):
        sent = browser.post("/items/retry-selected", data={"list": odd})
        assert sent.headers["location"] == "/?done=retried&count=0&refused=0"


@pytest.mark.parametrize("library", [str(NOWHERE), "rubbish", "%00", "1"])
def test_a_library_that_is_not_there_is_not_found(library: str, browser: httpx2.Client) -> None:
    assert browser.get(f"/?library={library}").status_code == 404


def test_a_library_of_others_is_not_found_and_takes_nothing(
    app: App, site: Site, browser: httpx2.Client, me: Caller
) -> None:
    other, mine = site.caller(), me.add()
    theirs = other.library("Theirs")
    assert browser.get(f"/?library={theirs}").status_code == 404
    assert browser.get(f"/sharing/{theirs}").status_code == 404
    assert browser.post("/items", data={"url": "example.com/x", "library": theirs}).status_code == 404
    browser.post("/items/copy-selected", data={"to": theirs, "chosen": [str(mine)]})
    assert browser.post("/import/batch", data={"library": theirs}).status_code == 404
    for act in ("rename", "delete"):
        assert browser.post(f"/sharing/{theirs}/{act}", data={"name": "Mine"}).status_code == 404
    assert held(other, theirs) == set()
    assert [one["name"] for one in data(other.get("/libraries"))["items"]] == ["My library", "Theirs"]


def test_a_member_reads_a_library_but_changes_nothing_in_it(
    app: App, site: Site, browser: httpx2.Client, me: Caller
) -> None:
    other = site.caller()
    shared, item, mine = other.library("Theirs"), other.add(), me.add()
    put(other, shared, item)
    other.let_in(shared, me.user)
    page = browser.get(f"/?library={shared}").text
    assert listed(page) == {item}
    assert "Its admins decide what is in it." in said(browser.get(f"/?library={shared}"))
    assert "delete-selected" not in page
    assert "move-selected" not in page
    form = page[page.index('id="add"') : page.index('id="add-said"')]
    assert 'name="library"' not in form, "what is added does not go there"
    assert browser.post("/items", data={"url": "example.com/x", "library": shared}).status_code == 403
    here = {"list": f"library={shared}", "chosen": [str(item)], "to": me.default_library()}
    for verb in ("delete", "move"):
        assert (
            browser.post(f"/items/{verb}-selected", data=here)
            .headers["location"]
            .endswith("&count=0&refused=1")
        )
    browser.post("/items/copy-selected", data={"to": shared, "chosen": [str(mine)]})
    assert held(other, shared) == {item}
    for act in ("rename", "delete"):
        assert browser.post(f"/sharing/{shared}/{act}", data={"name": "Mine"}).status_code == 403


def test_selected_items_are_copied_and_moved(browser: httpx2.Client, me: Caller) -> None:
    one, two, research, archive = me.add(), me.add(), me.library("Research"), me.library("Archive")
    sent = browser.post("/items/copy-selected", data={"to": research, "chosen": [str(one), str(two)]})
    assert "2 items were copied." in said(browser.get(sent.headers["location"]))
    assert held(me, research) == {one, two} == held(me, me.default_library())
    move = {"list": f"library={research}", "to": archive, "chosen": [str(two)]}
    sent = browser.post("/items/move-selected", data=move)
    assert "1 item was moved." in said(browser.get(sent.headers["location"]))
    assert (held(me, research), held(me, archive)) == ({one}, {two})
    again = browser.post("/items/move-selected", data=move).headers["location"]
    assert again.endswith("&done=moved&count=0&refused=1"), "it is not there any more"


def test_nothing_is_copied_while_there_is_only_one_library(browser: httpx2.Client, me: Caller) -> None:
    me.add()
    assert "copy-selected" not in browser.get("/").text
    me.library("Research")
    assert "copy-selected" in browser.get("/").text


def test_the_shortcuts_say_that_the_slash_searches(browser: httpx2.Client) -> None:
    pages = ["/", "/admin/jobs", "/admin/add-article", "/admin/stories"]
    assert [page for page in pages if "/ Search" not in said(browser.get(page))] == []


def test_moving_needs_an_open_library_and_one_to_go_to(browser: httpx2.Client, me: Caller) -> None:
    research, item = me.library("Research"), str(me.add())
    assert browser.post("/items/move-selected", data={"to": research, "chosen": [item]}).status_code == 400
    for verb in ("copy", "move"):
        here = {"list": f"library={research}", "to": "rubbish", "chosen": [item]}
        assert browser.post(f"/items/{verb}-selected", data=here).status_code == 400
    assert held(me, research) == set()


def test_removing_in_an_open_library_removes_from_that_one_only(browser: httpx2.Client, me: Caller) -> None:
    both, only, research = me.add(), me.add(), me.library("Research")
    put(me, research, both, only)
    browser.post(
        "/items/delete-selected", data={"list": f"library={me.default_library()}", "chosen": [str(only)]}
    )
    browser.post("/items/delete-selected", data={"list": f"library={research}", "chosen": [str(both)]})
    assert held(me, research) == {only}
    assert held(me, me.default_library()) == {both}


def test_what_is_added_goes_into_the_open_library(browser: httpx2.Client, me: Caller) -> None:
    research = me.library("Research")
    assert f'name="library" value="{research}"' in browser.get(f"/?library={research}").text
    sent = browser.post("/items", data={"url": "example.com/tides", "library": research})
    (item,) = held(me, research)
    assert sent.headers["location"] == f"/?library={research}#item-{item}"
    assert held(me, me.default_library()) == {item}
    wrong = browser.post("/items", data={"url": "no address", "library": research})
    assert (wrong.status_code, f'name="library" value="{research}"' in wrong.text) == (400, True)
    by_script = {"HX-Request": "true"}
    answer = browser.post("/items", data={"url": "example.com/b", "library": research}, headers=by_script)
    assert f'name="library" value="{research}"' in answer.text
    assert len(held(me, research)) == 2


def test_an_upload_goes_into_the_open_library(browser: httpx2.Client, site: Site, me: Caller) -> None:
    body, research = b"They left the harbour at noon.", me.library("Research")
    fields = {"kind": "text", "filename": "a.txt", "content_type": "text/plain", "size_bytes": len(body)}
    begun = data(browser.post("/items/upload", json=fields))
    site.anyone().put(begun["upload_url"], content=body, headers=begun["upload_headers"])
    confirm = f"/items/{begun['media_id']}/ingest?library="
    assert browser.post(f"{confirm}{NOWHERE}").status_code == 404
    assert browser.post(f"{confirm}rubbish").status_code == 400
    assert data(browser.post(f"{confirm}{research}"))["media_id"] == begun["media_id"]
    assert held(me, research) == {UUID(begun["media_id"])}


def test_failures_of_an_open_library_are_its_own(app: App, browser: httpx2.Client, me: Caller) -> None:
    inside, outside, research = me.add(), me.add(), me.library("Research")
    put(me, research, inside)
    with app.sessions.begin() as session:
        for media_id in (inside, outside):
            claim = lifecycle.worker_start_attempt(session, media_id)
            assert claim is not None
            slow = FetchTimeout()
            lifecycle.mark_failed(
                session, media_id, Stage.EXTRACT, slow.code, slow.message, claim.processing_attempts
            )
    here = f"library={research}&show=failed"
    assert "1 item Retry it" in said(browser.get(f"/?{here}"))
    assert "2 items Retry all" in said(browser.get("/?show=failed"))
    sent = browser.post("/items/retry-failed", data={"error": FetchTimeout.code, "list": here})
    assert sent.headers["location"] == f"/?{here}&done=retried&count=1&refused=0"


def test_a_row_says_whether_it_belongs_to_the_list(browser: httpx2.Client, me: Caller) -> None:
    item, research = me.add(), me.library("Research")
    assert "data-elsewhere" not in browser.get(f"/items/{item}/row").text
    assert "data-elsewhere" in browser.get(f"/items/{item}/row?library={research}").text
    put(me, research, item)
    assert "data-elsewhere" not in browser.get(f"/items/{item}/row?library={research}").text


def test_libraries_are_made_renamed_and_deleted_on_their_pages(browser: httpx2.Client, me: Caller) -> None:
    made = browser.post("/sharing/libraries", data={"name": " Deep  sea "}).headers["location"]
    assert re.search(r"<h1[^>]*>Deep sea</h1>", browser.get(made).text)
    library, item = made.rpartition("/")[2], me.add()
    put(me, library, item)
    assert browser.post(f"{made}/rename", data={"name": "Tides"}).headers["location"] == made
    overview = browser.get("/sharing").text
    assert f'<a href="/?library={library}">Tides</a>' in overview
    assert "Tides 1 item 1 person You are an admin" in said(browser.get("/sharing")).replace(" · ", " ")
    wrong = browser.post(f"{made}/rename", data={"name": " "})
    assert (wrong.status_code, "needs a name" in wrong.text) == (400, True)
    asked = said(browser.get(made))
    assert "Its item leaves this library. Items that no other library has are deleted" in asked
    assert browser.post(f"{made}/delete").headers["location"] == "/sharing"
    assert browser.get(made).status_code == 404
    assert held(me, me.default_library()) == {item}


def test_the_own_library_can_be_renamed_but_not_shared_or_deleted(browser: httpx2.Client, me: Caller) -> None:
    own = me.default_library()
    page = browser.get(f"/sharing/{own}")
    assert page.status_code == 200
    assert "Nobody else sees it, and it can't be deleted." in said(page)
    assert "/invitations" not in page.text
    assert browser.post(f"/sharing/{own}/delete").status_code == 403
    browser.post(f"/sharing/{own}/rename", data={"name": "Ann's"})
    assert data(me.get("/libraries"))["items"][0]["name"] == "Ann's"


@pytest.mark.parametrize("act", ["rename", "delete"])
def test_another_site_changes_no_library(act: str, app: App, site: Site, me: Caller) -> None:
    library = me.library("Research")
    stranger = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin="https://evil.example")
    assert stranger.post(f"/sharing/{library}/{act}", data={"name": "Evil"}).status_code == 403
    assert [one["name"] for one in data(me.get("/libraries"))["items"]] == ["My library", "Research"]


def test_an_item_names_the_libraries_that_hold_it(browser: httpx2.Client, me: Caller) -> None:
    item, research = me.add(), me.library("Research")
    put(me, research, item)
    assert f'<a href="/?library={research}" dir="auto">Research</a>' in browser.get(f"/items/{item}").text


def test_removing_an_item_leads_back_to_its_list(browser: httpx2.Client, me: Caller) -> None:
    item, research = me.add(), me.library("Research")
    sent = browser.post(f"/items/{item}/delete", data={"list": f"library={research}&show=failed"})
    assert sent.headers["location"] == f"/?library={research}&show=failed"


def test_an_import_goes_into_the_library_that_is_chosen(browser: httpx2.Client, me: Caller) -> None:
    research = me.library("Research")
    page = browser.get("/import").text
    assert f'<option value="{me.default_library()}" selected>My library</option>' in page
    assert browser.post("/import/batch", data={"library": research}).headers["location"] == "/import"
    assert f'<option value="{research}" selected>Research</option>' in browser.get("/import").text
    browser.post("/import/batch", data={"library": "", "name": "New one"})
    page = browser.get("/import").text
    assert '<option value="" selected>New library…</option>' in page
    assert 'value="New one"' in page
    assert browser.post("/import/batch", data={"library": "rubbish"}).status_code == 404
    assert f'action="/import/batch"><input type="hidden" name="library" value="{research}">' in (
        browser.get(f"/?library={research}").text
    )
