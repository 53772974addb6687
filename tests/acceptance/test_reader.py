"""What the page on which things are read promises, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, StorageState, expect

from nexus.web.views.render import paragraphs
from tests.acceptance.browsing import (
    CONTRAST,
    Site,
    add,
    add_ready,
    address,
    badge,
    opened,
    signed_in,
)
from tests.page_plugin import CHAPTERS

pytestmark = pytest.mark.xdist_group("browser")
PHONE = {"width": 360, "height": 740}
TEXTS = "() => [...document.querySelectorAll('.fragment')].map((section) => section.textContent)"


@dataclass(frozen=True)
class Shelf:
    """Someone's session in a browser, and the addresses of what he has to read."""

    session: StorageState
    of: dict[str, str]


@pytest.fixture(scope="module")
def shelf(browser: Browser, site: Site) -> Shelf:
    with browser.new_context() as context:
        page = signed_in(context, site, site.link_of_someone_new())
        added = {what: add(page, address(f"{what}/tides")) for what in ("article", "rich", "book", "paper")}
        for row in added.values():
            expect(badge(row)).to_have_text("Ready to read")
        media = {what: row.get_attribute("data-media") for what, row in added.items()}
        return Shelf(
            context.storage_state(), {what: f"{site.url}/items/{each}" for what, each in media.items()}
        )


@pytest.fixture
def page(browser: Browser, site: Site, shelf: Shelf) -> Iterator[Page]:
    """His library, in a browser that remembers nothing else. Nothing in it may break, nor go against its policy."""
    complaints: list[str] = []
    with browser.new_context(storage_state=shelf.session) as context:
        opened = context.new_page()
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on("console", lambda said: complaints.append(said.text) if "Security" in said.text else None)
        yield opened
    assert complaints == []


def read(page: Page, shelf: Shelf, what: str) -> Page:
    page.goto(shelf.of[what])
    return page


def path(page: Page) -> str:
    return page.url.partition("?")[0].partition("#")[0]


def fragments_of(page: Page, site: Site) -> list[dict[str, Any]]:
    """As the API gives them."""
    media_id = path(page).rpartition("/")[2]
    answer = page.request.get(f"{site.url}/media/{media_id}/fragments", headers=site.headers(page))
    found: list[dict[str, Any]] = answer.json()["data"]["items"]
    return found


def chapter(page: Page, number: int) -> Locator:
    return page.get_by_role("heading", name=f"Chapter {number}", exact=True)


def entry(page: Page, number: int) -> Locator:
    return page.locator("#contents").get_by_role("link", name=f"Chapter {number}", exact=True)


def test_an_article_is_shown_with_all_that_is_in_it(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "rich")
    expect(page.locator(".byline")).to_contain_text("Ada Harbour")
    expect(page.locator(".byline .fact")).to_contain_text(
        ["Ada Harbour", "The Coast", "31 Jan 2026", "1 min read", "English"]
    )
    expect(page.locator("#prose")).to_have_attribute("lang", "en")
    expect(page.locator("#prose > .lead img")).to_have_attribute("src", "https://example.org/lead.png")
    expect(page.locator("#prose h1")).to_have_class("unseen")  # the title stands above already
    expect(page.locator("#prose h2")).to_have_text(["Measuring", "Heights"])
    expect(page.locator("#prose ul ul li")).to_have_text("with marks")
    expect(page.locator("#prose figcaption")).to_have_text("A point.")
    expect(page.locator("#prose code")).to_have_text('src="asset:dot.png"')
    expect(page.get_by_role("link", name="Original")).to_have_attribute(
        "href", re.compile("^https://example")
    )
    expect(page.locator(".badge")).to_have_text(["Ready to read"])


@pytest.mark.parametrize("what", ["rich", "article", "paper"])
def test_what_is_shown_is_the_text_letter_for_letter(page: Page, site: Site, shelf: Shelf, what: str) -> None:
    page.goto(f"{shelf.of[what]}?view=text")
    assert page.evaluate(TEXTS) == [fragment["text"] for fragment in fragments_of(page, site)]


def test_plain_text_keeps_every_letter(page: Page) -> None:
    texts = ["One.\n\nTwo.", "  \n\nOne\r\ntwo \n \n\n three\n", "<b>&amp;</b>\r\n\r\nend", "\n", ""]
    page.set_content("".join(f"<section>{paragraphs(text)}</section>" for text in texts))
    assert page.locator("section").evaluate_all("(all) => all.map((one) => one.textContent)") == texts


