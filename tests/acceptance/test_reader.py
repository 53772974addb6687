"""What the reader promises, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, StorageState, expect

from nexus.web.views.passages import paragraphs
from tests.kit.browser import (
    LiveSite,
    add,
    add_ready,
    address,
    badge,
    opened,
    signed_in,
    weakest_text,
    without_complaints,
)
from tests.kit.plugins.page_articles import CHAPTERS

PHONE = {"width": 360, "height": 740}
TEXTS = "() => [...document.querySelectorAll('.fragment')].map((section) => section.textContent)"


@dataclass(frozen=True)
class Shelf:
    """A user's browser session, and the addresses of the items in their library."""

    session: StorageState
    of: dict[str, str]


@pytest.fixture(scope="module")
def shelf(browser: Browser, live_site: LiveSite) -> Shelf:
    with browser.new_context() as context:
        page = signed_in(context, live_site, live_site.link_of_someone_new())
        added = {what: add(page, address(f"{what}/tides")) for what in ("article", "rich", "book", "paper")}
        for row in added.values():
            expect(badge(row)).to_have_text("Ready")
        media = {what: row.get_attribute("data-media") for what, row in added.items()}
        return Shelf(
            context.storage_state(), {what: f"{live_site.url}/items/{each}" for what, each in media.items()}
        )


@pytest.fixture
def shelf_page(browser: Browser, live_site: LiveSite, shelf: Shelf) -> Iterator[Page]:
    """A page of that user, in a fresh profile, with everything still to be read."""
    with browser.new_context(storage_state=shelf.session) as context:
        for item in shelf.of.values():
            headers = {"Sec-Fetch-Site": "same-origin"}
            answer = context.request.post(f"{item}/marks", form={"read": "false"}, headers=headers)
            assert answer.ok, answer.text()
        opened = context.new_page()
        with without_complaints(opened):
            yield opened


def read(page: Page, shelf: Shelf, what: str) -> Page:
    page.goto(shelf.of[what])
    return page


def path(page: Page) -> str:
    return page.url.partition("?")[0].partition("#")[0]


def fragments_of(page: Page, site: LiveSite) -> list[dict[str, Any]]:
    """As the API gives them."""
    media_id = path(page).rpartition("/")[2]
    answer = page.request.get(f"{site.url}/media/{media_id}/fragments", headers=site.headers(page))
    found: list[dict[str, Any]] = answer.json()["data"]["items"]
    return found


def chapter(page: Page, number: int) -> Locator:
    return page.get_by_role("heading", name=f"Chapter {number}", exact=True)


def entry(page: Page, number: int) -> Locator:
    return page.locator("#contents").get_by_role("link", name=f"Chapter {number}", exact=True)


def test_an_article_is_shown_with_everything_it_contains(shelf_page: Page, shelf: Shelf) -> None:
    read(shelf_page, shelf, "rich")
    expect(shelf_page.locator(".byline")).to_contain_text("Ada Harbour")
    expect(shelf_page.locator(".byline .fact")).to_contain_text(
        ["Ada Harbour", "The Coast", "31 Jan 2026", "1 min read", "English"]
    )
    expect(shelf_page.locator("#prose")).to_have_attribute("lang", "en")
    expect(shelf_page.locator("#prose h1")).to_have_class("unseen")  # the title stands above already
    expect(shelf_page.locator("#prose h2")).to_have_text(["Measuring", "Heights"])
    expect(shelf_page.locator("#prose ul ul li")).to_have_text("with marks")
    expect(shelf_page.locator("#prose figcaption")).to_have_text("A point.")
    expect(shelf_page.locator("#prose code")).to_have_text('src="asset:dot.png"')
    expect(shelf_page.get_by_role("link", name="Original")).to_have_attribute(
        "href", re.compile("^https://example")
    )
    expect(shelf_page.locator(".badge")).to_have_text(["Ready"])


@pytest.mark.parametrize("what", ["rich", "article", "paper"])
def test_the_reader_shows_the_text_letter_for_letter(
    shelf_page: Page, live_site: LiveSite, shelf: Shelf, what: str
) -> None:
    shelf_page.goto(f"{shelf.of[what]}?view=text")
    assert shelf_page.evaluate(TEXTS) == [
        fragment["text"] for fragment in fragments_of(shelf_page, live_site)
    ]


