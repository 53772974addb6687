"""What the pages promise, in a real browser."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.kit.browser import (
    LiveSite,
    add,
    add_failed,
    add_ready,
    address,
    badge,
    opened,
    reload_until,
    row,
    serving,
    signed_in,
    weakest_text,
)
from tests.kit.plugins.page_articles import HOSTILE

PHONE = {"width": 360, "height": 740}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00")


def test_the_printed_link_signs_in(context: BrowserContext, live_site: LiveSite) -> None:
    page = context.new_page()
    page.goto(live_site.printed_link)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{live_site.url}/")
    expect(page.get_by_role("button", name="Add")).to_be_visible()


def test_the_owner_is_told_a_command_that_works(context: BrowserContext, live_site: LiveSite) -> None:
    page = signed_in(context, live_site)
    page.goto(f"{live_site.url}/sharing")
    page.get_by_label("New library").fill("Still empty")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("link", name="Open the library").click()
    told = f"add https://example.com/an-article --data-dir {live_site.data}"
    expect(page.locator(".empty .command")).to_contain_text(told)


def test_a_wrong_sign_in_link_is_refused_kindly(context: BrowserContext, live_site: LiveSite) -> None:
    page = context.new_page()
    answer = page.goto(f"{live_site.url}/sign-in?token=wrong")
    assert answer is not None
    assert answer.status == 401
    expect(page.get_by_role("alert")).to_contain_text("has expired, or is not complete")
    expect(page.locator("main")).to_contain_text("nexus token --link")
    assert context.cookies() == []


@pytest.mark.parametrize("path", ["/", f"/items/{UUID(int=1)}", f"/items/{UUID(int=1)}/row"])
def test_without_a_session_a_page_says_how_to_sign_in(
    context: BrowserContext, live_site: LiveSite, path: str
) -> None:
    page = context.new_page()
    answer = page.goto(live_site.url + path)
    assert answer is not None
    assert answer.status == 401
    expect(page.locator("main")).to_contain_text("nexus token --link")


def test_the_session_cookie_is_out_of_reach_for_scripts_and_other_sites(
    page: Page, live_site: LiveSite
) -> None:
    (cookie,) = page.context.cookies(live_site.url)
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/")
    assert page.evaluate("document.cookie") == ""


def test_signing_out_ends_the_session(page: Page, live_site: LiveSite) -> None:
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Nexus")).to_be_visible()
    answer = page.goto(live_site.url)
    assert answer is not None
    assert answer.status == 401


def test_a_newcomer_is_told_what_to_do(page: Page) -> None:
    expect(page.get_by_role("heading", name="Nothing here yet")).to_be_visible()
    expect(page.get_by_text("In a terminal")).to_have_count(0)  # it would add for the owner
    add(page, address("article/first"))
    expect(page.get_by_role("heading", name="Nothing here yet")).to_be_hidden()


def test_an_added_item_appears_and_becomes_ready_without_a_reload(page: Page, live_site: LiveSite) -> None:
    page.evaluate("window.stayed = true")
    url = address("held/lighthouse")
    added = add(page, url)
    expect(badge(added)).to_have_text("Extracting")
    live_site.let(url.rpartition("/")[2])
    expect(badge(added)).to_have_text("Ready")
    expect(added).to_contain_text("Lighthouse")
    assert page.evaluate("window.stayed")


def test_an_added_item_appears_in_another_window(page: Page, live_site: LiveSite) -> None:
    other = page.context.new_page()
    other.goto(live_site.url)
    url = address("article/seen-elsewhere")
    add(page, url)
    expect(badge(row(other, url))).to_have_text("Ready")
    assert row(other, url).count() == 1


def test_a_filtered_list_shows_live_what_belongs_to_it(page: Page, live_site: LiveSite) -> None:
    """And what changes by itself stays where it is seen, with its new state, until the list is opened again."""
    working, ready, archive = (page.context.new_page() for _ in range(3))
    for other, filters in ((working, "show=working"), (ready, "show=ready"), (archive, "show=archive")):
        other.goto(f"{live_site.url}/?{filters}")
    url = address("held/narrowed")
    add(page, url)
    expect(row(working, url)).to_be_visible()
    expect(row(ready, url)).to_have_count(0)
    live_site.let(url.rpartition("/")[2])
    expect(row(ready, url)).to_be_visible()
    expect(badge(row(working, url))).to_have_text("Ready")
    expect(row(archive, url)).to_have_count(0)
    working.reload()
    expect(row(working, url)).to_have_count(0)
    for other in (working, ready, archive):
        other.close()


def test_adding_an_address_twice_shows_one_row(page: Page) -> None:
    url = address("article/twice")
    add(page, url)
    expect(badge(add(page, url))).to_have_text("Ready")
    expect(page.locator("#add-said")).to_contain_text("already")
    expect(row(page, url)).to_have_count(1)


def test_a_failure_says_where_why_and_what_next_and_retry_works(page: Page) -> None:
    added = add_failed(page, "fails-once/tides")
    expect(added).to_contain_text("Couldn't extract the text")
    expect(added).to_contain_text("Its text could not be extracted.")
    expect(added).to_contain_text("Retry once; if it fails again")
    added.get_by_role("button", name="Retry").click()
    expect(badge(added)).to_have_text("Ready")
    expect(added.get_by_role("button", name="Retry")).to_have_count(0)


def test_only_failed_items_can_be_retried(page: Page) -> None:
    ready = add_ready(page, "article/calm")
    expect(ready.get_by_role("button", name="Retry")).to_have_count(0)
    opened(page, ready)
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)


def test_an_item_without_a_processor_is_shown_as_queued(page: Page) -> None:
    page.locator("#url").fill("https://www.youtube.com/watch?v=abcdefghijk")
    page.get_by_role("button", name="Add").click()
    video = page.locator(".item").filter(has_text="abcdefghijk")
    expect(badge(video)).to_have_text("Queued (processor unavailable)")
    opened(page, video)
    expect(badge(page)).to_have_text("Queued (processor unavailable)")
    expect(page.get_by_role("button", name="Play from YouTube")).to_be_visible()
    original = page.get_by_role("link", name="Original")
    expect(original).to_have_attribute("href", "https://www.youtube.com/watch?v=abcdefghijk")
    expect(original).to_have_attribute("rel", "noopener noreferrer")


def test_a_retried_item_without_a_processor_is_shown_as_queued(page: Page, live_site: LiveSite) -> None:
    add(page, "https://youtu.be/unreadvide0")
    video = page.locator(".item").filter(has_text="unreadvide0")
    expect(badge(video)).to_have_text("Queued (processor unavailable)")
    live_site.fail(video.get_attribute("data-media") or "")
    expect(badge(video)).to_have_text("Failed")
    expect(video).to_contain_text("Nexus has no processor for this kind yet.")
    video.get_by_role("button", name="Retry").click()
    expect(badge(video)).to_have_text("Queued (processor unavailable)")


def test_a_bad_address_says_why_and_keeps_what_was_typed(page: Page) -> None:
    page.locator("#url").fill("ftp://example.com/<file>")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("starts with http:")
    expect(page.locator("#url")).to_have_value("ftp://example.com/<file>")


def test_a_used_up_allowance_is_reported_next_to_the_form(tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path / "site", NEXUS_QUOTA_INGEST_URLS="0") as poor, browser.new_context() as context:
        page = signed_in(context, poor)
        page.locator("#url").fill("https://example.com/one-more")
        page.locator("#url").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("used up your allowance")
        expect(page.locator("#url")).to_have_value("https://example.com/one-more")


def test_the_library_works_without_scripts(browser: Browser, live_site: LiveSite) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = signed_in(context, live_site)
        add(page, address("article/plain"))
        page.locator("#url").fill("nonsense")
        page.get_by_role("button", name="Add").click()
        expect(page.locator("#add-said")).to_contain_text("not a web address")
        expect(page.locator("#url")).to_have_value("nonsense")
        page.goto(live_site.url)
        failed = add(page, address("never/plain"))
        reload_until(page, failed, "Failed")
        failed.get_by_role("button", name="Retry").click()
        opened(page, failed)
        page.get_by_text("Remove…").click()
        page.get_by_role("button", name="Remove it").click()
        expect(failed).to_have_count(0)


def test_a_hostile_title_is_only_text(page: Page) -> None:
    added = add(page, address("hostile/page"))
    hostile = page.locator(".item").filter(has_text="window.ran")
    expect(hostile.locator("h2").first).to_have_text(HOSTILE)
    opened(page, hostile.first)
    expect(page.locator("h1")).to_have_text(HOSTILE)
    expect(page.locator("#prose")).to_contain_text(HOSTILE)
    assert page.evaluate("window.ran === undefined")
    assert page.locator("main img, main script").count() == 0
    assert added.count() == 0


def test_the_page_of_an_item_shows_its_history_live(page: Page, live_site: LiveSite) -> None:
    url = address("held/story")
    opened(page, add(page, url))
    story = page.locator(".timeline-move")
    expect(story).to_have_text(["pending", "pending → extracting"])
    expect(page.locator("#text")).to_contain_text("appears here as soon as it is ready")
    live_site.let(url.rpartition("/")[2])
    expect(story).to_have_text(["pending", "pending → extracting", "extracting → ready_for_reading"])
    expect(page.locator("#prose p").first).to_contain_text("Paragraph 1")
    expect(page.locator(".timeline-facts")).to_contain_text(["by you", "by Nexus", "by Nexus"])
    expect(page.locator(".timeline-attempt").first).to_have_text("Attempt 1")
    expect(page.locator(".timeline-attempt").first).to_be_hidden()
    page.get_by_text("About this").click()
    page.locator(".timeline .details summary").nth(1).click()
    expect(page.locator(".timeline-attempt").first).to_be_visible()
    expect(page.locator(".timeline time").first).to_have_attribute("datetime", MOMENT)


def test_the_history_of_a_failed_item_shows_its_code_and_the_retry(page: Page) -> None:
    opened(page, add_failed(page, "fails-once/story"))
    expect(page.locator(".timeline li").last).to_contain_text("E_EXTRACTION_FAILED")
    page.get_by_role("button", name="Retry").click()
    expect(badge(page)).to_have_text("Ready")
    expect(page.locator(".timeline-move").nth(3)).to_have_text("failed → pending")
    expect(page.locator("#prose")).to_contain_text("Paragraph 1")


def test_removing_an_item_asks_first(page: Page, live_site: LiveSite) -> None:
    added = add_ready(page, "article/unwanted")
    opened(page, added)
    page.get_by_text("About this").click()
    expect(page.get_by_role("button", name="Remove it")).to_be_hidden()
    page.get_by_text("Remove…").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page).to_have_url(f"{live_site.url}/")
    expect(added).to_have_count(0)


def test_selected_items_are_removed_together(page: Page) -> None:
    one, two, kept = (add(page, address(f"article/chosen-{name}")) for name in ("one", "two", "kept"))
    expect(page.get_by_role("button", name="Retry selected")).to_be_hidden()
    for item in (one, two):
        expect(badge(item)).to_have_text("Ready")
        item.get_by_role("checkbox").check()
    page.get_by_text("Remove selected…").click()
    page.get_by_role("button", name="Remove them").click()
    expect(page.get_by_role("status").filter(has_text="2 items were removed.")).to_be_visible()
    expect(one).to_have_count(0)
    expect(two).to_have_count(0)
    expect(kept).to_have_count(1)


def test_the_list_can_be_filtered_by_status(page: Page) -> None:
    failed, ready = add_failed(page, "never/narrow"), add_ready(page, "article/narrow")
    page.get_by_role("link", name="Failed", exact=True).click()
    expect(failed).to_be_visible()
    expect(ready).to_have_count(0)
    page.get_by_role("link", name="Ready", exact=True).click()
    expect(ready).to_be_visible()
    expect(failed).to_have_count(0)


def test_pages_never_scroll_sideways_on_a_phone(browser: Browser, live_site: LiveSite) -> None:
    with browser.new_context(viewport=PHONE, color_scheme="dark", device_scale_factor=2) as context:
        page = signed_in(context, live_site)
        added = add_failed(page, "never/" + "a-very-long-name" * 8)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        # The words of a row have all of its width but that of the box to tick.
        words = added.locator(".item-words").bounding_box()
        assert words is not None
        assert words["x"] < PHONE["width"] / 4
        opened(page, added)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        for path in ("/docs", "/sign-in"):
            page.goto(live_site.url + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path


def test_the_keyboard_alone_can_add_and_open(page: Page) -> None:
    keys = page.keyboard
    keys.press("n")
    expect(page.locator("#url")).to_be_focused()
    url = address("article/by-hand")
    keys.type(url)
    keys.press("Enter")
    expect(badge(row(page, url))).to_have_text("Ready")
    page.reload()
    keys.press("j")
    keys.press("j")
    keys.press("k")
    link = page.locator(".item-title a").first
    expect(link).to_be_focused()
    for key, mark in (("f", "favourite"), ("r", "read")):
        keys.press(key)
        expect(page.locator(f".item .mark-{mark}")).to_have_attribute("aria-pressed", "true")
        expect(link).to_be_focused()
    keys.press("r")
    expect(page.locator(".item .mark-read")).to_have_attribute("aria-pressed", "false")
    keys.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    keys.press("Enter")
    expect(page.locator("h1")).to_contain_text("By hand")
    keys.press("a")
    expect(page.locator(".mark-archived")).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(page.locator(".item")).to_have_count(0)


def test_nothing_is_drawn_over_the_ring_of_the_focused_row(page: Page) -> None:
    for number in range(3):
        add_ready(page, f"article/ring-{number}")
    page.reload()
    for _ in range(2):
        page.keyboard.press("j")
    rows = page.locator(".item")
    expect(rows.nth(1).locator(".item-title a")).to_be_focused()
    ring = "(row) => [getComputedStyle(row).outlineStyle, getComputedStyle(row).outlineOffset]"
    assert rows.nth(1).evaluate(ring) == ["solid", "-2px"]
    line = "(row) => getComputedStyle(row, '::before').borderTopColor"
    assert [rows.nth(place).evaluate(line) for place in (1, 2)] == ["rgba(0, 0, 0, 0)"] * 2


def test_a_skip_link_is_the_first_stop_of_the_keyboard(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()


def test_both_themes_are_legible(browser: Browser, live_site: LiveSite) -> None:
    """WCAG AA: text stands out 4.5 to 1 from what is behind it, in every badge and every quiet line."""
    ground = "getComputedStyle(document.body).backgroundColor"
    with browser.new_context(color_scheme="dark") as context:
        page = signed_in(context, live_site)
        add_failed(page, "never/themes")
        assert page.evaluate(ground) == "rgb(21, 22, 25)"
        page.emulate_media(color_scheme="light")
        assert page.evaluate(ground) != "rgb(21, 22, 25)"
        weakest = weakest_text(page)
        assert weakest["ratio"] >= 4.5, weakest


def test_a_change_that_another_site_asks_for_is_refused(page: Page, live_site: LiveSite) -> None:
    (cookie,) = page.context.cookies(live_site.url)
    headers = {"Cookie": f"{cookie['name']}={cookie['value']}", "Sec-Fetch-LiveSite": "cross-site"}
    request = urllib.request.Request(f"{live_site.url}/items", b"url=https://example.com/evil", headers)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    refused.value.close()
    assert refused.value.code == 403
    page.reload()
    expect(page.locator(".item").filter(has_text="evil")).to_have_count(0)


def test_an_open_page_reports_a_server_restart_and_then_catches_up(tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path / "site") as restarted, browser.new_context() as context:
        page, elsewhere = signed_in(context, restarted), context.new_page()
        url, later = address("held/through"), address("article/meanwhile")
        expect(badge(add(page, url))).to_have_text("Extracting")
        restarted.server.kill()
        expect(page.get_by_text("Connection lost, reconnecting…")).to_be_visible()
        restarted.let(url.rpartition("/")[2])
        restarted.server.start()
        elsewhere.goto(restarted.url)
        add(elsewhere, later)
        expect(badge(row(page, url))).to_have_text("Ready")
        expect(badge(row(page, later))).to_have_text("Ready")
        expect(page.get_by_text("Connection lost, reconnecting…")).to_be_hidden()


def test_the_reference_shows_every_call_and_needs_no_session(
    context: BrowserContext, live_site: LiveSite
) -> None:
    page = context.new_page()
    page.goto(f"{live_site.url}/docs")
    document = page.request.get(f"{live_site.url}/openapi.json").json()
    calls = [f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs]
    shown = page.locator(".call-line").all_inner_texts()
    assert sorted(calls) == sorted(" ".join(line.split()[:2]) for line in shown)
    expect(page.get_by_role("link", name="openapi.json")).to_have_attribute("href", "/openapi.json")