def test_html_that_nobody_cleaned_does_nothing(context: BrowserContext, site: Site) -> None:
    page = signed_in(context, site, site.link_of_someone_new())
    refused: list[str] = []
    page.on(
        "console", lambda said: refused.append(said.text) if "Content Security Policy" in said.text else None
    )
    opened(page, add_ready(page, "unclean/page"))
    expect(page.locator("#f0")).to_contain_text("After.")
    page.get_by_role("link", name="Click").click()
    page.reload()
    expect(page.locator("#f0")).to_contain_text("After.")
    expect(page.locator("main")).to_be_visible()
    assert page.evaluate("window.ran === undefined")
    assert any("script" in said for said in refused)
    assert any("style" in said for said in refused)


def test_pictures_come_along_and_only_for_who_may_read(
    page: Page, site: Site, browser: Browser, shelf: Shelf
) -> None:
    read(page, shelf, "rich")
    picture = page.get_by_role("img", name="One point")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("naturalWidth", 1)
    source = picture.get_attribute("src")
    assert source == f"{path(page).removeprefix(site.url)}/assets/dot.png"
    assert page.request.get(f"{path(page)}/assets/other.png").status == 404
    with browser.new_context() as context:
        stranger = signed_in(context, site, site.link_of_someone_new())
        assert stranger.request.get(f"{site.url}{source}").status == 404
        assert stranger.request.get(path(page)).status == 404
        assert stranger.request.get(f"{path(page)}/text?from=0").status == 404


def test_the_table_of_contents_leads_to_places_and_marks_where_one_is(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "rich")
    contents = page.locator("#contents")
    expect(contents.locator("nav > ol > li > a")).to_have_text(["Measuring", "Heights"])
    expect(contents.locator("ol ol a")).to_have_text("By hand")
    contents.get_by_role("link", name="Heights").click()
    expect(page.locator("#prose h2").nth(1)).to_be_in_viewport()
    expect(page).to_have_url(re.compile(r"#f0-h\d$"))


def test_the_table_of_contents_leads_to_what_is_not_loaded_yet(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "book")
    expect(page.locator(".fragment")).to_have_count(50)
    entry(page, CHAPTERS - 3).click()
    expect(chapter(page, CHAPTERS - 3)).to_be_in_viewport()
    expect(entry(page, CHAPTERS - 3)).to_have_attribute("aria-current", "true")
    expect(chapter(page, 1)).to_have_count(0)
    page.get_by_role("link", name="What comes before").click()
    expect(chapter(page, CHAPTERS - 4)).to_be_attached()
    expect(page.locator(".fragment")).to_have_count(54)
    expect(chapter(page, CHAPTERS - 3)).to_be_in_viewport()


def test_a_link_within_the_text_leads_to_what_is_not_loaded_yet(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "book")
    page.get_by_role("link", name="To the end.").click()
    expect(chapter(page, CHAPTERS)).to_be_in_viewport()


def test_without_scripts_the_whole_book_can_be_reached(browser: Browser, shelf: Shelf) -> None:
    with browser.new_context(java_script_enabled=False, storage_state=shelf.session) as context:
        plain = context.new_page()
        read(plain, shelf, "book")
        plain.locator("#contents summary").click()
        entry(plain, CHAPTERS).click()
        expect(chapter(plain, CHAPTERS)).to_be_in_viewport()
        plain.get_by_role("link", name="What comes before").click()
        expect(chapter(plain, CHAPTERS - 1)).to_be_attached()
        expect(chapter(plain, CHAPTERS)).to_have_count(0)
        plain.get_by_role("link", name="Read from the beginning").click()
        expect(plain.get_by_role("link", name="To the end.")).to_be_in_viewport()