def test_plain_text_keeps_every_letter(shelf_page: Page) -> None:
    texts = ["One.\n\nTwo.", "  \n\nOne\r\ntwo \n \n\n three\n", "<b>&amp;</b>\r\n\r\nend", "\n", ""]
    shelf_page.set_content("".join(f"<section>{paragraphs(text)}</section>" for text in texts))
    assert shelf_page.locator("section").evaluate_all("(all) => all.map((one) => one.textContent)") == texts


def test_uncleaned_html_of_an_extractor_runs_nothing_in_the_reader(
    context: BrowserContext, live_site: LiveSite
) -> None:
    page = signed_in(context, live_site, live_site.link_of_someone_new())
    with without_complaints(page):
        opened(page, add_ready(page, "unclean/page"))
        expect(page.locator("#f0")).to_contain_text("After.")
        page.reload()
        expect(page.locator("#f0")).to_contain_text("After.")
    expect(page.locator("main")).to_be_visible()
    expect(page.get_by_role("link", name="Click")).to_have_count(0)
    assert page.evaluate("window.ran === undefined")


def test_pictures_are_shown_only_to_readers_of_the_item(
    shelf_page: Page, live_site: LiveSite, browser: Browser, shelf: Shelf
) -> None:
    read(shelf_page, shelf, "rich")
    picture = shelf_page.get_by_role("img", name="One point")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("naturalWidth", 1)
    source = picture.get_attribute("src")
    assert source == f"{path(shelf_page).removeprefix(live_site.url)}/assets/dot.png"
    assert shelf_page.request.get(f"{path(shelf_page)}/assets/other.png").status == 404
    with browser.new_context() as context:
        stranger = signed_in(context, live_site, live_site.link_of_someone_new())
        assert stranger.request.get(f"{live_site.url}{source}").status == 404
        assert stranger.request.get(path(shelf_page)).status == 404
        assert stranger.request.get(f"{path(shelf_page)}/text?from=0").status == 404


def test_the_table_of_contents_links_to_headings_and_marks_the_current_one(
    shelf_page: Page, shelf: Shelf
) -> None:
    read(shelf_page, shelf, "rich")
    contents = shelf_page.locator("#contents")
    expect(contents.locator("nav > ol > li > a")).to_have_text(["Measuring", "Heights"])
    expect(contents.locator("ol ol a")).to_have_text("By hand")
    contents.get_by_role("link", name="Heights").click()
    expect(shelf_page.locator("#prose h2").nth(1)).to_be_in_viewport()
    expect(shelf_page).to_have_url(re.compile(r"#f0-h\d$"))


def test_the_table_of_contents_links_to_chapters_that_are_not_loaded_yet(
    shelf_page: Page, shelf: Shelf
) -> None:
    read(shelf_page, shelf, "book")
    expect(shelf_page.locator(".fragment")).to_have_count(50)
    entry(shelf_page, CHAPTERS - 3).click()
    expect(chapter(shelf_page, CHAPTERS - 3)).to_be_in_viewport()
    expect(entry(shelf_page, CHAPTERS - 3)).to_have_attribute("aria-current", "true")
    expect(chapter(shelf_page, 1)).to_have_count(0)
    shelf_page.get_by_role("link", name="Show earlier text").click()
    expect(chapter(shelf_page, CHAPTERS - 4)).to_be_attached()
    expect(shelf_page.locator(".fragment")).to_have_count(54)
    expect(chapter(shelf_page, CHAPTERS - 3)).to_be_in_viewport()


def test_a_link_within_the_text_leads_to_a_chapter_that_is_not_loaded_yet(
    shelf_page: Page, shelf: Shelf
) -> None:
    read(shelf_page, shelf, "book")
    shelf_page.get_by_role("link", name="To the end.").click()
    expect(chapter(shelf_page, CHAPTERS)).to_be_in_viewport()


