"""Every page, in every state that it can show, breaks no rule of axe-core: light and dark, wide and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from nexus.app import build
from tests.kit import documents
from tests.kit.accessibility import violations
from tests.kit.browser import LiveSite, serving, signed_in
from tests.kit.http import Caller, data
from tests.kit.jobs import jobs_in_every_state, stories_in_every_state
from tests.kit.waiting import eventually

#: The page about the API repeats itself for each call, and axe-core would take minutes for it.
SHORTER = """() => {
  const calls = ".call:nth-of-type(n + 3), .docs-calls > section:nth-of-type(n + 4)";
  const again = `${calls}, .docs-index li:nth-of-type(n + 4)`;
  for (const one of document.querySelectorAll(again)) one.remove();
}"""
CHAPTERS = {"one.xhtml": documents.chapter(f"<h1>One</h1><p>{'The ferry left at noon. ' * 20}</p>")}
STRANGE: FilePayload = {"name": "a.exe", "mimeType": "application/x", "buffer": b"MZ"}
#: What covers other parts of the page is looked at on its own.
OPEN_ALL = """() => {
  for (const one of document.querySelectorAll("main details:not(#contents, #settings)")) one.open = true;
}"""
WRONG = """() => {
  document.body.insertAdjacentHTML("beforeend", `<p id="pale">Pale</p><img src="/static/icon.svg">
    <div role="main"><h1>A</h1><h5>B</h5><button class="tiny">+</button><button class="tiny">-</button>
    <nav aria-label="X"><a href="/">1</a></nav><nav aria-label="X"><a href="/">2</a></nav></div>`);
  Object.assign(document.getElementById("pale").style, { color: "#999", background: "#aaa" });
  for (const one of document.querySelectorAll(".tiny")) one.style.cssText = "width: 9px; height: 9px; padding: 0";
}"""
PLACES = (
    "rich/tides",
    "book/almanac",
    "paper/waves",
    "scanned/old-map",
    "never/gone",
    "renewed/news",
    "held/slow",
)


@pytest.fixture(scope="module")
def live_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    plugin = "tests.kit.plugins.page_articles_and_files"
    with serving(tmp_path_factory.mktemp("accessible"), NEXUS_PLUGINS=plugin) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser: Browser, live_site: LiveSite) -> Iterator[Page]:
    """Of somebody new, for all of these tests: they only look."""
    with browser.new_context() as context:
        yield signed_in(context, live_site, live_site.link_of_someone_new())


@pytest.fixture(scope="module")
def me(page: Page, live_site: LiveSite) -> Iterator[Caller]:
    with Caller(live_site.url, live_site.settings(), live_site.user_on(page)) as caller:
        yield caller


@pytest.fixture(scope="module")
def items(me: Caller, page: Page, live_site: LiveSite) -> dict[str, UUID]:
    """One item for each of the places, done unless it is held; some are marked, one has two versions."""
    stem = uuid4().hex[:8]
    made = {place: me.add(f"https://example.com/{place}-{stem}") for place in PLACES}
    done = {"ready", "ready_for_reading", "failed"}

    def states() -> set[str]:
        return {
            data(me.get(f"/media/{one}"))["processing_status"]
            for place, one in made.items()
            if place != "held/slow"
        }

    eventually(lambda: states() <= done, "every item is done")
    live_site.let(f"news-{stem}")
    data(me.post(f"/media/{made['renewed/news']}/refresh"))
    eventually(
        lambda: len(data(me.get(f"/media/{made['renewed/news']}/revisions"))["items"]) == 2, "it is refreshed"
    )
    data(me.patch(f"/media/{made['rich/tides']}/shelf", json={"favourite": True}))
    data(me.put(f"/media/{made['book/almanac']}/progress", json={"revision": 1, "fraction": 0.4}))
    data(me.patch(f"/media/{made['paper/waves']}/shelf", json={"read": True}))
    return made


def text(name: str) -> FilePayload:
    return {
        "name": name,
        "mimeType": "text/plain",
        "buffer": f"{name}. {'The ferry left at noon. ' * 20}".encode(),
    }


def look_at(page: Page, live_site: LiveSite, *paths: str) -> None:
    """Fails with everything that is wrong with any of the pages."""
    wrong: list[str] = []
    for path in paths:
        page.goto(live_site.url + path)
        page.evaluate(SHORTER)
        wrong += violations(page)
    assert wrong == [], "\n".join(wrong)


def test_pages_before_signing_in_break_no_rule(browser: Browser, live_site: LiveSite) -> None:
    with browser.new_context() as context:
        paths = ("/sign-in", "/", "/sign-in?token=wrong", "/nowhere", "/docs")
        look_at(context.new_page(), live_site, *paths)


def test_an_empty_nexus_breaks_no_rule(page: Page, live_site: LiveSite) -> None:
    paths = (
        "/",
        "/?show=archive",
        "/?kind=pdf",
        "/admin/jobs",
        "/admin/stories",
        "/sharing",
        "/import",
        "/account",
    )
    look_at(page, live_site, *paths)


def test_a_full_library_breaks_no_rule(
    page: Page, live_site: LiveSite, me: Caller, items: dict[str, UUID]
) -> None:
    research = me.library("Research")
    data(me.post(f"/libraries/{research}/media", json={"media_id": str(items["rich/tides"])}))
    look_at(page, live_site, "/?done=archived&count=1&refused=1", "/?show=failed", "/?show=working")
    look_at(page, live_site, f"/?library={research}&sort=title", f"/?library={me.default_library()}")


def test_what_is_done_with_selected_items_breaks_no_rule(
    page: Page, live_site: LiveSite, items: dict[str, UUID]
) -> None:
    page.goto(live_site.url)
    page.locator(".pick").first.check()
    for summary in page.locator("#bulk summary").all():
        summary.click()
    page.locator("#url").fill("no address")
    page.locator("#url").press("Enter")
    expect(page.locator("#add-said")).to_have_attribute("role", "alert")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator("body").click(position={"x": 2, "y": 2})
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("place", PLACES)
def test_an_item_in_each_state_breaks_no_rule(
    place: str, page: Page, live_site: LiveSite, items: dict[str, UUID]
) -> None:
    page.goto(f"{live_site.url}/items/{items[place]}")
    page.evaluate(OPEN_ALL)
    assert violations(page) == []


def test_the_reading_settings_break_no_rule(page: Page, live_site: LiveSite, items: dict[str, UUID]) -> None:
    page.goto(f"{live_site.url}/items/{items['rich/tides']}")
    page.locator("#settings > summary").click()
    assert violations(page) == []


def test_what_is_wrong_is_found(page: Page, live_site: LiveSite) -> None:
    page.goto(live_site.url)
    page.evaluate(WRONG)
    found = " ".join(violations(page))
    for rule in ("heading-order", "image-alt", "landmark-unique", "target-size", "color-contrast", "region"):
        assert rule in found


def test_the_views_and_versions_of_an_item_break_no_rule(
    page: Page, live_site: LiveSite, items: dict[str, UUID]
) -> None:
    news = f"/items/{items['renewed/news']}"
    look_at(
        page,
        live_site,
        f"/items/{items['paper/waves']}?view=text",
        f"/items/{items['book/almanac']}?from=30",
        f"{news}/versions",
        f"{news}/versions/compare?before=1&after=2",
        f"{news}?revision=1",
    )


def test_uploads_and_imports_in_their_states_break_no_rule(page: Page, live_site: LiveSite) -> None:
    page.goto(live_site.url)
    page.locator("#files").set_input_files([text("notes.txt"), STRANGE])
    expect(page.locator(".upload[data-state=refused]")).to_be_visible()
    assert violations(page) == []
    page.goto(f"{live_site.url}/import")
    damaged: FilePayload = {"name": "b.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.4 nothing"}
    book: FilePayload = {
        "name": "c.epub",
        "mimeType": "application/epub+zip",
        "buffer": documents.epub(CHAPTERS),
    }
    page.get_by_label("Files").set_input_files([text("a.txt"), damaged, book])
    expect(page.locator(".import-name")).to_have_count(3)
    assert violations(page) == []
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("button", name="Import the other 2")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Import the other 2").click()
    expect(page.get_by_text("Everything is in")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("link", name="Open the library").click()
    for name in ("a", "A Book"):
        page.locator(".item-title a", has_text=name).first.click()
        expect(page.locator("#reader")).to_be_visible()
        assert violations(page) == []
        page.go_back()


def test_the_desk_and_its_stories_break_no_rule(page: Page, live_site: LiveSite, me: Caller) -> None:
    app = build(live_site.settings())
    jobs, stories = jobs_in_every_state(app, me.user), stories_in_every_state(app, me.user)
    app.close()
    look_at(page, live_site, "/admin/jobs", "/admin/jobs?show=failed", "/admin/add-article", "/admin/stories")
    look_at(page, live_site, *(f"/admin/jobs/{one}" for one in jobs.values()))
    look_at(page, live_site, *(f"/admin/stories/{one}" for one in stories.values()))


def test_libraries_people_and_the_account_break_no_rule(page: Page, live_site: LiveSite, me: Caller) -> None:
    with Caller(live_site.url, live_site.settings(), uuid4()) as other:
        shared = other.library("Theirs")
        data(other.post(f"/libraries/{shared}/invitations", json={"user_id": str(me.user)}))
        own = me.library("Ours")
        me.let_in(own, other.user)
        data(me.post(f"/libraries/{own}/invitations", json={"email": "ben@example.com"}))
    look_at(
        page,
        live_site,
        "/sharing",
        f"/sharing/{own}",
        f"/sharing/{me.default_library()}",
        "/account",
    )
    page.goto(f"{live_site.url}/sharing/{own}")
    for summary in page.locator("main summary").all():
        summary.click()
    assert violations(page) == []
    look_at(page, live_site, "/nowhere", f"/items/{UUID(int=1)}", f"/sharing/{UUID(int=1)}")
