"""What the page with one button promises, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, FilePayload, Locator, Page, Route, expect

from tests import documents
from tests.acceptance.browsing import CONTRAST, Site, serving, signed_in
from tests.acceptance.test_desk_pages import NAMELESS, PHONE
from tests.acceptance.uploading import drop

pytestmark = pytest.mark.xdist_group("browser")
SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "
LONG_NAME = f"{'a_name_without_any_place_to_break_' * 4}.txt"
SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With readers that wait for the test."""
    with serving(tmp_path_factory.mktemp("imports"), NEXUS_PLUGINS="tests.held_imports") as running:
        yield running


@pytest.fixture
def page(page: Page, site: Site) -> Page:
    page.goto(f"{site.url}/import")
    return page


def text(name: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": f"{name}. {SENTENCE * 3}".encode()}


def paper(name: str) -> FilePayload:
    return {"name": name, "mimeType": "application/pdf", "buffer": documents.pdf(f"{name}. {SENTENCE}")}


def damaged(name: str) -> FilePayload:
    return {"name": name, "mimeType": "application/pdf", "buffer": b"%PDF-1.4 nothing else"}


def add(page: Page, *files: FilePayload) -> None:
    """They are sent as soon as they are chosen; without scripts, when that is pressed."""
    page.get_by_label("Files").set_input_files(list(files))
    if page.get_by_role("button", name="Add files").is_visible():
        page.get_by_role("button", name="Add files").click()


def staged(page: Page, *files: FilePayload) -> None:
    before = names(page)
    add(page, *files)
    expect_names(page, *before, *(file["name"] for file in files))


def names(page: Page) -> list[str]:
    return page.locator(".import-name").all_inner_texts()


def expect_names(page: Page, *wanted: str) -> None:
    expect(page.locator(".import-name")).to_have_text(list(wanted))


def row(page: Page, name: str) -> Locator:
    return page.locator(".import-row").filter(has_text=name)


def button(page: Page, name: str) -> Locator:
    return page.locator("#import-state").get_by_role("button", name=name)


def expect_done(page: Page) -> None:
    expect(page.locator("#import-state")).to_contain_text("Done")


def into(page: Page, library: str) -> None:
    page.get_by_label("Into the library").fill(library)
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_label("Into the library")).to_have_value(library)


def times_read(site: Site, name: str) -> int:
    return (site.gates / "read").read_text().splitlines().count(name)


def asked(page: Page) -> list[str]:
    """The kinds of the questions that the page asks from now on. All are answered with Cancel."""
    kinds: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        kinds.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", dismiss)
    return kinds


def test_files_are_chosen_put_in_order_and_imported_without_a_reload(page: Page, site: Site) -> None:
    expect(button(page, "Start")).to_be_disabled()
    page.evaluate("window.stayed = true")
    staged(page, text("one.txt"), paper("two.pdf"), text("held order.txt"))
    expect(button(page, "Start")).to_be_enabled()
    assert page.evaluate("window.stayed")
    button(page, "Start").click()
    expect(button(page, "Pause")).to_be_visible()
    page.evaluate("window.stayed = true")
    for name in ("one.txt", "two.pdf"):
        expect(row(page, name).locator(".badge")).to_have_text("Prepared")
    expect(row(page, "held order.txt").locator(".badge")).to_have_text("Parsing")
    expect(page.locator("#import-choose form")).to_have_count(0)
    site.let("held order.txt")
    expect_done(page)
    expect(page.locator(".import-row .badge")).to_have_text(["Imported"] * 3)
    assert page.evaluate("window.stayed")
    page.get_by_role("link", name="See what you have").click()
    for title in ("one", "two", "held order"):
        expect(page.locator(".item").filter(has_text=title)).to_have_count(1)


