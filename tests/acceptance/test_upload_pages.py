"""What the pages promise of files, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from nexus.web.views.filters import size
from nexus.web.views.render import policy
from tests.kit.browser import LiveSite, badge, opened, serving, signed_in, weakest_text
from tests.kit.browser_uploads import (
    PDF,
    STORE,
    choose,
    drag,
    drop,
    end_link,
    epub,
    held_back,
    is_sent,
    item,
    pdf,
    upload,
)
from tests.kit.settings import make_settings

PHONE = {"width": 360, "height": 740}
QUEUED = "Queued (processor unavailable)"
#: As an event would trigger it.
CHANGED = "(id) => document.dispatchEvent(new CustomEvent('nexus:changed', { detail: { id } }))"


def test_a_dropped_pdf_becomes_a_row_of_the_list(page: Page) -> None:
    page.evaluate("window.stayed = true")
    drag(page, [pdf()], "dragenter", "dragover")
    expect(page.get_by_text("Drop to add to your library")).to_be_visible()
    drop(page, pdf())
    expect(page.get_by_text("Drop to add to your library")).to_be_hidden()
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)
    expect(item(page, "tides").locator(".facts")).to_contain_text("PDF")
    expect(item(page, "tides").locator(".fact").nth(1)).to_have_text(re.compile(r"\d+ bytes"))
    expect(page.locator(".upload")).to_have_count(0)
    expect(page.get_by_role("heading", name="Nothing here yet")).to_be_hidden()
    assert page.evaluate("window.stayed")
    page.reload()
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)


def test_the_drop_target_disappears_when_the_drag_ends(page: Page) -> None:
    drag(page, [pdf()], "dragenter", "dragover")
    page.locator("#drop").dispatch_event("dragleave")
    expect(page.locator("#drop")).to_be_hidden()


def test_several_files_can_be_chosen_at_once(page: Page) -> None:
    notes: FilePayload = {"name": "four.md", "mimeType": "text/markdown", "buffer": b"# Four"}
    choose(page, pdf("one.pdf"), epub("two.epub"), epub("THREE.EPUB"), notes)
    for name, kind in (("one", "PDF"), ("two", "EPUB"), ("THREE", "EPUB"), ("four", "Text")):
        expect(badge(item(page, name))).to_have_text(QUEUED)
        expect(item(page, name).locator(".facts")).to_contain_text(kind)
    expect(page.locator(".item")).to_have_count(4)


def test_two_files_are_uploaded_at_a_time_and_show_their_progress(page: Page) -> None:
    with held_back(page) as held:
        is_sent(page, pdf("first.pdf"))
        is_sent(page, pdf("second.pdf"))
        choose(page, pdf("third.pdf"))
        expect(page.get_by_role("progressbar", name="Upload of first.pdf")).to_be_visible()
        expect(upload(page, "second.pdf")).to_contain_text("%")
        expect(upload(page, "third.pdf")).to_contain_text("Waiting")
        expect(page.locator("#said")).to_contain_text("Uploading second.pdf")
        expect(page.locator(".item")).to_have_count(0)
        held[0].continue_()
        expect(badge(item(page, "first"))).to_have_text(QUEUED)
        expect(upload(page, "third.pdf")).to_contain_text("%")
        for route in held[1:]:
            route.continue_()
    for name in ("second", "third"):
        expect(badge(item(page, name))).to_have_text(QUEUED)


def test_uploading_a_file_twice_shows_one_row(page: Page) -> None:
    file = pdf()
    drop(page, file)
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)
    drop(page, {**file, "name": "the same.pdf"})
    again = upload(page, "the same.pdf")
    expect(again).to_contain_text("You already have this")
    found = item(page, "tides").get_attribute("data-media")
    expect(again.get_by_role("link", name="Open it")).to_have_attribute("href", f"/items/{found}")
    expect(item(page, "tides")).to_have_class(re.compile("is-new"))
    again.get_by_role("button", name="Dismiss").click()
    expect(page.locator(".upload")).to_have_count(0)
    page.reload()
    expect(page.locator(".item")).to_have_count(1)


def test_identical_files_dropped_together_become_one_row(page: Page) -> None:
    file = pdf("twin.pdf")
    drop(page, file, file)
    expect(page.get_by_text("You already have this.", exact=True)).to_be_visible()
    expect(badge(item(page, "twin"))).to_have_text(QUEUED)
    expect(item(page, "twin")).to_have_count(1)


def test_a_duplicate_is_reported_even_after_its_row_is_gone(page: Page) -> None:
    file = pdf("twin.pdf")
    choose(page, file)
    expect(badge(item(page, "twin"))).to_have_text(QUEUED)
    with held_back(page, "**/ingest") as held:
        is_sent(page, file, "**/ingest")
        loser = (upload(page, "twin.pdf").get_attribute("id") or "").removeprefix("item-")
        gone = held[0].fetch()
        with page.expect_response(f"**/{loser}/row?*") as asked:
            page.evaluate(CHANGED, loser)
        assert asked.value.status == 404
        expect(upload(page, "twin.pdf")).to_contain_text("Checking…")
        held[0].fulfill(response=gone)
    expect(upload(page, "twin.pdf")).to_contain_text("You already have this")


def test_another_window_shows_an_upload_that_waits_for_its_bytes(page: Page, live_site: LiveSite) -> None:
    other = page.context.new_page()
    other.goto(live_site.url)
    with held_back(page) as held:
        is_sent(page, pdf())
        expect(badge(item(other, "tides"))).to_have_text("Waiting for upload")
        opened(other, item(other, "tides"))
        expect(other.locator("#text")).to_contain_text("has not arrived yet")
        held[0].continue_()
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)
    other.reload()
    expect(badge(other)).to_have_text(QUEUED)


def test_a_file_of_a_wrong_type_is_refused_with_the_reason(page: Page) -> None:
    drop(page, {"name": "notes.docx", "mimeType": "application/msword", "buffer": b"PK"})
    expect(upload(page, "notes.docx")).to_contain_text("Nexus reads PDF, EPUB and text files.")
    expect(page.locator("#said")).to_contain_text("notes.docx")
    expect(upload(page, "notes.docx").get_by_role("button", name="Retry")).to_be_hidden()
    upload(page, "notes.docx").get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("heading", name="Nothing here yet")).to_be_visible()


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path / "site", NEXUS_MAX_PDF_MIB="1") as small, browser.new_context() as context:
        page = signed_in(context, small)
        choose(page, pdf("atlas.pdf", length=2**20 + 1), pdf("leaflet.pdf", length=2**20))
        expect(upload(page, "atlas.pdf")).to_contain_text("at most 1 MiB")
        expect(badge(item(page, "leaflet"))).to_have_text(QUEUED)
        expect(item(page, "leaflet")).to_contain_text("1.0 MB")
        page.reload()
        expect(page.locator(".item")).to_have_count(1)


def test_a_file_that_is_not_what_it_says_fails_and_can_be_uploaded_again(page: Page) -> None:
    choose(page, {**pdf("broken.pdf"), "buffer": b"not a PDF"})
    failed = item(page, "broken")
    expect(badge(failed)).to_have_text("Failed")
    expect(failed).to_contain_text("Couldn't receive the file")
    expect(failed).to_contain_text("This file is not a PDF.")
    expect(failed.get_by_role("button", name="Retry")).to_have_count(0)
    media = failed.get_attribute("data-media")
    failed.get_by_label("Upload again").set_input_files(pdf("whole.pdf"))
    expect(badge(failed)).to_have_text(QUEUED)
    assert failed.get_attribute("data-media") == media
    expect(page.locator(".upload")).to_have_count(0)
    expect(page.locator(".item")).to_have_count(1)


def test_a_failed_file_can_be_uploaded_again_on_its_own_page(page: Page) -> None:
    choose(page, {**pdf("broken.pdf"), "buffer": b"not a PDF"})
    opened(page, item(page, "broken"))
    page.get_by_label("Upload again").set_input_files(epub())
    expect(upload(page, "lighthouse")).to_contain_text("for another kind of file")
    upload(page, "lighthouse").get_by_role("button", name="Dismiss").click()
    file = pdf("whole.pdf")
    page.get_by_label("Upload again").set_input_files(file)
    expect(badge(page)).to_have_text(QUEUED)
    expect(page.locator("#facts")).to_contain_text("whole.pdf")
    expect(page.locator(".timeline-move")).to_have_text(["pending", "pending → failed", "failed → pending"])
    expect(page.locator(".upload")).to_have_count(0)


def test_a_failed_upload_is_not_retried_without_a_file(page: Page, live_site: LiveSite) -> None:
    choose(page, {**pdf("broken.pdf"), "buffer": b"not a PDF"})
    media = item(page, "broken").get_attribute("data-media")
    expect(badge(item(page, "broken"))).to_have_text("Failed")
    status = page.evaluate(
        "async (address) => (await fetch(address, { method: 'POST' })).status", f"/items/{media}/retry"
    )
    assert status == 409
    page.goto(live_site.url)
    expect(badge(item(page, "broken"))).to_have_text("Failed")


def test_an_upload_that_lost_its_connection_can_be_retried(page: Page) -> None:
    page.route(STORE, lambda route: route.abort())
    choose(page, pdf())
    lost = upload(page, "tides.pdf")
    expect(lost).to_contain_text("The connection was lost")
    page.unroute(STORE)
    lost.get_by_role("button", name="Retry").click()
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)
    expect(page.locator(".item")).to_have_count(1)


def test_an_upload_whose_link_expired_gets_a_new_one_on_retry(page: Page, live_site: LiveSite) -> None:
    page.route(STORE, lambda route: route.fulfill(status=403, body="<Error/>"))
    choose(page, pdf())
    late = upload(page, "tides.pdf")
    expect(late).to_contain_text("The upload link has expired")
    media = (late.get_attribute("id") or "").removeprefix("item-")
    end_link(live_site, media)
    page.unroute(STORE)
    late.get_by_role("button", name="Retry").click()
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)
    assert item(page, "tides").get_attribute("data-media") == media


def test_an_upload_whose_confirmation_got_lost_is_confirmed_again(page: Page) -> None:
    page.route("**/ingest", lambda route: route.abort())
    choose(page, pdf())
    expect(upload(page, "tides.pdf")).to_contain_text("The connection was lost")
    page.unroute("**/ingest")
    with page.expect_response("**/ingest"):
        upload(page, "tides.pdf").get_by_role("button", name="Retry").click()
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)


def test_a_cancelled_upload_leaves_nothing_behind(page: Page) -> None:
    with held_back(page):
        is_sent(page, pdf())
        with page.expect_response("**/delete"):
            upload(page, "tides.pdf").get_by_role("button", name="Cancel").click()
    expect(page.locator(".upload")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("heading", name="Nothing here yet")).to_be_visible()


def test_leaving_the_page_warns_while_an_upload_runs(page: Page, live_site: LiveSite) -> None:
    warned: list[str] = []
    with held_back(page) as held:
        page.locator("#url").click()
        is_sent(page, pdf())
        page.once("dialog", lambda dialog: (warned.append(dialog.type), dialog.dismiss()))
        page.get_by_role("link", name="API").click(no_wait_after=True)
        expect(page.get_by_role("progressbar")).to_be_visible()
        held[0].continue_()
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)
    assert warned == ["beforeunload"]
    page.get_by_role("link", name="API").click()
    expect(page).to_have_url(f"{live_site.url}/docs")


def test_the_original_can_be_downloaded(page: Page) -> None:
    file = pdf("Gezeiten & Wellen.pdf")
    choose(page, file)
    expect(badge(item(page, "Gezeiten"))).to_have_text(QUEUED)
    opened(page, item(page, "Gezeiten"))
    with page.expect_download() as got:
        page.get_by_role("link", name="Download").click()
    assert got.value.suggested_filename == file["name"]
    assert got.value.path().read_bytes() == file["buffer"]
    expect(page.locator("#text")).to_contain_text("No processor for this kind is installed")


def test_an_item_without_a_file_offers_no_download(page: Page, live_site: LiveSite) -> None:
    answer = page.goto(f"{live_site.url}/items/{UUID(int=1)}/file")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()


def test_the_keyboard_alone_can_upload_and_cancel(page: Page) -> None:
    keys = page.keyboard
    page.on("filechooser", lambda _: None)
    page.reload()  # by then the browser reports file choosers
    with page.expect_file_chooser() as chooser:
        keys.press("u")
    with held_back(page):
        with page.expect_request(STORE):
            chooser.value.set_files(pdf("unwanted.pdf"))
        upload(page, "unwanted").get_by_role("button", name="Cancel").focus()
        with page.expect_response("**/delete"):
            keys.press("Enter")
    expect(page.locator("#files")).to_be_focused()
    with page.expect_file_chooser() as chooser:
        keys.press("Enter")
    chooser.value.set_files(pdf())
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)
    keys.press("j")
    keys.press("Enter")
    expect(page.locator("h1")).to_have_text("tides")


def test_the_focus_stays_in_place_when_a_button_disappears(page: Page) -> None:
    page.route(STORE, lambda route: route.abort())
    choose(page, pdf())
    retry = upload(page, "tides").get_by_role("button", name="Retry")
    expect(retry).to_be_visible()
    page.unroute(STORE)
    retry.focus()
    page.keyboard.press("Enter")
    expect(badge(item(page, "tides"))).to_have_text(QUEUED)
    expect(page.get_by_role("link", name="tides")).to_be_focused()


def test_a_hostile_file_name_is_only_text(page: Page) -> None:
    name = "<img src=x onerror=window.ran=1>.pdf"
    with held_back(page) as held:
        is_sent(page, pdf(name))
        expect(upload(page, name)).to_be_visible()
        held[0].continue_()
    expect(badge(item(page, "window.ran"))).to_have_text(QUEUED)
    assert page.evaluate("window.ran === undefined")
    assert page.locator("main img").count() == 0


def test_the_upload_button_is_hidden_without_scripts(browser: Browser, live_site: LiveSite) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = signed_in(context, live_site)
        expect(page.locator("#url")).to_be_visible()
        expect(page.locator("#files")).to_be_hidden()


def test_every_upload_state_is_legible_on_a_phone(browser: Browser, live_site: LiveSite) -> None:
    with browser.new_context(viewport=PHONE) as context:
        page = signed_in(context, live_site, live_site.link_of_someone_new())
        file = pdf("a-very-long-name" * 8 + ".pdf")
        choose(page, file)
        expect(badge(item(page, "a-very"))).to_have_text(QUEUED)
        choose(page, file, {"name": "notes.docx", "mimeType": "application/msword", "buffer": b"x"})
        expect(upload(page, "a-very")).to_contain_text("You already have this")
        with held_back(page) as held:
            is_sent(page, epub())
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            weakest = weakest_text(page)
            assert weakest["ratio"] >= 4.5, weakest
            held[0].continue_()
        expect(badge(item(page, "lighthouse"))).to_have_text(QUEUED)


def test_another_site_can_neither_begin_nor_confirm_an_upload(page: Page, live_site: LiveSite) -> None:
    body = {"kind": "pdf", "filename": "x.pdf", "content_type": PDF, "size_bytes": 1}
    for path in ("upload", f"{UUID(int=1)}/ingest", f"{UUID(int=1)}/retry-upload"):
        headers = {"Sec-Fetch-LiveSite": "cross-site"}
        answer = page.request.post(f"{live_site.url}/items/{path}", data=body, headers=headers)
        assert (answer.status, answer.json()["error"]["code"]) == (403, "E_FORBIDDEN")


@pytest.mark.parametrize(
    ("given", "origins"),
    [
        ({}, "'self'"),
        (
            {"storage": "s3", "s3_bucket": "b", "s3_endpoint_url": "http://minio:9000/x"},
            "'self' http://minio:9000",
        ),
        (
            {"storage": "s3", "s3_bucket": "b", "s3_region": "eu-west-1"},
            "'self' https://s3.amazonaws.com https://s3.eu-west-1.amazonaws.com",
        ),
        (
            {
                "storage": "supabase",
                "supabase_url": "https://p.supabase.co/",
                "supabase_service_key": "k",
                "supabase_bucket": "b",
            },
            "'self' https://p.supabase.co",
        ),
    ],
)
def test_a_page_may_upload_to_its_store_and_nowhere_else(
    tmp_path: Path, given: dict[str, str], origins: str
) -> None:
    settings = make_settings("sqlite://", tmp_path, **given)
    assert policy(settings).endswith(f"; connect-src {origins}")


def test_file_sizes_are_written_short() -> None:
    counts = (1, 999, 1000, 1234567, 99_600_000, 999_600, 5 * 10**12)
    said = ["1 byte", "999 bytes", "1.0 kB", "1.2 MB", "100 MB", "1.0 MB", "5000 GB"]
    assert [size(count) for count in counts] == said
