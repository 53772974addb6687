"""From an address or a file to readable text, with the extractors that Nexus brings, real fetches and real parsers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import and_, bindparam, select

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import assets, fragments, media, media_file, revisions
from nexus.libraries import catalog
from nexus.media import queries, refresh, submit
from nexus.media.deletions import discard_all
from nexus.media.revisions import keep_files
from nexus.media.runner import Outcome
from nexus.media.texts import Kept
from nexus.queue.local import LocalQueue
from nexus.states.media import Kind
from nexus.upkeep import clean
from tests.kit import documents as sample_documents
from tests.kit.articles import ARTICLE, PARAGRAPHS, SENTENCES
from tests.kit.databases import copied_postgres
from tests.kit.installation import Nexus, all_settled, installed
from tests.kit.media import new_file, new_media, row_of
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.uploads import Uploader, stored_paths
from tests.kit.waiting import eventually
from tests.kit.work import extract_item, refresh_item

pytestmark = pytest.mark.wall_clock

_DOCUMENT = Statement(select(revisions).where(revisions.c.media_id == bindparam("media_id")))
_FRAGMENTS = Statement(
    select(fragments)
    .join(media, and_(media.c.id == fragments.c.media_id, media.c.newest_revision == fragments.c.revision))
    .where(fragments.c.media_id == bindparam("media_id"))
    .order_by(fragments.c.position)
)
_ASSETS = Statement(select(assets).where(assets.c.media_id == bindparam("media_id")))
_FILE = Statement(select(media_file).where(media_file.c.media_id == bindparam("media_id")))


def rows(app: App, statement: Statement, media_id: UUID) -> list[Any]:
    with app.sessions.read() as session:
        return session.all(statement, media_id=media_id)


def failure(app: App, media_id: UUID) -> str | None:
    code: str | None = row_of(app.sessions, media_id).last_error_code
    return code


def test_an_article_becomes_clean_text(app: App, pages: Pages) -> None:
    pages["/boats"] = Answer(ARTICLE.encode())
    media_id = new_media(app, url=pages.url("/boats"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    (piece,) = rows(app, _FRAGMENTS, media_id)
    for sentence in SENTENCES:
        assert sentence in piece.text
    assert "All rights reserved" not in piece.text
    assert f'href="{pages.url("/more")}"' in piece.html
    (document,) = rows(app, _DOCUMENT, media_id)
    assert row_of(app.sessions, media_id).title == "The harbour"
    assert (document.byline, document.site, document.language) == ("Ann Oar", "The Daily Boat", "en")
    assert (document.number, document.fetched_url) == (1, pages.url("/boats"))
    assert document.extractor.startswith("nexus ")
    assert document.words > 100


def test_the_final_address_of_a_fetch_is_kept_beside_the_submitted_one(app: App, pages: Pages) -> None:
    pages["/old"] = Answer(b"", status=301, headers={"Location": "/boats"})
    pages["/boats"] = Answer(ARTICLE.encode())
    media_id = new_media(app, url=pages.url("/old"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert row_of(app.sessions, media_id).canonical_url == pages.url("/old")
    assert rows(app, _DOCUMENT, media_id)[0].fetched_url == pages.url("/boats")


def test_plain_text_at_an_address_becomes_readable(app: App, pages: Pages) -> None:
    pages["/notes.txt"] = Answer("\n\n".join(SENTENCES).encode(), "text/plain")
    media_id = new_media(app, url=pages.url("/notes.txt"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert SENTENCES[2] in rows(app, _FRAGMENTS, media_id)[0].text


CHALLENGE = (
    "<html><head><title>Just a moment...</title></head><body><h1>Checking your browser</h1>"
    "<p>Please verify you are human by completing the captcha below.</p>"
    '<script src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1"></script></body></html>'
)
BAD = {
    "a bot check": (Answer(CHALLENGE.encode()), "E_BLOCKED_PAGE"),
    "hardly any text": (Answer(b"<html><body><p>Hello.</p></body></html>"), "E_EMPTY_CONTENT"),
    "too much html": (Answer(b"<html><body>" + b"<p>x</p>" * 300_000), "E_PAGE_TOO_LARGE"),
    "not found": (Answer(b"gone", status=404), "E_FETCH_HTTP_4XX"),
    "a picture": (Answer(b"\x89PNG", "image/png"), "E_FETCH_WRONG_TYPE"),
    "a damaged PDF": (Answer(b"%PDF-1.7 and then nothing", "application/pdf"), "E_PDF_DAMAGED"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_page_that_is_no_article_fails_with_its_own_code(app: App, pages: Pages, what: str) -> None:
    pages["/page"], expected = BAD[what]
    media_id = new_media(app, url=pages.url("/page"))
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert failure(app, media_id) == expected
    assert rows(app, _FRAGMENTS, media_id) == rows(app, _DOCUMENT, media_id) == []


def test_a_mended_page_is_readable_after_a_retry(app: App, pages: Pages) -> None:
    user = uuid4()
    pages["/boats"] = Answer(CHALLENGE.encode())
    media_id = new_media(app, user, pages.url("/boats"))
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    pages["/boats"] = Answer(ARTICLE.encode())
    submit.retry_failed_item(app.sessions, LocalQueue(), media_id, user)
    assert extract_item(app.tools, media_id) is Outcome.READABLE


def test_a_private_address_is_not_fetched(app: App, pages: Pages) -> None:
    port = int(pages.place.rpartition(":")[2])
    media_id = new_media(app, url=f"http://localhost:{port}/boats")
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert failure(app, media_id) == "E_FETCH_BLOCKED_ADDRESS"
    assert pages.asked == []


def test_an_article_of_a_site_that_sends_retry_after_is_read_later(app: App, pages: Pages) -> None:
    pages["/busy"] = Answer(b"", status=429, headers={"Retry-After": "120"})
    media_id = new_media(app, url=pages.url("/busy"))
    before = app.sessions.clock()
    assert extract_item(app.tools, media_id) is Outcome.RELEASED
    assert (row_of(app.sessions, media_id).run_after - before).total_seconds() > 100


def test_an_address_that_answers_with_a_pdf_keeps_it_as_its_file(app: App, pages: Pages) -> None:
    user = uuid4()
    body = sample_documents.pdf("\n".join(SENTENCES))
    pages["/papers/The%20harbour.pdf"] = Answer(body, "application/pdf")
    media_id = new_media(app, user, pages.url("/papers/The%20harbour.pdf"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert row_of(app.sessions, media_id).kind == "web_article"
    (file,) = rows(app, _FILE, media_id)
    assert (file.content_type, file.size_bytes, file.filename) == (
        "application/pdf",
        len(body),
        "The harbour.pdf",
    )
    assert b"".join(app.files.storage.stream(file.storage_path)) == body
    assert "harbour" in rows(app, _FRAGMENTS, media_id)[0].text
    assert clean.missing_objects(app.sessions, app.files) == []

    with app.sessions.begin() as session:
        gone = catalog.delete_media(session, media_id, user)
    discard_all(app.files, gone)
    assert stored_paths(app) == []


def test_a_fetched_pdf_without_text_can_still_be_downloaded(app: App, pages: Pages) -> None:
    user = uuid4()
    pages["/scan"] = Answer(sample_documents.pdf(""), "application/pdf")
    media_id = new_media(app, user, pages.url("/scan"))
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert failure(app, media_id) == "E_PDF_NO_TEXT"
    assert len(rows(app, _FILE, media_id)) == 1
    pages["/scan"] = Answer(ARTICLE.encode())
    submit.retry_failed_item(app.sessions, LocalQueue(), media_id, user)
    assert rows(app, _FILE, media_id) == []
    assert extract_item(app.tools, media_id) is Outcome.READABLE


def test_a_pdf_that_becomes_a_page_is_kept_with_its_version(app: App, pages: Pages) -> None:
    user = uuid4()
    pages["/paper"] = Answer(sample_documents.pdf("\n".join(SENTENCES)), "application/pdf")
    media_id = new_media(app, user, pages.url("/paper"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    pages["/paper"] = Answer(ARTICLE.encode())
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    assert refresh_item(app.tools, media_id) == "revision 2"
    assert [row.revision for row in rows(app, _FILE, media_id)] == [1]
    with app.sessions.read() as session:
        assert not queries.get_media(session, media_id, user).capabilities.can_download_file
        assert queries.get_media(session, media_id, user, 1).capabilities.can_download_file


def test_a_page_that_has_not_changed_is_not_read_again(app: App, pages: Pages) -> None:
    user = uuid4()
    pages["/boats"] = Answer(ARTICLE.encode(), headers={"ETag": '"1"'})
    media_id = new_media(app, user, pages.url("/boats"))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    assert refresh_item(app.tools, media_id) == "unchanged"
    assert [headers.get("if-none-match") for _, headers in pages.asked] == [None, '"1"']
    pages["/boats"] = Answer(ARTICLE.replace("boats", "ships").encode(), headers={"ETag": '"2"'})
    refresh.request(app.sessions, LocalQueue(), media_id, user, None)
    assert refresh_item(app.tools, media_id) == "revision 2"
    assert "ships" in rows(app, _FRAGMENTS, media_id)[0].text


def test_a_pdf_becomes_pages_of_text(app: App) -> None:
    media_id = Uploader(app).upload(sample_documents.pdf("\n".join(SENTENCES[:3]), "\n".join(SENTENCES[3:])))
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    found = rows(app, _FRAGMENTS, media_id)
    assert len(found) == 2
    assert SENTENCES[0].split()[1] in found[0].text


def test_an_epub_becomes_chapters(app: App) -> None:
    chapters = {
        f"c{number}.xhtml": sample_documents.chapter(f"<h1>Chapter {number}</h1>{PARAGRAPHS}")
        for number in (1, 2)
    }
    media_id = Uploader(app).upload(sample_documents.epub(chapters), "epub")
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert len(rows(app, _FRAGMENTS, media_id)) == 2
    (document,) = rows(app, _DOCUMENT, media_id)
    assert [line[0] for line in json.loads(document.outline)] == ["Chapter 1", "Chapter 2"]


def test_a_text_file_is_read_by_its_name(app: App) -> None:
    """Markdown and plain text are the same bytes."""
    body = b"# Boats\n\nThey *sail*.\n"
    media_id = new_file(app, uuid4(), hashlib.sha256(body).hexdigest(), kind=Kind.TEXT)
    path = app.files.path(media_id, Kind.TEXT)
    app.files.storage.put(path, [body], "text/markdown")
    with app.sessions.begin() as session:
        keep_files(session, {media_id: Kept(0, path, "text/markdown", len(body), "boats.md")})
    assert extract_item(app.tools, media_id) is Outcome.READABLE
    assert "<em>sail</em>" in rows(app, _FRAGMENTS, media_id)[0].html


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (sample_documents.locked_pdf(), "pdf", "E_PDF_ENCRYPTED"),
        (sample_documents.pdf(""), "pdf", "E_PDF_NO_TEXT"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 8, "pdf", "E_PDF_DAMAGED"),
    ],
)
def test_an_unreadable_file_fails_with_the_reason(app: App, body: bytes, kind: str, code: str) -> None:
    media_id = Uploader(app).upload(body, kind)
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert failure(app, media_id) == code


def test_a_file_that_changed_in_the_store_is_not_read(app: App) -> None:
    media_id = Uploader(app).upload(sample_documents.pdf("\n".join(SENTENCES)))
    path = app.files.path(media_id, Kind.PDF)
    app.files.storage.delete(path)
    app.files.storage.put(path, [sample_documents.pdf("Something else")], "application/pdf")
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert failure(app, media_id) == "E_FILE_CHANGED"


def test_a_file_that_is_gone_from_the_store_fails_with_the_reason(app: App) -> None:
    media_id = Uploader(app).upload(sample_documents.pdf("\n".join(SENTENCES)))
    app.files.storage.delete(app.files.path(media_id, Kind.PDF))
    assert extract_item(app.tools, media_id) is Outcome.FAILED
    assert failure(app, media_id) == "E_FILE_MISSING"


def add_all(nexus: Nexus, pages: Pages) -> list[UUID]:
    """An article, a PDF at an address, a PDF, an EPUB and a page that can't be read."""
    pages["/boats"] = Answer(ARTICLE.encode())
    pages["/paper"] = Answer(sample_documents.pdf("\n".join(SENTENCES)), "application/pdf")
    pages["/blocked"] = Answer(CHALLENGE.encode())
    person = Uploader(nexus.app)
    urls = [new_media(nexus.app, person.id, pages.url(path)) for path in ("/boats", "/paper", "/blocked")]
    book = sample_documents.epub({"c1.xhtml": sample_documents.chapter(f"<h1>One</h1>{PARAGRAPHS}")})
    return [*urls, person.upload(sample_documents.pdf("\n".join(SENTENCES))), person.upload(book, "epub")]