def test_rows_are_put_in_order_by_buttons_and_by_dragging(page: Page) -> None:
    staged(page, text("a.txt"), text("b.txt"), text("c.txt"))
    page.get_by_role("button", name="Move b.txt up").click()
    expect_names(page, "b.txt", "a.txt", "c.txt")
    row(page, "b.txt").drag_to(row(page, "c.txt"))
    expect_names(page, "a.txt", "c.txt", "b.txt")
    expect(page.get_by_role("button", name="Move b.txt down")).to_have_count(0)
    row(page, "b.txt").drag_to(row(page, "a.txt"))
    expect_names(page, "b.txt", "a.txt", "c.txt")
    expect(page.get_by_role("button", name="Move b.txt up")).to_have_count(0)
    page.reload()
    expect_names(page, "b.txt", "a.txt", "c.txt")


def test_a_row_that_is_dragged_stays_in_hand_while_another_file_arrives(page: Page) -> None:
    questions = asked(page)
    staged(page, text("a.txt"), text("b.txt"))
    into(page, "Draft")
    row(page, "a.txt").hover()
    page.mouse.down()
    row(page, "b.txt").hover()
    with page.expect_response(lambda answer: answer.url.endswith("/import")):
        page.evaluate("fetch('/import/sources?name=c.txt', { method: 'POST', body: 'A text of its own.' })")
    expect(row(page, "a.txt")).to_have_class(re.compile("is-dragged"))
    row(page, "b.txt").hover()
    page.mouse.up()
    expect_names(page, "a.txt", "b.txt", "c.txt")
    assert questions == []


def test_dropped_files_are_staged_and_what_is_no_book_is_named(page: Page) -> None:
    drop(page, text("dropped.txt"), {"name": "notes.docx", "mimeType": "application/msword", "buffer": b"PK"})
    expect_names(page, "dropped.txt")
    expect(page.locator("#notices")).to_contain_text("notes.docx: Only PDFs, EPUBs and text files")


def test_start_waits_for_the_files_that_are_still_being_sent(page: Page) -> None:
    held: list[Route] = []
    page.route(
        "**/import/sources*",
        lambda route: held.append(route) if "second" in route.request.url else route.continue_(),
    )
    add(page, text("first sent.txt"), text("second sent.txt"), text("third sent.txt"))
    expect_names(page, "first sent.txt")
    expect(page.locator("#sending")).to_have_text(re.compile("Sending 2 of 3: second sent.txt"))
    button(page, "Start").click()
    expect(page.locator("#sending")).to_contain_text("Then it goes on by itself.")
    expect(page.locator("#import-state")).to_have_attribute("data-status", "IDLE")
    (one,) = held
    one.continue_()
    expect_done(page)
    expect(page.locator(".import-row .badge")).to_have_text(["Imported"] * 3)
    expect(page.locator("#sending")).to_be_hidden()


def test_a_dropped_folder_brings_what_can_be_imported(page: Page, tmp_path: Path) -> None:
    books = tmp_path / "Books"
    (books / "more").mkdir(parents=True)
    for name in ("b.txt", "a.md", ".hidden.txt", "table.csv", "more/c.txt"):
        (books / name).write_text(f"{name}. {SENTENCE}")
    place = page.locator("h1").bounding_box()
    assert place
    browser = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": [str(books)], "dragOperationsMask": 1}
        browser.send(
            "Input.dispatchDragEvent", {"type": kind, "x": place["x"] + 5, "y": place["y"] + 5, "data": data}
        )
    expect_names(page, "a.md", "b.txt", "c.txt")