def test_the_place_is_remembered(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "book")
    entry(page, 20).click()
    page.mouse.wheel(0, 300)
    expect(page.locator("#f20 p").first).to_be_in_viewport()
    page.wait_for_function(
        "() => Object.values(localStorage).some((kept) => kept.includes('\"fragment\":20'))"
    )
    page.goto("about:blank")
    read(page, shelf, "book")
    expect(page.locator("#f20 p").first).to_be_in_viewport()
    expect(page.locator("#resumed")).to_be_visible()
    page.get_by_role("link", name="Start from the beginning").click()
    expect(page.locator("h1").first).to_be_in_viewport()
    page.wait_for_function("() => !Object.keys(localStorage).some((name) => name.startsWith('nexus:place'))")
    page.reload()
    expect(page.locator("h1").first).to_be_in_viewport()
    expect(page.locator("#resumed")).to_be_hidden()


def test_a_place_deep_in_a_long_text_is_remembered(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "book")
    entry(page, 65).click()
    expect(chapter(page, 65)).to_be_in_viewport()
    page.wait_for_function(
        "() => Object.values(localStorage).some((kept) => kept.includes('\"fragment\":65'))"
    )
    page.goto("about:blank")
    read(page, shelf, "book")
    expect(chapter(page, 65)).to_be_in_viewport()
    page.get_by_role("link", name="Start from the beginning").click()
    expect(page.get_by_role("link", name="To the end.")).to_be_in_viewport()


def test_settings_are_remembered_and_keep_the_place(page: Page, shelf: Shelf) -> None:
    size = "() => parseFloat(getComputedStyle(document.querySelector('#prose')).fontSize)"
    width = "() => document.querySelector('#prose').clientWidth"
    read(page, shelf, "book")
    before, measure = page.evaluate(size), page.evaluate(width)
    entry(page, 5).click()
    page.get_by_label("Reading settings").first.click()
    page.get_by_role("button", name="Larger text").click()
    page.get_by_role("radio", name="Narrow").check(force=True)
    page.get_by_role("radio", name="Sans").check(force=True)
    page.get_by_role("radio", name="Dark").check(force=True)
    expect(chapter(page, 5)).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(page.get_by_role("radio", name="Dark")).to_be_hidden()
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 22, 25)"
    assert "sans" in page.evaluate("getComputedStyle(document.querySelector('#prose')).fontFamily")
    assert page.evaluate(width) < measure
    page.get_by_label("Reading settings").first.click()
    expect(page.locator("#size")).to_have_text("110 %")
    page.get_by_role("radio", name="Serif").check(force=True)
    assert page.evaluate(size) == pytest.approx(before * 1.1)


def test_the_keyboard_moves_and_resizes(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "book")
    expect(entry(page, 1)).to_be_visible()
    for _ in range(3):
        page.keyboard.press("j")
    expect(entry(page, 2)).to_have_attribute("aria-current", "true")
    page.keyboard.press("k")
    expect(entry(page, 1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("+")
    expect(page.locator("#size")).to_have_text("110 %")
    page.keyboard.press("-")
    page.keyboard.press("-")
    expect(page.locator("#size")).to_have_text("90 %")
    page.keyboard.press("t")
    expect(entry(page, 1)).to_be_hidden()
    page.keyboard.press("t")
    expect(entry(page, 1)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next and previous section")
    page.keyboard.press("+")
    expect(page.locator("#size")).to_have_text("90 %")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_all_of_it_in_both_themes(browser: Browser, shelf: Shelf, theme: str) -> None:
    with browser.new_context(viewport=PHONE, color_scheme=theme, storage_state=shelf.session) as context:
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
        weakest = page.evaluate(CONTRAST)
        assert weakest["ratio"] >= 4.5, (theme, weakest)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_foreign_script_reads_from_its_own_side(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "rich")
    line = page.locator("#prose p").filter(has_text="المدّ")
    right = "(line) => { const range = document.createRange(); range.selectNodeContents(line);"
    right += " return line.getBoundingClientRect().right - range.getBoundingClientRect().right; }"
    assert abs(line.evaluate(right)) < 2


def test_an_address_that_makes_no_sense_is_refused_kindly(page: Page, shelf: Shelf) -> None:
    read(page, shelf, "article")
    here = path(page)
    for query, status in (
        ("from=-1", 400),
        ("from=x", 400),
        ("from=99999", 200),
        ("before=0", 200),
        ("view=x", 200),
    ):
        answer = page.goto(f"{here}?{query}")
        assert answer is not None
        assert answer.status == status, query
    page.goto(f"{here}?from=99999")
    expect(page.locator("#prose")).to_contain_text("Paragraph 3 ")
