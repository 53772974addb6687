"""The PDF that an address answers with stays exactly as long as its media needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from nexus.app import App
from nexus.errors import FileUnreachable, StorageFull
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media import queries, refresh, revisions, submit
from nexus.media.add import hold_article
from nexus.media.reader import Passage
from nexus.media.runner import Extracting, Outcome
from nexus.media.workbench import Tools
from nexus.queue.local import LocalQueue
from nexus.states.media import Kind
from nexus.web.views.items import show_item, show_reading
from tests.kit import documents as sample_documents
from tests.kit.media import new_media, row_of
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.uploads import Uploader, stored_paths, unique_pdf
from tests.kit.waiting import eventually
from tests.kit.work import extract_item, refresh_item

pytestmark = pytest.mark.wall_clock

TEXT = "A paper about the harbour, its boats and the weather of the year, which is long enough to be read."
PAPER = Answer(sample_documents.pdf(TEXT), "application/pdf")
SCAN = Answer(sample_documents.pdf(""), "application/pdf")


def read(app: App, me: Uploader, pages: Pages, path: str = "/paper") -> UUID:
    """A readable media whose address answers with a PDF."""
    pages[path] = PAPER
    media_id = new_media(app, me.id, pages.url(path))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    return media_id


def file_of(app: App, media_id: UUID) -> str | None:
    with app.sessions.read() as session:
        row = row_of(app.sessions, media_id)
        found = revisions.file_of(session, media_id, row.newest_revision or row.revision)
    return found and str(found.storage_path)


def asked(pages: Pages, path: str) -> bool:
    return path in {each for each, _ in pages.asked}


class Apart(threading.Thread):
    """Work in a thread of its own."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self._work = work
        self.start()

    def run(self) -> None:
        self.result = self._work()