def test_pause_says_that_it_stops_and_resume_reads_nothing_again(page: Page, site: Site) -> None:
    staged(page, text("first pause.txt"), text("held pause.txt"))
    button(page, "Start").click()
    expect(row(page, "first pause.txt").locator(".badge")).to_have_text("Prepared")
    button(page, "Pause").click()
    expect(button(page, "Stopping…")).to_be_disabled()
    expect(page.locator("#import-choose form")).to_have_count(0)
    site.let("held pause.txt")
    expect(button(page, "Resume")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_be_visible()
    button(page, "Resume").click()
    expect_done(page)
    assert times_read(site, "first pause.txt") == 1


def test_a_file_that_fails_is_taken_out_and_the_others_go_on(page: Page, site: Site) -> None:
    staged(page, text("good.txt"), damaged("bad.pdf"))
    button(page, "Start").click()
    expect(button(page, "Resume")).to_be_visible()
    expect(row(page, "bad.pdf").locator(".badge")).to_have_text("Failed")
    expect(page.locator("#import-state")).to_contain_text("A file can't be imported.")
    expect(row(page, "bad.pdf").locator(".import-message")).not_to_be_empty()
    page.get_by_role("button", name="Take bad.pdf out").click()
    expect_names(page, "good.txt")
    button(page, "Resume").click()
    expect_done(page)
    assert times_read(site, "good.txt") == 1


def test_what_was_paused_can_be_thrown_away(page: Page) -> None:
    staged(page, damaged("alone.pdf"))
    button(page, "Start").click()
    button(page, "Discard").click()
    expect(button(page, "Start")).to_be_disabled()
    expect_names(page)


def test_after_one_import_comes_another(page: Page) -> None:
    staged(page, text("before.txt"))
    button(page, "Start").click()
    expect_done(page)
    add(page, text("after.txt"))
    expect_names(page, "after.txt")
    button(page, "Start").click()
    expect_done(page)
    expect_names(page, "after.txt")


def test_a_name_that_was_typed_counts_even_if_it_was_not_set(page: Page, site: Site) -> None:
    staged(page, text("typed.txt"))
    page.get_by_label("Into the library").fill("Typed")
    button(page, "Start").click()
    expect_done(page)
    found = page.request.get(f"{site.url}/libraries", headers=site.headers(page)).json()["data"]["items"]
    assert "Typed" in [library["name"] for library in found]


def test_leaving_is_asked_about_where_a_draft_would_be_lost_and_only_there(page: Page, site: Site) -> None:
    kinds = asked(page)
    staged(page, text("kept.txt"))
    page.reload()
    expect_names(page, "kept.txt")
    assert kinds == []
    into(page, "Draft")
    assert kinds == []
    page.locator("h1").click()  # browsers ask only who has touched the page
    with page.expect_event("dialog"):
        page.get_by_role("link", name="Stories").click()
    assert kinds == ["beforeunload"]
    button(page, "Start").click()
    expect_done(page)
    page.get_by_role("link", name="Stories").click()
    page.wait_for_url(f"{site.url}/admin/stories")
    assert kinds == ["beforeunload"]


def test_everything_works_without_scripts(browser: Browser, site: Site) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = signed_in(context, site, site.link_of_someone_new())
        page.goto(f"{site.url}/import")
        staged(page, text("plain one.txt"), damaged("plain bad.pdf"), text("held plain.txt"))
        page.get_by_role("button", name="Move held plain.txt up").click()
        expect_names(page, "plain one.txt", "held plain.txt", "plain bad.pdf")
        page.get_by_role("button", name="Take plain bad.pdf out").click()
        into(page, "By hand")
        button(page, "Start").click()
        button(page, "Pause").click()
        expect(button(page, "Stopping…")).to_be_disabled()
        site.let("held plain.txt")
        button(page, "Resume").click()  # the page asks after itself until then
        expect_done(page)
        expect(page.locator(".import-row .badge")).to_have_text(["Imported"] * 2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_readable_and_named(browser: Browser, site: Site, scheme: str) -> None:
    with browser.new_context(viewport=PHONE, color_scheme=scheme) as context:  # type: ignore[arg-type]
        page = signed_in(context, site, site.link_of_someone_new())
        page.goto(f"{site.url}/import")
        staged(page, text(LONG_NAME), damaged("torn.pdf"), paper("two.pdf"))
        _is_fit(page)
        button(page, "Start").click()
        expect(button(page, "Resume")).to_be_visible()
        _is_fit(page)
        page.get_by_role("button", name="Take torn.pdf out").click()
        button(page, "Resume").click()
        expect_done(page)
        _is_fit(page)


def _is_fit(page: Page) -> None:
    assert not page.evaluate(SCROLLS)
    assert page.evaluate(NAMELESS) == []
    weakest = page.evaluate(CONTRAST)
    assert weakest["ratio"] >= 4.5, weakest
