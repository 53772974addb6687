"""Signing in and the account page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.kit.browser import NAMELESS, PHONE, LiveSite, serving, signed_in, weakest_text, without_complaints
from tests.kit.http import NO_CERTIFICATES
from tests.kit.servers.oidc_provider import SpoiltProvider, oidc_provider

# The provider uses what its own library has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:get_jwt_config")
LOAD = "(address) => new Promise((done) => Object.assign(new Image(), {onload: done, onerror: done, src: address}))"


def test_a_picture_signs_nobody_in(context: BrowserContext, live_site: LiveSite) -> None:
    """Neither a reader who is signed in as somebody else, nor one who is not signed in."""
    link = live_site.link_of_someone_new()
    reader = signed_in(context, live_site)
    before = live_site.user_on(reader)
    reader.evaluate(LOAD, link)
    assert live_site.user_on(reader) == before
    context.clear_cookies()
    reader.goto(f"{live_site.url}/docs")
    reader.evaluate(LOAD, link)
    assert context.cookies() == []
    reader.goto(link)
    reader.get_by_role("button", name="Sign in").click()
    expect(reader.get_by_role("button", name="Add")).to_be_visible()


def test_a_link_of_another_user_warns_the_reader(context: BrowserContext, live_site: LiveSite) -> None:
    page = signed_in(context, live_site)
    page.goto(live_site.link_of_someone_new())
    expect(page.get_by_role("alert")).to_contain_text("a different user")


def test_another_browser_is_signed_out_from_the_account_page(
    browser: Browser, page: Page, live_site: LiveSite
) -> None:
    with browser.new_context() as elsewhere:
        other = signed_in(elsewhere, live_site, live_site.link_of(live_site.user_on(page)))
        page.get_by_role("link", name="Account").click()
        rows = page.locator(".held").filter(has_text="Signed in")
        expect(rows).to_have_count(2)
        rows.filter(has_not_text="This browser").get_by_role("button", name="Sign out").click()
        expect(rows).to_have_count(1)
        other.reload()
        expect(other.get_by_role("heading", name="Sign in to Nexus")).to_be_visible()
    page.reload()
    expect(page.get_by_text("This browser")).to_be_visible()


def test_a_token_is_made_shown_once_and_taken_back(page: Page, live_site: LiveSite) -> None:
    page.goto(f"{live_site.url}/account")
    page.get_by_label("Name of a new token").fill("My phone")
    page.get_by_label("It may").select_option("read")
    page.get_by_role("button", name="Make a token").click()
    secret = page.get_by_label("The new token").input_value()

    def status() -> int:
        return httpx2.get(
            f"{live_site.url}/media", headers={"Authorization": f"Bearer {secret}"}, verify=NO_CERTIFICATES
        ).status_code

    assert status() == 200
    page.goto(f"{live_site.url}/account")
    expect(page.get_by_label("The new token")).to_have_count(0)
    page.get_by_role("button", name="Revoke My phone").click()
    expect(page.get_by_text("My phone")).to_have_count(0)
    assert status() == 401


def test_the_pages_can_be_read_on_a_phone_and_by_a_screen_reader(
    browser: Browser, live_site: LiveSite
) -> None:
    with browser.new_context(viewport=PHONE) as context:
        page = signed_in(context, live_site, live_site.link_of_someone_new())
        for address in (f"{live_site.url}/account", live_site.link):
            page.goto(address)
            with without_complaints(page):
                page.reload()
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], page.url
            weakest = weakest_text(page)
            assert weakest["ratio"] >= 4.5, (page.url, weakest)
            assert page.evaluate(NAMELESS) == [], page.url


@pytest.fixture(scope="module")
def provider() -> Iterator[SpoiltProvider]:
    with oidc_provider() as running:
        yield running


@pytest.fixture(scope="module")
def team_site(tmp_path_factory: pytest.TempPathFactory, provider: SpoiltProvider) -> Iterator[LiveSite]:
    given = {
        "NEXUS_OIDC_ISSUER": provider.url,
        "NEXUS_OIDC_CLIENT_ID": "nexus",
        "NEXUS_OIDC_CLIENT_SECRET": "a secret of the client",
        "NEXUS_OIDC_NAME": "Example ID",
    }
    folder: Path = tmp_path_factory.mktemp("team")
    with serving(folder, **given) as running:
        yield running


def test_a_team_member_signs_in_and_out_at_the_provider(context: BrowserContext, team_site: LiveSite) -> None:
    page = context.new_page()
    with without_complaints(page):
        page.goto(f"{team_site.url}/account")
        page.get_by_role("link", name="Sign in with Example ID").click()
        page.locator("input[name=sub]").fill("alice@example.com")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{team_site.url}/account")
        expect(page.get_by_text("at the identity provider")).to_be_visible()
        page.get_by_role("banner").get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(f"{team_site.url}/sign-in?left=oidc")
        page.get_by_role("link", name="Sign out there too").click()
        expect(page).to_have_url(re.compile(r"/oauth2/end_session\?"))