def test_an_address_deleted_while_its_pdf_is_fetched_leaves_no_object(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    pages["/held/paper"] = PAPER
    media_id = new_media(app, uploader.id, pages.url("/held/paper"))
    work = Apart(lambda: extract_item(app.tools, media_id))
    eventually(lambda: asked(pages, "/held/paper"), "it is being fetched")
    uploader.delete(media_id)
    pages.gate.set()
    work.join(60)
    assert work.result is Outcome.STALE
    assert stored_paths(app) == []


def test_an_address_deleted_after_its_pdf_was_stored_leaves_no_object(
    app: App, uploader: Uploader, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(source: Source) -> Extraction:
        source.bench.keep(source.bench.fetch(str(source.url)))
        assert stored_paths(app)
        uploader.delete(source.media_id)
        return Extraction.plain("A paper", TEXT)

    monkeypatch.setitem(AVAILABLE_EXTRACTORS, Kind.WEB_ARTICLE, late)
    pages["/paper"] = PAPER
    media_id = new_media(app, uploader.id, pages.url("/paper"))
    assert extract_item(app.tools, media_id) is Outcome.STALE
    assert stored_paths(app) == []


def test_an_address_deleted_while_it_is_refreshed_leaves_no_object(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    pages.gate.set()
    media_id = read(app, uploader, pages, "/held/paper")
    pages.gate.clear()
    pages.asked.clear()
    refresh.request(app.sessions, LocalQueue(), media_id, uploader.id, None)
    work = Apart(lambda: refresh_item(app.tools, media_id))
    eventually(lambda: asked(pages, "/held/paper"), "it is being fetched")
    uploader.delete(media_id)
    pages.gate.set()
    work.join(60)
    assert stored_paths(app) == []


def test_a_result_whose_first_commit_got_no_answer_keeps_its_file(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    """The answer to a COMMIT gets lost, and the worker writes the same result again."""
    pages["/paper"] = PAPER
    media_id = new_media(app, uploader.id, pages.url("/paper"))
    with app.sessions.begin() as session:
        claim = Extracting(app.tools).claim(session, media_id, app.tools.leases.length)
    assert claim is not None
    ended = app.kernel.attempt(claim)
    for _ in range(2):
        assert app.kernel.settle([ended]) == [Outcome.READABLE]
    assert stored_paths(app) == [file_of(app, media_id)]


def test_an_attempt_that_is_tried_again_removes_its_file(
    app: App, uploader: Uploader, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlucky(source: Source) -> Extraction:
        source.bench.keep(source.bench.fetch(str(source.url)))
        raise FileUnreachable

    monkeypatch.setitem(AVAILABLE_EXTRACTORS, Kind.WEB_ARTICLE, unlucky)
    pages["/paper"] = PAPER
    media_id = new_media(app, uploader.id, pages.url("/paper"))
    assert extract_item(app.tools, media_id) is Outcome.RELEASED
    assert stored_paths(app) == []


def test_a_failed_pdf_that_is_retried_has_one_file(app: App, uploader: Uploader, pages: Pages) -> None:
    pages["/paper"] = SCAN
    media_id = new_media(app, uploader.id, pages.url("/paper"))
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert stored_paths(app) == [file_of(app, media_id)]
    submit.retry_failed_item(app.sessions, LocalQueue(), media_id, uploader.id)
    pages["/paper"] = PAPER
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert stored_paths(app) == [file_of(app, media_id)]


def test_the_same_pdf_fetched_again_never_has_the_path_that_it_had(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    """So a late removal of the old one can't hit the new one."""
    media_id = read(app, uploader, pages)
    seen = [file_of(app, media_id)]
    for number in range(3):
        pages["/paper"] = Answer(sample_documents.pdf(f"{TEXT} {number}"), "application/pdf")
        refresh.request(app.sessions, LocalQueue(), media_id, uploader.id, None)
        assert str(refresh_item(app.tools, media_id)).startswith("revision ")
        seen.append(file_of(app, media_id))
        assert sorted(stored_paths(app)) == sorted(map(str, seen)), "every version keeps its file"
    assert len(set(seen)) == len(seen)


def test_a_refresh_that_finds_the_same_pdf_keeps_one_file(app: App, uploader: Uploader, pages: Pages) -> None:
    media_id = read(app, uploader, pages)
    before = file_of(app, media_id)
    refresh.request(app.sessions, LocalQueue(), media_id, uploader.id, None)
    assert refresh_item(app.tools, media_id) == "unchanged"
    assert (file_of(app, media_id), stored_paths(app)) == (before, [before])


def test_a_fetched_file_is_stored_under_the_number_of_its_version(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    media_id = read(app, uploader, pages)
    assert str(file_of(app, media_id)).endswith(f"media/{media_id}/r1/original.pdf")


def test_a_refresh_that_finds_no_text_removes_its_file(app: App, uploader: Uploader, pages: Pages) -> None:
    media_id = read(app, uploader, pages)
    before = file_of(app, media_id)
    pages["/paper"] = SCAN
    refresh.request(app.sessions, LocalQueue(), media_id, uploader.id, None)
    assert refresh_item(app.tools, media_id) == "failed"
    assert (file_of(app, media_id), stored_paths(app)) == (before, [before])


def test_another_users_refresh_leaves_the_file_of_a_saved_copy(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    media_id = read(app, uploader, pages)
    other = Uploader(app)
    with app.sessions.begin() as session:
        hold_article(session, other.id, pages.url("/paper"))
    pages["/paper"] = Answer(sample_documents.pdf(f"{TEXT} And more."), "application/pdf")
    refresh.request(app.sessions, LocalQueue(), media_id, other.id, None)
    assert refresh_item(app.tools, media_id) == "revision 2"
    bodies = {}
    for user in (uploader.id, other.id):
        with app.sessions.read() as session:
            number = queries.get_media(session, media_id, user).row.revision
            file = revisions.file_of(session, media_id, number)
        assert file is not None
        bodies[user] = b"".join(app.files.storage.stream(file.storage_path))
    assert bodies == {uploader.id: PAPER.body, other.id: pages["/paper"].body}


def test_an_epub_by_its_address_becomes_a_file(app: App, uploader: Uploader, pages: Pages) -> None:
    book = sample_documents.epub({"one.xhtml": sample_documents.chapter(f"<p>{TEXT}</p>")})
    for place, said in enumerate(("application/epub+zip", "application/octet-stream")):
        pages[f"/{place}/A%20book"] = Answer(book, said)
        media_id = new_media(app, uploader.id, pages.url(f"/{place}/A%20book"))
        assert extract_item(app.tools, media_id) is Outcome.READABLE
        with app.sessions.read() as session:
            view = queries.get_media(session, media_id, uploader.id)
        assert (view.shown_kind, view.row.file_name) == (Kind.EPUB, "A book.epub")
        assert str(file_of(app, media_id)).endswith("r1/original.epub")
        assert view.row.has_text


def test_a_fetched_pdf_is_shown_as_one_under_its_own_title(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    pages["/papers/Harbours%20of%20the%20north.pdf"] = PAPER
    pages["/titled"] = Answer(
        sample_documents.pdf(TEXT, info={"Title": "The weather of the year"}), "application/pdf"
    )
    for path, title in (
        ("/papers/Harbours%20of%20the%20north.pdf", "Harbours of the north"),
        ("/titled", "The weather of the year"),
    ):
        media_id = new_media(app, uploader.id, pages.url(path))
        assert extract_item(app.tools, media_id) is Outcome.READABLE
        with app.sessions.read() as session:
            view = queries.get_media(session, media_id, uploader.id)
        assert (view.row.title, view.shown_kind) == (title, Kind.PDF)
        shown = show_item(view, {}, uploader.id)
        assert (shown.kind, shown.title) == ("PDF", title)
        assert show_reading(view, "", None, Passage([], None, None), has_pdf=True).view == "pages"


def with_room(app: App, size: int) -> Tools:
    """The tools of a Nexus in which each user may store so many bytes."""
    files = replace(app.files, shares=replace(app.files.shares, stored_bytes=size))
    return replace(app.tools, files=files)


def begin_upload(app: App, tools: Tools, user: UUID, size: int) -> None:
    Uploader(replace(app, files=tools.files), user).begin(unique_pdf(size))


def test_a_fetched_pdf_counts_in_the_room_of_the_user_who_had_it_read(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    """Others who hold the item pay nothing until they have it read, and who lets go of it pays no more."""
    media_id, other = read(app, uploader, pages), Uploader(app)
    with app.sessions.begin() as session:
        hold_article(session, other.id, pages.url("/paper"))
    tools = with_room(app, len(PAPER.body) + 99)
    with pytest.raises(StorageFull):
        begin_upload(app, tools, uploader.id, 100)
    begin_upload(app, tools, other.id, 100)
    uploader.delete(media_id)
    begin_upload(app, tools, uploader.id, 100)


def test_who_refreshes_a_fetched_pdf_pays_for_what_is_new(app: App, uploader: Uploader, pages: Pages) -> None:
    media_id, other = read(app, uploader, pages), Uploader(app)
    with app.sessions.begin() as session:
        hold_article(session, other.id, pages.url("/paper"))
    pages["/paper"] = Answer(sample_documents.pdf(f"{TEXT} And more."), "application/pdf")
    refresh.request(app.sessions, LocalQueue(), media_id, other.id, None)
    assert refresh_item(with_room(app, len(PAPER.body) - 1), media_id) == "failed"
    with app.sessions.read() as session:
        failed = refresh.present(session, media_id, other.id)
    assert failed is not None
    assert failed.error_code == "E_FETCH_NO_ROOM"
    refresh.request(app.sessions, LocalQueue(), media_id, other.id, None)
    assert refresh_item(app.tools, media_id) == "revision 2"
    with pytest.raises(StorageFull):
        begin_upload(app, with_room(app, len(pages["/paper"].body) + 99), other.id, 100)
    begin_upload(app, with_room(app, len(PAPER.body) + 100), uploader.id, 100)


def test_without_room_for_a_fetched_pdf_there_is_its_text_alone(
    app: App, uploader: Uploader, pages: Pages
) -> None:
    pages["/paper"] = PAPER
    media_id = new_media(app, uploader.id, pages.url("/paper"))
    assert extract_item(with_room(app, len(PAPER.body) - 1), media_id) is Outcome.READABLE
    assert (file_of(app, media_id), stored_paths(app)) == (None, [])
    other = Uploader(app)
    with app.sessions.begin() as session:
        hold_article(session, other.id, pages.url("/paper"))
    refresh.request(app.sessions, LocalQueue(), media_id, other.id, None)
    refresh_item(app.tools, media_id)
    assert [file_of(app, media_id)] == stored_paths(app) != []