def test_without_scripts_the_whole_book_can_be_reached(browser: Browser, shelf: Shelf) -> None:
    with browser.new_context(java_script_enabled=False, storage_state=shelf.session) as context:
        plain = context.new_page()
        read(plain, shelf, "book")
        plain.locator("#contents summary").click()
        entry(plain, CHAPTERS).click()
        expect(chapter(plain, CHAPTERS)).to_be_in_viewport()
        plain.get_by_role("link", name="Show earlier text").click()
        expect(chapter(plain, CHAPTERS - 1)).to_be_attached()
        expect(chapter(plain, CHAPTERS)).to_have_count(0)
        plain.get_by_role("link", name="Read from the beginning").click()
        expect(plain.get_by_role("link", name="To the end.")).to_be_in_viewport()


def test_the_readers_place_is_remembered(shelf_page: Page, shelf: Shelf) -> None:
    read(shelf_page, shelf, "book")
    entry(shelf_page, 20).click()
    shelf_page.mouse.wheel(0, 300)
    expect(shelf_page.locator("#f20 p").first).to_be_in_viewport()
    shelf_page.wait_for_function(
        "() => nexusKept.names('place:').some((name) => nexusKept.get(name).fragment === 20)"
    )
    shelf_page.goto("about:blank")
    read(shelf_page, shelf, "book")
    expect(shelf_page.locator("#f20 p").first).to_be_in_viewport()
    expect(shelf_page.locator("#resumed")).to_be_visible()
    shelf_page.get_by_role("link", name="Start from the beginning").click()
    expect(shelf_page.locator("h1").first).to_be_in_viewport()
    shelf_page.wait_for_function("() => !Object.keys(localStorage).some((name) => name.includes(':place:'))")
    shelf_page.reload()
    expect(shelf_page.locator("h1").first).to_be_in_viewport()
    expect(shelf_page.locator("#resumed")).to_be_hidden()


def test_another_device_goes_on_where_the_first_was(browser: Browser, shelf_page: Page, shelf: Shelf) -> None:
    """It shares nothing with the first but who is signed in."""
    read(shelf_page, shelf, "book")
    with shelf_page.expect_response(lambda answer: answer.url.endswith("/progress") and answer.ok):
        entry(shelf_page, 20).click()
        expect(shelf_page.locator("#f20 p").first).to_be_in_viewport()
    with browser.new_context() as device:
        device.add_cookies(shelf_page.context.cookies())  # type: ignore[arg-type]
        page = read(device.new_page(), shelf, "book")
        expect(page.locator("#resumed")).to_be_visible()
        expect(chapter(page, 20)).to_be_in_viewport()


def test_a_place_deep_in_a_long_text_is_remembered(shelf_page: Page, shelf: Shelf) -> None:
    read(shelf_page, shelf, "book")
    entry(shelf_page, 65).click()
    expect(chapter(shelf_page, 65)).to_be_in_viewport()
    shelf_page.wait_for_function(
        "() => nexusKept.names('place:').some((name) => nexusKept.get(name).fragment === 65)"
    )
    shelf_page.goto("about:blank")
    read(shelf_page, shelf, "book")
    expect(chapter(shelf_page, 65)).to_be_in_viewport()
    shelf_page.get_by_role("link", name="Start from the beginning").click()
    expect(shelf_page.get_by_role("link", name="To the end.")).to_be_in_viewport()


def test_reader_settings_are_remembered_and_keep_the_place(shelf_page: Page, shelf: Shelf) -> None:
    size = "() => parseFloat(getComputedStyle(document.querySelector('#prose')).fontSize)"
    width = "() => document.querySelector('#prose').clientWidth"
    read(shelf_page, shelf, "book")
    before, measure = shelf_page.evaluate(size), shelf_page.evaluate(width)
    entry(shelf_page, 5).click()
    shelf_page.get_by_label("Reading settings").first.click()
    shelf_page.get_by_role("button", name="Larger text").click()
    shelf_page.get_by_role("radio", name="Narrow").check(force=True)
    shelf_page.get_by_role("radio", name="Sans").check(force=True)
    shelf_page.get_by_role("radio", name="Dark").check(force=True)
    expect(chapter(shelf_page, 5)).to_be_in_viewport()
    shelf_page.keyboard.press("Escape")
    expect(shelf_page.get_by_role("radio", name="Dark")).to_be_hidden()
    shelf_page.reload()
    assert shelf_page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 22, 25)"
    assert "sans" in shelf_page.evaluate("getComputedStyle(document.querySelector('#prose')).fontFamily")
    assert shelf_page.evaluate(width) < measure
    shelf_page.get_by_label("Reading settings").first.click()
    expect(shelf_page.locator("#size")).to_have_text("110 %")
    shelf_page.get_by_role("radio", name="Serif").check(force=True)
    assert shelf_page.evaluate(size) == pytest.approx(before * 1.1)


