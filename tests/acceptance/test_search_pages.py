"""Search as a person meets it: results while typing, the keyboard, and a reader that opens at the passage."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from playwright.sync_api import Browser, Page, expect

from nexus.app import build
from tests.kit.accessibility import violations
from tests.kit.browser import PHONE, LiveSite, serving, signed_in
from tests.kit.finding import publish

FILLER = [f"Paragraph {number} tells of the long way home. " * 12 for number in range(12)]
LANTERNS = "An owl 🦉 saw it. Lanterns were lit on the boats at night. Then it slept."
BREAD = "Bread is baked before the village wakes, and boats bring the flour."


@pytest.fixture(scope="module")
def live_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    # Its texts are published by the tests: workers must not claim the items first.
    plugin = "tests.kit.plugins.no_extractors"
    with serving(tmp_path_factory.mktemp("searching"), NEXUS_PLUGINS=plugin) as running:
        yield running


@pytest.fixture
def page(browser: Browser, live_site: LiveSite) -> Iterator[Page]:
    """Of somebody new, whose library has three texts."""
    with browser.new_context() as context:
        page = signed_in(context, live_site, live_site.link_of_someone_new())
        fill_library(live_site, live_site.user_on(page))
        yield page


def fill_library(live_site: LiveSite, user: UUID) -> None:
    app = build(live_site.settings())
    publish(app, user, *FILLER, LANTERNS, *FILLER, title="The harbour", html=True)
    publish(app, user, BREAD, title="A bakery")
    publish(app, user, "In this village too, bread is baked at dawn.", title="Dawn")
    app.close()


def test_results_appear_while_typing_and_open_the_reader_at_the_passage(page: Page) -> None:
    page.keyboard.press("/")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    field.press_sequentially("lanterns lit")
    expect(page.locator("[data-hit]")).to_have_text(["The harbour"])
    expect(page.locator(".passages mark").first).to_have_text("Lanterns")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-hit]").first).to_be_focused()
    page.keyboard.press("Enter")
    mark = page.locator("mark#mark")
    expect(mark).to_be_in_viewport()
    expect(mark).to_contain_text("Lanterns were lit on the boats at night.")


def test_a_question_that_is_typed_on_cancels_the_one_before(page: Page, live_site: LiveSite) -> None:
    page.goto(f"{live_site.url}/find")
    page.route("**/find?q=bread", lambda _: None)  # never answered
    field = page.get_by_role("searchbox")
    with page.expect_request("**/find?q=bread"):
        field.fill("bread")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("q=bread")):
        field.fill("lanterns")
    expect(page.locator("[data-hit]")).to_have_text(["The harbour"])
    expect(page).to_have_url(f"{live_site.url}/find?q=lanterns")


def test_a_question_without_scripts_is_answered(browser: Browser, live_site: LiveSite, page: Page) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        context.add_cookies([{**one} for one in page.context.cookies()])  # type: ignore[typeddict-item]
        plain = context.new_page()
        plain.goto(f"{live_site.url}/find?q=flour")
        expect(plain.locator("[data-hit]")).to_have_text(["A bakery"])


def test_other_words_are_offered_if_nothing_is_found(page: Page, live_site: LiveSite) -> None:
    page.goto(f"{live_site.url}/find?q=lantrens")
    page.get_by_role("link", name="lanterns").click()
    expect(page.locator("[data-hit]")).to_have_text(["The harbour"])


def test_recent_searches_stay_in_this_browser_until_they_are_cleared(page: Page, live_site: LiveSite) -> None:
    page.goto(f"{live_site.url}/find?q=flour")
    page.locator("[data-hit]").click()
    page.goto(f"{live_site.url}/find")
    expect(page.locator("#recent a")).to_have_text(["flour"])
    page.get_by_role("button", name="Clear recent searches").click()
    expect(page.locator("#recent")).to_be_hidden()
    page.reload()
    expect(page.locator("#recent")).to_be_hidden()


def test_more_like_this_shows_its_neighbours(page: Page, live_site: LiveSite) -> None:
    page.goto(f"{live_site.url}/find?q=flour")
    page.locator("[data-hit]").click()
    page.get_by_role("link", name="More like this").click()
    expect(page.locator("[data-hit]")).to_have_text(["Dawn"])
    assert violations(page) == []


def test_the_list_of_a_library_is_filtered_by_the_same_words(page: Page, live_site: LiveSite) -> None:
    page.goto(live_site.url)
    expect(page.locator(".item-title")).to_have_text(["Dawn", "A bakery", "The harbour"])
    page.get_by_label("Words", exact=True).fill('boats -"lit on"')
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".item-title")).to_have_text(["A bakery"])
    page.get_by_role("link", name="Clear").click()
    expect(page.locator(".item-title")).to_have_count(3)


@pytest.mark.parametrize("query", ["", "?q=boats", "?q=lantrens"])
def test_search_is_accessible_in_all_its_states(page: Page, live_site: LiveSite, query: str) -> None:
    page.goto(f"{live_site.url}/find{query}")
    assert violations(page) == []


def test_search_fits_on_a_phone_below_one_line_of_links(page: Page, live_site: LiveSite) -> None:
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    for query in ("", "?q=boats", f"?q={'unbroken' * 40}"):
        page.goto(f"{live_site.url}/find{query}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    links = page.get_by_role("navigation", name="Main"), page.get_by_role("link", name="Account")
    boxes = [one.bounding_box() for one in links]
    assert all(boxes)
    bar, account = (one for one in boxes if one)
    assert bar["y"] <= account["y"] + account["height"] / 2 <= bar["y"] + bar["height"]