def outcome(nexus: Nexus, media_id: UUID) -> tuple[object, ...]:
    """Everything that was read, without ids and times."""
    row = row_of(nexus.app.sessions, media_id)
    found = rows(nexus.app, _FRAGMENTS, media_id)
    pictures = rows(nexus.app, _ASSETS, media_id)
    moved = {"media_id", "written_at", "seen_at"}
    facts = [
        {name: value for name, value in one._asdict().items() if name not in moved}
        for one in rows(nexus.app, _DOCUMENT, media_id)
    ]
    return (
        row.title,
        row.processing_status,
        row.last_error_code,
        [(one.position, one.text, one.html) for one in found],
        [(one.name, bytes(one.data)) for one in pictures],
        facts,
    )


def worked(nexus: Nexus, pages: Pages) -> list[tuple[object, ...]]:
    ids = add_all(nexus, pages)
    nexus.worker()
    eventually(lambda: all_settled(nexus, ids), "everything is at an end")
    return [outcome(nexus, media_id) for media_id in ids]


def test_thread_and_celery_workers_read_the_same_text(
    sqlite_url: str, postgres_template: str, redis_url: str, tmp_path: Path, pages: Pages
) -> None:
    real = {"plugins": (), "fetch_allow": (pages.place,), "fetch_delay_seconds": 0.0, "lease_seconds": 30.0}
    for name in ("local", "celery"):
        (tmp_path / name).mkdir()
    with installed(sqlite_url, tmp_path / "local", **real) as nexus:
        local = worked(nexus, pages)
    celery = {"queue": "celery", "redis_url": redis_url, **real}
    with (
        copied_postgres(postgres_template) as url,
        installed(url, tmp_path / "celery", **celery) as nexus,
    ):
        assert worked(nexus, pages) == local
    assert [one[1] for one in local] == ["ready_for_reading", "ready_for_reading", "failed"] + [
        "ready_for_reading"
    ] * 2
