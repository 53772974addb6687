"""What the page with one button promises, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, FilePayload, Locator, Page, Route, expect

from tests.kit import documents
from tests.kit.browser import NAMELESS, PHONE, LiveSite, serving, signed_in, weakest_text
from tests.kit.browser_uploads import drop

SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "
LONG_NAME = f"{'a_name_without_any_place_to_break_' * 4}.txt"
SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def live_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    """With readers that wait for the test."""
    with serving(
        tmp_path_factory.mktemp("imports"), NEXUS_PLUGINS="tests.kit.plugins.gated_imports"
    ) as running:
        yield running


@pytest.fixture
def page(page: Page, live_site: LiveSite) -> Page:
    page.goto(f"{live_site.url}/import")
    return page


def text(name: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": f"{name}. {SENTENCE * 3}".encode()}


def paper(name: str) -> FilePayload:
    return {"name": name, "mimeType": "application/pdf", "buffer": documents.pdf(f"{name}. {SENTENCE}")}


def damaged(name: str) -> FilePayload:
    return {"name": name, "mimeType": "application/pdf", "buffer": b"%PDF-1.4 nothing else"}


def add(page: Page, *files: FilePayload) -> None:
    """Files are sent as soon as they are chosen; without scripts, when the button is pressed."""
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


def name_new_library(page: Page, library: str) -> None:
    page.get_by_label("Library", exact=True).select_option("New library…")
    page.get_by_label("Name of the new library").fill(library)


def into(page: Page, library: str) -> None:
    name_new_library(page, library)
    page.get_by_role("button", name="Use this library").click()
    expect(page.get_by_label("Name of the new library")).to_have_value(library)


def times_read(site: LiveSite, name: str) -> int:
    return (site.gates / "read").read_text().splitlines().count(name)


def asked(page: Page) -> list[str]:
    """The kinds of the questions that the page asks from now on. All are answered with Cancel."""
    kinds: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        kinds.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", dismiss)
    return kinds


def test_files_are_chosen_put_in_order_and_imported_without_a_reload(page: Page, live_site: LiveSite) -> None:
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
    expect(row(page, "held order.txt").locator(".badge")).to_have_text("Extracting")
    expect(page.locator("#import-choose form")).to_have_count(0)
    live_site.let("held order.txt")
    expect_done(page)
    expect(page.locator(".import-row .badge")).to_have_text(["Imported"] * 3)
    assert page.evaluate("window.stayed")
    page.get_by_role("link", name="Open the library").click()
    for title in ("one", "two", "held order"):
        expect(page.locator(".item").filter(has_text=title)).to_have_count(1)


def test_staged_files_are_put_in_order_by_buttons_and_by_dragging(page: Page) -> None:
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


def test_dropped_files_are_staged_and_unsupported_ones_are_listed(page: Page) -> None:
    drop(page, text("dropped.txt"), {"name": "notes.docx", "mimeType": "application/msword", "buffer": b"PK"})
    expect_names(page, "dropped.txt")
    expect(page.locator("#notices")).to_contain_text("notes.docx: Only PDFs, EPUBs and text files")


def test_an_import_starts_only_after_all_files_are_sent(page: Page) -> None:
    held: list[Route] = []
    page.route(
        "**/import/sources*",
        lambda route: held.append(route) if "second" in route.request.url else route.continue_(),
    )
    add(page, text("first sent.txt"), text("second sent.txt"), text("third sent.txt"))
    expect_names(page, "first sent.txt")
    expect(page.locator("#sending")).to_have_text(re.compile("Sending 2 of 3: second sent.txt"))
    button(page, "Start").click()
    expect(page.locator("#sending")).to_contain_text("It continues automatically after that.")
    expect(page.locator("#import-state")).to_have_attribute("data-status", "IDLE")
    (one,) = held
    one.continue_()
    expect_done(page)
    expect(page.locator(".import-row .badge")).to_have_text(["Imported"] * 3)
    expect(page.locator("#sending")).to_be_hidden()


def test_a_dropped_folder_stages_every_supported_file(page: Page, tmp_path: Path) -> None:
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


def test_a_resumed_import_reads_nothing_again(page: Page, live_site: LiveSite) -> None:
    staged(page, text("first pause.txt"), text("held pause.txt"))
    button(page, "Start").click()
    expect(row(page, "first pause.txt").locator(".badge")).to_have_text("Prepared")
    button(page, "Pause").click()
    expect(button(page, "Stopping…")).to_be_disabled()
    expect(page.locator("#import-choose form")).to_have_count(0)
    live_site.let("held pause.txt")
    expect(button(page, "Resume")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_be_visible()
    button(page, "Resume").click()
    expect_done(page)
    assert times_read(live_site, "first pause.txt") == 1


def test_a_failed_file_is_taken_out_and_the_others_are_imported(page: Page, live_site: LiveSite) -> None:
    staged(page, text("good.txt"), damaged("bad.pdf"))
    button(page, "Start").click()
    expect(button(page, "Resume")).to_be_visible()
    expect(row(page, "bad.pdf").locator(".badge")).to_have_text("Failed")
    expect(page.locator("#import-state")).to_contain_text("A file can't be imported.")
    expect(row(page, "bad.pdf").locator(".import-message")).not_to_be_empty()
    page.get_by_role("button", name="Remove bad.pdf").click()
    expect_names(page, "good.txt")
    expect(page.locator("#import-state")).not_to_contain_text("can't be imported")
    button(page, "Resume").click()
    expect_done(page)
    assert times_read(live_site, "good.txt") == 1


def test_the_others_are_imported_without_the_files_that_failed(page: Page) -> None:
    other: FilePayload = {**damaged("torn b.pdf"), "buffer": b"%PDF-1.4 nothing at all"}
    staged(page, text("one of two.txt"), damaged("torn a.pdf"), text("two of two.txt"), other)
    button(page, "Start").click()
    failures = page.get_by_role("list", name="Files that can't be imported").get_by_role("listitem")
    expect(failures).to_have_count(2)
    expect(failures.first).to_contain_text("torn a.pdf")
    page.get_by_text("Discard…").click()
    expect(page.locator("#import-state")).to_contain_text("The work on 2 prepared files is lost")
    button(page, "Import the other 2").click()
    expect_done(page)
    expect(page.locator(".import-row .import-name")).to_have_text(["one of two.txt", "two of two.txt"])


def test_a_paused_import_can_be_discarded(page: Page) -> None:
    staged(page, damaged("alone.pdf"))
    button(page, "Start").click()
    button(page, "Discard").click()
    expect(button(page, "Start")).to_be_disabled()
    expect_names(page)


def test_a_second_import_can_follow_the_first(page: Page) -> None:
    staged(page, text("before.txt"))
    button(page, "Start").click()
    expect_done(page)
    add(page, text("after.txt"))
    expect_names(page, "after.txt")
    button(page, "Start").click()
    expect_done(page)
    expect_names(page, "after.txt")


def test_a_typed_library_name_counts_even_if_it_was_not_saved(page: Page, live_site: LiveSite) -> None:
    staged(page, text("typed.txt"))
    name_new_library(page, "Typed")
    button(page, "Start").click()
    expect_done(page)
    found = page.request.get(f"{live_site.url}/libraries", headers=live_site.headers(page)).json()["data"][
        "items"
    ]
    assert "Typed" in [library["name"] for library in found]


def test_leaving_asks_first_only_if_a_draft_would_be_lost(page: Page, live_site: LiveSite) -> None:
    kinds = asked(page)
    staged(page, text("kept.txt"))
    page.reload()
    expect_names(page, "kept.txt")
    assert kinds == []
    into(page, "Draft")
    assert kinds == []
    page.locator("h1").click()  # browsers ask only users who have touched the page
    with page.expect_event("dialog"):
        page.get_by_role("link", name="Stories").click()
    assert kinds == ["beforeunload"]
    button(page, "Start").click()
    expect_done(page)
    page.get_by_role("link", name="Stories").click()
    page.wait_for_url(f"{live_site.url}/admin/stories")
    assert kinds == ["beforeunload"]


def test_the_import_page_works_without_scripts(browser: Browser, live_site: LiveSite) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = signed_in(context, live_site, live_site.link_of_someone_new())
        page.goto(f"{live_site.url}/import")
        staged(page, text("plain one.txt"), damaged("plain bad.pdf"), text("held plain.txt"))
        page.get_by_role("button", name="Move held plain.txt up").click()
        expect_names(page, "plain one.txt", "held plain.txt", "plain bad.pdf")
        page.get_by_role("button", name="Remove plain bad.pdf").click()
        into(page, "By hand")
        button(page, "Start").click()
        button(page, "Pause").click()
        expect(button(page, "Stopping…")).to_be_disabled()
        live_site.let("held plain.txt")
        button(page, "Resume").click()  # the page polls until then
        expect_done(page)
        expect(page.locator(".import-row .badge")).to_have_text(["Imported"] * 2)


def test_the_import_page_is_legible_and_labelled_on_a_phone(browser: Browser, live_site: LiveSite) -> None:
    with browser.new_context(viewport=PHONE) as context:
        page = signed_in(context, live_site, live_site.link_of_someone_new())
        page.goto(f"{live_site.url}/import")
        staged(page, text(LONG_NAME), damaged("torn.pdf"), paper("two.pdf"))
        _is_fit(page)
        button(page, "Start").click()
        expect(button(page, "Resume")).to_be_visible()
        _is_fit(page)
        page.get_by_role("button", name="Remove torn.pdf").click()
        button(page, "Resume").click()
        expect_done(page)
        _is_fit(page)


def _is_fit(page: Page) -> None:
    assert not page.evaluate(SCROLLS)
    assert page.evaluate(NAMELESS) == []
    weakest = weakest_text(page)
    assert weakest["ratio"] >= 4.5, weakest
