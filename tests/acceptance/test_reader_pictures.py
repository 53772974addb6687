"""Reading leaves no trace: the pictures of an article come from Nexus, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from nexus.app import App
from nexus.settings import Settings
from tests.kit.browser import without_complaints
from tests.kit.http import Site
from tests.kit.pictures import fetch_pictures, illustrated, png
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.settings import make_settings
from tests.kit.sign_ins import link_key

pytestmark = pytest.mark.wall_clock
TEXT = "() => document.querySelector('#f0').textContent"


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path, pages: Pages) -> Settings:
    return make_settings(sqlite_url, tmp_path, fetch_allow=[pages.place], fetch_delay_seconds=0)


@pytest.fixture
def user() -> UUID:
    return uuid4()


@pytest.fixture
def reader_page(context: BrowserContext, site: Site, user: UUID) -> Iterator[Page]:
    page = context.new_page()
    page.goto(f"{site.url}/sign-in?token={link_key(site.app.sessions, user)}")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")
    with without_complaints(page):
        yield page


def article(app: App, pages: Pages, user: UUID) -> UUID:
    """With three pictures: two that are there, and one that is gone."""
    for name, colour in (("lead", (40, 90, 160)), ("harbour", (200, 120, 60))):
        pages[f"/{name}.png"] = Answer(png(320, 180, colour), "image/png")
    sources = [pages.url(f"/{name}.png") for name in ("harbour", "gone")]
    return illustrated(app, *sources, user=user, lead=pages.url("/lead.png"))


def hosts_asked(page: Page) -> set[str]:
    """Filled with the host of every request that the page sends from now on."""
    hosts: set[str] = set()
    page.on("request", lambda sent: hosts.add(urlsplit(sent.url).netloc))
    return hosts


def test_the_pictures_of_an_article_come_from_nexus_and_no_other_host_is_asked(
    reader_page: Page, site: Site, pages: Pages, user: UUID
) -> None:
    media_id = article(site.app, pages, user)
    fetch_pictures(site.app, media_id)
    asked, hosts = len(pages.asked), hosts_asked(reader_page)
    answer = reader_page.goto(f"{site.url}/items/{media_id}")
    assert answer is not None
    assert "img-src 'self';" in answer.headers["content-security-policy"]
    picture = reader_page.get_by_role("img", name="Picture 0")
    picture.scroll_into_view_if_needed()
    for shown in (picture, reader_page.locator(".lead img")):
        expect(shown).to_have_js_property("naturalWidth", 320)
    missing = reader_page.get_by_role("img", name="Picture 1")
    expect(missing).to_have_class("picture missing")
    words = "(node) => ['::before', '::after'].map((part) => getComputedStyle(node, part).content)"
    assert missing.evaluate(words) == ['"Picture 1"', '"This picture could not be fetched."']
    assert reader_page.evaluate(TEXT) == "Some words.", "alternative texts are not part of the text"
    assert hosts == {urlsplit(site.url).netloc}
    assert len(pages.asked) == asked


def test_a_picture_that_arrives_is_shown_on_the_open_page(
    reader_page: Page, site: Site, pages: Pages, user: UUID
) -> None:
    media_id = article(site.app, pages, user)
    reader_page.goto(f"{site.url}/items/{media_id}")
    expect(reader_page.locator("#prose img")).to_have_count(0)
    expect(reader_page.locator(".picture.waiting")).to_have_count(2)
    fetch_pictures(site.app, media_id)
    expect(reader_page.get_by_role("img", name="Picture 0")).to_have_attribute("width", "320")
    expect(reader_page.get_by_role("img", name="Picture 1")).to_have_class("picture missing")
    assert reader_page.evaluate(TEXT) == "Some words."