def test_the_keyboard_scrolls_and_resizes_the_text(shelf_page: Page, shelf: Shelf) -> None:
    read(shelf_page, shelf, "book")
    expect(entry(shelf_page, 1)).to_be_visible()
    for _ in range(3):
        shelf_page.keyboard.press("j")
    expect(entry(shelf_page, 2)).to_have_attribute("aria-current", "true")
    shelf_page.keyboard.press("k")
    expect(entry(shelf_page, 1)).to_have_attribute("aria-current", "true")
    shelf_page.keyboard.press("+")
    expect(shelf_page.locator("#size")).to_have_text("110 %")
    shelf_page.keyboard.press("-")
    shelf_page.keyboard.press("-")
    expect(shelf_page.locator("#size")).to_have_text("90 %")
    shelf_page.keyboard.press("t")
    expect(entry(shelf_page, 1)).to_be_hidden()
    shelf_page.keyboard.press("t")
    expect(entry(shelf_page, 1)).to_be_focused()
    shelf_page.keyboard.press("?")
    expect(shelf_page.get_by_role("dialog")).to_contain_text("Next and previous section")
    shelf_page.keyboard.press("+")
    expect(shelf_page.locator("#size")).to_have_text("90 %")


def test_the_reader_fits_a_phone_in_both_themes(browser: Browser, shelf: Shelf) -> None:
    with browser.new_context(viewport=PHONE, storage_state=shelf.session) as context:
        page = context.new_page()
        read(page, shelf, "rich")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        frame = page.locator(".table-frame")
        assert frame.evaluate("(frame) => frame.scrollWidth > frame.clientWidth")
        page.locator("#contents summary").click()
        page.get_by_role("link", name="Heights").click()
        expect(page.locator("#prose h2").nth(1)).to_be_in_viewport()
        expect(page.locator("#contents nav")).to_be_hidden()
        page.get_by_text("About this").click()
        weakest = weakest_text(page)
        assert weakest["ratio"] >= 4.5, weakest
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_foreign_script_reads_from_its_own_side(shelf_page: Page, shelf: Shelf) -> None:
    read(shelf_page, shelf, "rich")
    line = shelf_page.locator("#prose p").filter(has_text="المدّ")
    right = "(line) => { const range = document.createRange(); range.selectNodeContents(line);"
    right += " return line.getBoundingClientRect().right - range.getBoundingClientRect().right; }"
    assert abs(line.evaluate(right)) < 2


def test_an_author_in_a_foreign_script_stands_before_the_dot_as_others_do(
    shelf_page: Page, shelf: Shelf
) -> None:
    read(shelf_page, shelf, "rich")
    author = shelf_page.locator(".author")
    author.evaluate("(name) => (name.textContent = 'عائشة')")
    left = "(name) => { const range = document.createRange(); range.selectNodeContents(name);"
    left += " return range.getBoundingClientRect().left - name.getBoundingClientRect().left; }"
    assert abs(author.evaluate(left)) < 2


def test_an_invalid_place_in_the_text_is_refused_kindly(shelf_page: Page, shelf: Shelf) -> None:
    read(shelf_page, shelf, "article")
    here = path(shelf_page)
    for query, status in (
        ("from=-1", 400),
        ("from=x", 400),
        ("from=99999", 200),
        ("before=0", 200),
        ("view=x", 200),
    ):
        answer = shelf_page.goto(f"{here}?{query}")
        assert answer is not None
        assert answer.status == status, query
    shelf_page.goto(f"{here}?from=99999")
    expect(shelf_page.locator("#prose")).to_contain_text("Paragraph 3 ")
