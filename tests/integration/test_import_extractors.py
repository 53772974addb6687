"""Imports read files with the same registered extractors as uploads, so a user's plugin serves both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, select
from structlog.testing import capture_logs

from nexus.app import App
from nexus.db.session import Statement
from nexus.db.tables import library_media, usage
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Fetched, Source
from nexus.extract.builtin import PDF, TEXT
from nexus.extract.registry import extractor_origin
from nexus.imports.progress import FileOutcome
from nexus.imports.service import ImportDesk, Imports
from nexus.libraries import access
from nexus.media import refresh, revisions
from nexus.settings import Settings
from nexus.states.attempt import AttemptStatus
from nexus.states.media import Kind
from tests.kit.documents import chapter, epub, pdf
from tests.kit.media import everything_of
from tests.kit.settings import make_settings

SENTENCE = "The ferry left the harbour at noon and came back in the evening. "
PATIENCE = 60.0

pytestmark = pytest.mark.usefixtures("installed_extractors")

_IN_LIBRARY = Statement(
    select(library_media.c.media_id).where(library_media.c.library_id == bindparam("library_id"))
)
_USED = Statement(select(usage.c.amount, usage.c.media_id).where(usage.c.user_id == bindparam("user_id")))


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path) -> Settings:
    return make_settings(sqlite_url, tmp_path / "data", quota_transcribe_seconds=100)


@pytest.fixture
def viewer() -> UUID:
    return uuid4()


@pytest.fixture
def desk(app: App, tmp_path: Path, viewer: UUID) -> Iterator[ImportDesk]:
    imports = Imports(app.tools, tmp_path / "imports")
    yield imports.of(viewer)
    imports.close()


@pytest.fixture
def books(tmp_path: Path) -> list[Path]:
    written = {
        "one.pdf": pdf(f"{SENTENCE}\n{SENTENCE}"),
        "two.epub": epub({"one.xhtml": chapter(f"<h1>One</h1><p>{SENTENCE}</p>")}),
        "three.txt": (SENTENCE * 40).encode(),
    }
    for name, body in written.items():
        (tmp_path / name).write_bytes(body)
    return [tmp_path / name for name in written]


def run_import(desk: ImportDesk, *paths: Path) -> AttemptStatus:
    batch = desk.staging.open(None, "Research")
    for path in paths:
        desk.staging.add(batch.id, path.name, path)
    desk.start(batch.id)
    assert desk.wait(PATIENCE)
    return desk.state.status


def imported(app: App, desk: ImportDesk) -> list[UUID]:
    with app.sessions.read() as session:
        return [row.media_id for row in session.all(_IN_LIBRARY, library_id=desk.library_id)]


def shout(source: Source) -> Extraction:
    """A plugin that changes what the reader found, and says what it was given."""
    with source.bench.file() as file:
        found = source.bench.read(PDF, file.stream, file.hints())
    texts = [fragment.text.upper() for fragment in found.fragments]
    return Extraction.plain(f"{source.kind} {file.name} {source.attempt}", *texts)


def test_plugin_for_pdfs_serves_imports(app: App, desk: ImportDesk, books: list[Path]) -> None:
    AVAILABLE_EXTRACTORS[Kind.PDF] = shout
    assert run_import(desk, books[0]) is AttemptStatus.COMPLETE
    (media_id,) = imported(app, desk)
    found = everything_of(app.sessions, media_id)
    assert found.row.title == "pdf one.pdf 1"
    assert "THE FERRY LEFT THE HARBOUR" in found.texts[0]
    with app.sessions.read() as session:
        document = revisions.read_revision(session, media_id, 1)
    assert document is not None
    assert document.extractor == extractor_origin(shout)


def test_fresh_import_is_not_outdated(app: App, desk: ImportDesk, viewer: UUID, books: list[Path]) -> None:
    assert run_import(desk, *books) is AttemptStatus.COMPLETE
    assert len(imported(app, desk)) == 3
    with app.sessions.read() as session:
        assert refresh.outdated(session, app.tools, viewer) == []
    AVAILABLE_EXTRACTORS[Kind.PDF] = shout
    with app.sessions.read() as session:
        (outdated,) = refresh.outdated(session, app.tools, viewer)
    assert everything_of(app.sessions, outdated).row.kind == "pdf"


def test_plugin_that_crashes_fails_its_file_and_tells_no_secrets(desk: ImportDesk, books: list[Path]) -> None:
    def crash(source: Source) -> Extraction:
        raise RuntimeError("the text of the file")

    AVAILABLE_EXTRACTORS[Kind.PDF] = crash
    with capture_logs() as lines:
        assert run_import(desk, *books) is AttemptStatus.PAUSED
    (failed,) = desk.progress.of(FileOutcome.FAILED)
    assert (failed.name, failed.code) == ("one.pdf", "E_EXTRACTION_FAILED")
    (crashed,) = [line for line in lines if line["event"] == "extractor_crashed"]
    assert (crashed["reason"], crashed["kind"]) == ("RuntimeError", "pdf")
    assert "the text of the file" not in str(lines)


def test_file_without_an_extractor_fails_in_preflight(desk: ImportDesk, books: list[Path]) -> None:
    del AVAILABLE_EXTRACTORS[Kind.EPUB]
    assert run_import(desk, *books) is AttemptStatus.PAUSED
    (failed,) = desk.progress.of(FileOutcome.FAILED)
    assert (failed.name, failed.code) == ("two.epub", "E_EXTRACTION_FAILED")
    assert {line.outcome for line in desk.progress.lines()} == {FileOutcome.FAILED, FileOutcome.CHECKED}


def test_import_reads_files_even_with_extraction_off(
    app: App, tmp_path: Path, viewer: UUID, books: list[Path]
) -> None:
    off = Imports(replace(app.tools, extractors={}), tmp_path / "imports")
    with closing(off):
        assert run_import(off.of(viewer), *books) is AttemptStatus.COMPLETE


def test_plugin_in_an_import_uses_its_users_allowance(
    app: App, desk: ImportDesk, viewer: UUID, books: list[Path]
) -> None:
    def transcribe(source: Source) -> Extraction:
        source.bench.require_transcription(60.5)
        source.bench.record_transcription(60.5)
        return Extraction.plain(None, SENTENCE)

    AVAILABLE_EXTRACTORS[Kind.PDF] = AVAILABLE_EXTRACTORS[Kind.EPUB] = transcribe
    with app.sessions.begin() as session:
        access.ensure_user(session, viewer)
    assert run_import(desk, books[0]) is AttemptStatus.COMPLETE
    (media_id,) = imported(app, desk)
    with app.sessions.read() as session:
        assert session.all(_USED, user_id=viewer) == [(61, media_id)]
    assert run_import(desk, books[1]) is AttemptStatus.PAUSED
    assert [line.code for line in desk.progress.lines()] == ["E_TRANSCRIPTION_QUOTA"]


def test_plugin_in_an_import_fetches_through_the_guard(desk: ImportDesk, books: list[Path]) -> None:
    AVAILABLE_EXTRACTORS[Kind.PDF] = lambda source: source.bench.read(
        TEXT, source.bench.fetch("http://127.0.0.1/secrets").body
    )
    assert run_import(desk, books[0]) is AttemptStatus.PAUSED
    assert [line.code for line in desk.progress.lines()] == ["E_FETCH_BLOCKED_ADDRESS"]


def test_file_that_a_plugin_keeps_does_not_replace_the_imported_one(
    app: App, desk: ImportDesk, books: list[Path]
) -> None:
    def keep(source: Source) -> Extraction:
        source.bench.keep(Fetched("https://example.com/a.pdf", 200, "application/pdf", None, b"%PDF-other"))
        return Extraction.plain(None, SENTENCE)

    AVAILABLE_EXTRACTORS[Kind.PDF] = keep
    assert run_import(desk, books[0]) is AttemptStatus.COMPLETE
    (media_id,) = imported(app, desk)
    (file,) = everything_of(app.sessions, media_id).files
    assert b"".join(app.files.storage.stream(file.storage_path)) == books[0].read_bytes()
