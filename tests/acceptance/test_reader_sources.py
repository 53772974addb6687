"""What the reader promises about sources, in a real browser: PDFs, refreshes, the original."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect

from tests.kit.browser import (
    LiveSite,
    add,
    add_failed,
    add_ready,
    address,
    badge,
    launch,
    opened,
    signed_in,
    without_complaints,
)
from tests.kit.browser_uploads import choose, item, pdf

#: Whether the browser's own viewer has loaded the PDF.
VIEWER = re.compile(r"chrome-extension://")


@pytest.fixture(scope="module")
def whole_browser(playwright: Playwright) -> Iterator[Browser]:
    opened = launch(playwright, shows_pdfs=True)
    yield opened
    opened.close()


@pytest.fixture
def pdf_page(whole_browser: Browser, live_site: LiveSite) -> Iterator[Page]:
    """The empty library of a new user, in a browser that shows PDFs."""
    with whole_browser.new_context() as context:
        page = signed_in(context, live_site, live_site.link_of_someone_new())
        with without_complaints(page):
            yield page


def test_a_pdf_is_shown_as_its_pages(pdf_page: Page, live_site: LiveSite, browser: Browser) -> None:
    file = pdf("almanac.pdf")
    choose(pdf_page, file)
    expect(badge(item(pdf_page, "almanac"))).to_have_text("Queued (processor unavailable)")
    with pdf_page.expect_event("framenavigated", lambda frame: bool(VIEWER.match(frame.url))):
        opened(pdf_page, item(pdf_page, "almanac"))
    expect(pdf_page.locator("#pages")).to_be_visible()
    shown = pdf_page.request.get(f"{pdf_page.url}/pdf")
    assert shown.body() == file["buffer"]
    assert shown.headers["content-type"] == "application/pdf"
    assert shown.headers["content-disposition"].startswith("inline;")
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'self'" in shown.headers["content-security-policy"]
    with browser.new_context() as context:
        stranger = signed_in(context, live_site, live_site.link_of_someone_new())
        assert stranger.request.get(f"{pdf_page.url}/pdf").status == 404


def test_a_page_that_is_a_pdf_has_pages_and_text(pdf_page: Page) -> None:
    opened(pdf_page, add_ready(pdf_page, "paper/tides"))
    expect(pdf_page.locator("#pages")).to_be_visible()
    pdf_page.get_by_role("link", name="Text", exact=True).click()
    expect(pdf_page.locator(".fragment").first).to_have_attribute("data-page", "1")
    expect(pdf_page.locator("#f1")).to_have_text("The second page.")
    with pdf_page.expect_event("framenavigated", lambda frame: bool(VIEWER.match(frame.url))):
        pdf_page.get_by_role("link", name="Pages", exact=True).click()
    expect(pdf_page.locator(".fragment")).to_have_count(0)


def test_a_pdf_without_text_is_shown_as_its_pages(page: Page) -> None:
    opened(page, add_failed(page, "scanned/tides"))
    expect(page.locator("#state")).to_contain_text("E_PDF_NO_TEXT")
    expect(page.locator("#pages")).to_be_visible()
    expect(page.locator(".fragment")).to_have_count(0)
    expect(page.get_by_role("link", name="Text", exact=True)).to_have_count(0)


def test_an_item_without_a_pdf_shows_none(page: Page) -> None:
    opened(page, add_ready(page, "article/tides"))
    assert page.request.get(f"{page.url}/pdf").status == 404
    page.goto(f"{page.url}?view=pages")
    expect(page.locator("#f0")).to_be_visible()
    expect(page.locator("#pages")).to_have_count(0)


def test_a_refresh_brings_the_new_text_or_keeps_the_old(page: Page, live_site: LiveSite) -> None:
    url = address("renewed/tides")
    name = url.rpartition("/")[2]
    added = add(page, url)
    expect(badge(added)).to_have_text("Ready")
    opened(page, added)
    expect(page.locator("#f0")).to_have_text("As it was at first.")
    live_site.let(name)
    page.evaluate("window.stayed = true")
    page.get_by_text("About this").click()
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#f0")).to_have_text("It was changed.")
    expect(page.locator("#refresh")).to_contain_text("This is the latest text.")
    expect(page.locator("#facts")).to_contain_text("version 2")
    live_site.let(f"{name}-gone")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#refresh")).to_contain_text("The source answered that it is gone.")
    expect(page.locator("#f0")).to_have_text("It was changed.")
    assert page.evaluate("window.stayed")
    page.reload()
    expect(page.get_by_role("button", name="Refresh")).to_be_visible()
    expect(page.locator("#refresh")).to_contain_text("E_FETCH_FAILED")


def test_versions_are_compared_and_the_old_one_is_used_again(page: Page, live_site: LiveSite) -> None:
    url = address("renewed/versions")
    added = add(page, url)
    expect(badge(added)).to_have_text("Ready")
    opened(page, added)
    item = page.url
    live_site.let(url.rpartition("/")[2])
    page.get_by_text("About this").click()
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("#f0")).to_have_text("It was changed.")

    page.goto(f"{item}/versions")
    expect(page.locator(".version")).to_have_count(2)
    expect(page.locator("#version-2")).to_contain_text("current version")
    page.get_by_role("button", name="Compare the two").click()
    expect(page.locator("del").first).to_be_visible()
    expect(page.locator("ins").first).to_be_visible()

    page.goto(f"{item}?revision=1")
    expect(page.locator("#f0")).to_have_text("As it was at first.")
    expect(page.get_by_text("Your library has another one.")).to_be_visible()
    page.get_by_role("button", name="Use this version").click()
    expect(page).to_have_url(item)
    expect(page.locator("#f0")).to_have_text("As it was at first.")
    page.goto(f"{item}/versions")
    page.get_by_role("button", name="Use this version").click()
    expect(page.locator("#f0")).to_have_text("It was changed.")


def test_a_refresh_works_without_scripts(browser: Browser, page: Page, live_site: LiveSite) -> None:
    url = address("renewed/plain")
    added = add(page, url)
    expect(badge(added)).to_have_text("Ready")
    opened(page, added)
    live_site.let(url.rpartition("/")[2])
    session = page.context.storage_state()
    with browser.new_context(java_script_enabled=False, storage_state=session) as context:
        plain = context.new_page()
        plain.goto(page.url)
        plain.get_by_text("About this").click()
        plain.get_by_role("button", name="Refresh").click()
        for _ in range(100):
            if plain.locator("#f0").inner_text() == "It was changed.":
                break
            plain.reload()
        expect(plain.locator("#f0")).to_have_text("It was changed.")


@pytest.mark.parametrize("what", ["walled/page", "never/page"])
def test_the_original_is_offered_if_there_is_no_text(page: Page, what: str) -> None:
    failed = add_failed(page, what)
    for place in (failed, page.locator("#state")):
        way_on = place.get_by_role("link", name="Open the original")
        expect(way_on).to_have_attribute("href", re.compile("^https://example.com/"))
        expect(way_on).to_have_attribute("rel", "noopener noreferrer")
        if place is failed:
            opened(page, failed)
    expect(page.locator("#text")).to_contain_text("There is no text to read")
    expect(page.get_by_role("button", name="Refresh")).to_have_count(0)
