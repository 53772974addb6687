"""Feeds in a real browser: found, looked at, subscribed to, read, paused and left again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from tests.kit.accessibility import violations
from tests.kit.browser import LiveSite, serving, signed_in, without_complaints
from tests.kit.feeds import RSS, Story, dated, episode, rss
from tests.kit.servers.web_pages import Answer, Pages

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def sites() -> Iterator[Pages]:
    with Pages() as running:
        shows = [episode(f"Talk {day}", date=dated(day)) for day in range(1, 10)]
        running["/podcast"] = Answer(rss(shows, "Harbour Radio"), RSS)
        stories = [Story(f"Story {day}", date=dated(day)) for day in range(1, 4)]
        running["/blog"] = Answer(rss(stories, "Harbour News"), RSS)
        running["/site"] = Answer(
            b'<!doctype html><title>x</title><link rel="alternate" type="application/rss+xml" href="/blog">'
        )
        running["/page"] = Answer(b"<!doctype html><title>x</title><p>No feed here.")
        yield running


@pytest.fixture(scope="module")
def live_site(tmp_path_factory: pytest.TempPathFactory, sites: Pages) -> Iterator[LiveSite]:
    more = {"NEXUS_FETCH_ALLOW": sites.place, "NEXUS_FETCH_DELAY_SECONDS": "0"}
    with serving(tmp_path_factory.mktemp("feeds"), **more) as running:
        yield running


@pytest.fixture
def page(browser: Browser, live_site: LiveSite) -> Iterator[Page]:
    with browser.new_context() as context:
        opened = signed_in(context, live_site, live_site.link_of_someone_new())
        with without_complaints(opened):
            yield opened


def look_up(page: Page, live_site: LiveSite, address: str) -> None:
    page.goto(f"{live_site.url}/following")
    page.get_by_label("Address of a podcast").fill(address)
    page.keyboard.press("Enter")


def subscribe(page: Page, live_site: LiveSite, address: str, first: str = "3") -> None:
    look_up(page, live_site, address)
    page.get_by_label("How many of the latest").select_option(first)
    page.get_by_role("button", name="Subscribe").click()
    expect(page).to_have_url(re.compile("/following/[0-9a-f-]{36}$"))


def opml(content: bytes) -> FilePayload:
    return {"name": "feeds.opml", "mimeType": "text/x-opml", "buffer": content}


def import_feed(page: Page, address: str) -> None:
    page.locator("summary", has_text="Import OPML").click()
    outlines = f'<outline text="News" xmlUrl="{address}"/><outline xmlUrl="javascript:alert(1)"/>'
    content = f'<opml version="2.0"><body>{outlines}</body></opml>'
    page.get_by_label("OPML file").set_input_files(opml(content.encode()))
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("1 feed was added.")).to_be_visible()


def reload_until_there(page: Page, text: str) -> None:
    for _ in range(100):
        if page.get_by_text(text, exact=True).count():
            return
        page.reload()
    expect(page.get_by_text(text, exact=True).first).to_be_visible()


def test_a_podcast_is_looked_at_and_subscribed_to(page: Page, live_site: LiveSite, sites: Pages) -> None:
    page.goto(live_site.url)
    page.get_by_role("link", name="Feeds").click()
    expect(page.get_by_text("You follow nothing yet")).to_be_visible()
    look_up(page, live_site, sites.url("/podcast"))
    expect(page.get_by_role("heading", name="Harbour Radio")).to_be_visible()
    expect(page.locator(".glimpses li").first).to_contain_text("Talk 9")
    assert violations(page) == []
    page.set_viewport_size({"width": 1280, "height": 860})
    page.get_by_label("How many of the latest").select_option("1")
    page.get_by_role("button", name="Subscribe").click()
    expect(page).to_have_url(re.compile("/following/[0-9a-f-]{36}$"))
    reload_until_there(page, "Talk 9")
    expect(page.locator("#feed-items .item-title").first).to_have_text("Talk 9")
    reload_until_there(page, "In your library")
    expect(page.get_by_text("In your library", exact=True)).to_have_count(1)
    page.get_by_role("button", name=re.compile("Take in ?: Talk 4")).click()
    expect(page.get_by_text("In your library", exact=True)).to_have_count(2)
    assert violations(page) == []
    page.set_viewport_size({"width": 1280, "height": 860})
    page.get_by_role("link", name="Previews").click()
    expect(page.locator("#feed-items > li")).to_have_count(7)
    page.goto(live_site.url)
    expect(page.locator(".item .show").first).to_have_text("Harbour Radio")


def test_a_site_leads_to_its_feed_and_a_page_without_one_says_so(
    page: Page, live_site: LiveSite, sites: Pages
) -> None:
    look_up(page, live_site, sites.url("/site"))
    expect(page.get_by_role("heading", name="Harbour News")).to_be_visible()
    expect(page.get_by_label("How many of the latest")).to_have_value("0")
    look_up(page, live_site, sites.url("/page"))
    expect(page.get_by_role("alert")).to_contain_text("No feed was found")
    expect(page.get_by_label("Address of a podcast")).to_have_value(sites.url("/page"))
    assert violations(page) == []
    look_up(page, live_site, "http://10.0.0.1/feed")
    expect(page.get_by_role("alert")).not_to_be_empty()


def test_what_a_first_poll_has_brought_appears_by_itself(
    page: Page, live_site: LiveSite, sites: Pages
) -> None:
    sites["/held/blog"] = sites["/blog"]
    page.goto(f"{live_site.url}/following")
    import_feed(page, sites.url("/held/blog"))
    page.locator(".feed .item-title a").click()
    expect(page.get_by_text("Nexus will read it in a moment.")).to_be_visible()
    sites.gate.set()
    expect(page.get_by_text("Story 3", exact=True)).to_be_visible()
    expect(page.get_by_text("Last read")).to_be_visible()
    expect(page.locator("summary", has_text="Take in all older")).to_be_visible()


def test_a_subscription_is_paused_resumed_and_left(page: Page, live_site: LiveSite, sites: Pages) -> None:
    subscribe(page, live_site, sites.url("/blog"), "1")
    reload_until_there(page, "Story 3")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".badge").first).to_have_text("Paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".badge").first).to_have_text("Active")
    page.get_by_role("button", name="Take in new items").click()
    expect(page.get_by_role("button", name="Take in new items")).to_have_attribute("aria-pressed", "true")
    page.locator("summary", has_text="Take in all older").click()
    page.get_by_role("button", name=re.compile("^Take in 2")).click()
    expect(page.locator("summary", has_text="Take in all older")).to_have_count(0)
    page.goto(f"{live_site.url}/following")
    expect(page.locator(".feed")).to_contain_text("of 3 taken in")
    page.get_by_role("link", name="Harbour News").click()
    page.locator("summary", has_text="Unsubscribe").click()
    assert violations(page) == []
    page.set_viewport_size({"width": 1280, "height": 860})
    page.get_by_role("button", name="Remove them and unsubscribe").click()
    expect(page.get_by_text("You follow nothing yet")).to_be_visible()
    page.goto(live_site.url)
    expect(page.locator("#items .item")).to_have_count(0)


def test_the_items_of_a_feed_stay_if_its_reader_says_so(
    page: Page, live_site: LiveSite, sites: Pages
) -> None:
    subscribe(page, live_site, sites.url("/blog"), "1")
    reload_until_there(page, "In your library")
    page.locator("summary", has_text="Unsubscribe").click()
    page.get_by_role("button", name="Keep them and unsubscribe").click()
    expect(page.get_by_text("You follow nothing yet")).to_be_visible()
    page.goto(live_site.url)
    expect(page.locator("#items .item")).to_have_count(1)


def test_subscriptions_go_in_and_out_as_opml(page: Page, live_site: LiveSite, sites: Pages) -> None:
    page.goto(f"{live_site.url}/following")
    import_feed(page, sites.url("/blog"))
    assert violations(page) == []
    page.set_viewport_size({"width": 1280, "height": 860})
    with page.expect_download() as found:
        page.get_by_role("link", name="Export OPML").click()
    assert sites.url("/blog").encode() in found.value.path().read_bytes()
    page.locator("summary", has_text="Import OPML").click()
    page.get_by_label("OPML file").set_input_files(opml(b"no outline at all"))
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("alert")).not_to_be_empty()


def test_a_feed_that_is_gone_says_so(page: Page, live_site: LiveSite, sites: Pages) -> None:
    sites["/fleeting"] = Answer(b"gone", status=410)
    page.goto(f"{live_site.url}/following")
    import_feed(page, sites.url("/fleeting"))
    expect(page.locator(".feed .badge")).to_have_text("Gone")  # without a reload
    page.locator(".feed .item-title a").click()
    expect(page).to_have_url(re.compile("/following/[0-9a-f-]{36}$"))
    expect(page.locator(".failure")).to_contain_text("no longer exists")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert violations(page) == []
    page.goto(f"{live_site.url}/following")
    expect(page.locator(".feed-trouble")).to_be_visible()
    assert violations(page) == []
