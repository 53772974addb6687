"""A folder of files becomes a library: completely or not at all, with pauses, and every problem named."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import UUID, uuid4

import pytest
from sqlalchemy import bindparam, func, select
from structlog.testing import capture_logs

from nexus.app import App
from nexus.db.chunks import chunks
from nexus.db.drivers import CommitUnanswered
from nexus.db.session import Session, Sessions, Statement
from nexus.db.tables import fragments, libraries, library_media, media
from nexus.errors import ApiError, InvalidFileType, InvalidRequest, InvalidState, NotReady
from nexus.extract import Extraction
from nexus.extract.sandbox import CancelToken, ReadCancelled, Sandbox
from nexus.imports import committing, runner
from nexus.imports.attempts import IDLE, AttemptAnswer, Registry
from nexus.imports.checking import check_source
from nexus.imports.committing import Storing
from nexus.imports.progress import FileOutcome
from nexus.imports.runner import ImportRun
from nexus.imports.service import ImportDesk, Imports
from nexus.libraries import access
from nexus.libraries import catalog as library_verbs
from nexus.media.lifecycle import retry_media
from nexus.settings import Settings
from nexus.states.attempt import AttemptStatus, Phase
from nexus.states.media import MediaStatus
from nexus.storage import StorageError
from nexus.upkeep import clean
from tests.kit import documents
from tests.kit.clock import SetClock
from tests.kit.embedding import CountingModel, chunks_of, embed_item, vectors_of, with_model
from tests.kit.media import everything_of, walk_media_to
from tests.kit.settings import make_settings
from tests.kit.uploads import Uploader, stored_paths
from tests.kit.waiting import eventually

SENTENCE = (
    "The ferry left the harbour at noon and came back in the evening, as it does every day of the week. "
)
PATIENCE = 60.0

pytestmark = pytest.mark.usefixtures("installed_extractors")

_COUNT = {
    table.name: Statement(select(func.count().label("n")).select_from(table))
    for table in (media, libraries, fragments, chunks)
}
_IN_LIBRARY = Statement(
    select(media.c.id, media.c.title, media.c.processing_status)
    .join(library_media, library_media.c.media_id == media.c.id)
    .where(library_media.c.library_id == bindparam("library_id"))
    .order_by(media.c.title)
)


class Readers:
    """Real parsers that count their reads and can be held back."""

    def __init__(self, real: Sandbox) -> None:
        self.real = real
        self.processes = real.processes
        self.read_names: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None

    def read(self, reader: str, data: Any, hints: Any, cancel: CancelToken, user: UUID) -> Extraction:
        self.read_names.append(hints.filename)
        self.begun.set()
        while not self.gate.wait(0.01):
            if cancel.cancelled:
                raise ReadCancelled
        self.before()
        try:
            return self.real.read(reader, data, hints, cancel=cancel, user=user)
        finally:
            self.after()


@pytest.fixture
def readers(parsers: Sandbox) -> Readers:
    return Readers(parsers)


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return make_settings(database_url, tmp_path / "data")


@pytest.fixture
def app(app: App, readers: Readers) -> App:
    return replace(app, tools=replace(app.tools, sandbox=readers))  # type: ignore[arg-type]


@pytest.fixture
def imports(app: App, tmp_path: Path) -> Iterator[Imports]:
    made = Imports(app.tools, tmp_path / "data" / "imports")
    yield made
    made.close()


@pytest.fixture
def viewer() -> UUID:
    return uuid4()


@pytest.fixture
def desk(imports: Imports, viewer: UUID) -> ImportDesk:
    return imports.of(viewer)


@pytest.fixture
def book_files(tmp_path: Path) -> dict[str, Path]:
    """A PDF, an EPUB and two texts."""
    folder = tmp_path / "books"
    folder.mkdir()
    written = {
        "one.pdf": documents.pdf(f"{SENTENCE}\n{SENTENCE}"),
        "two.epub": documents.epub({"one.xhtml": documents.chapter(f"<h1>One</h1><p>{SENTENCE}</p>")}),
        "three.txt": (SENTENCE * 40).encode(),
        "four.md": f"# Four\n\n{SENTENCE * 3}".encode(),
    }
    for name, body in written.items():
        (folder / name).write_bytes(body)
    return {name: folder / name for name in written}


def staged(desk: ImportDesk, books: dict[str, Path], name: str = "Research") -> UUID:
    batch = desk.staging.open(None, name)
    for title, path in books.items():
        desk.staging.add(batch.id, title, path)
    return batch.id


def finished(desk: ImportDesk) -> AttemptStatus:
    assert desk.wait(PATIENCE)
    return desk.state.status


def count(app: App) -> dict[str, int]:
    with app.sessions.read() as session:
        return {name: int(session.first(statement).n) for name, statement in _COUNT.items()}


def in_library(app: App, library_id: UUID | None) -> list[tuple[str, str]]:
    with app.sessions.read() as session:
        rows = session.all(_IN_LIBRARY, library_id=library_id)
    return [(row.title, row.processing_status) for row in rows]


def texts_in(app: App, library_id: UUID | None) -> list[str]:
    with app.sessions.read() as session:
        rows = session.all(_IN_LIBRARY, library_id=library_id)
    return [text for row in rows for text in everything_of(app.sessions, row.id).texts]


def outcomes(desk: ImportDesk) -> dict[str, FileOutcome]:
    return {line.name: line.outcome for line in desk.progress.lines()}


def test_every_imported_file_is_in_the_library_with_its_text_and_its_object(
    app: App, desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.COMPLETE
    assert [status for _, status in in_library(app, desk.library_id)] == ["ready_for_reading"] * 4
    assert set(outcomes(desk).values()) == {FileOutcome.COMMITTED}
    assert len(stored_paths(app)) == 4
    assert count(app)["chunks"] >= 7
    with app.sessions.read() as session:
        for row in session.all(_IN_LIBRARY, library_id=desk.library_id):
            assert everything_of(app.sessions, row.id)
    assert desk.staging.all() == []


def test_imported_items_get_a_vector_for_each_chunk_with_words(
    app: App, desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.COMPLETE
    embedding = with_model(app, CountingModel())
    with app.sessions.read() as session:
        items = [row.id for row in session.all(_IN_LIBRARY, library_id=desk.library_id)]
    for media_id in items:
        assert embed_item(embedding, media_id) == "ready"
        made = {row.chunk_id for row in vectors_of(app, media_id)}
        assert made == {row.id for row in chunks_of(app, media_id) if row.length} != set()


def test_an_import_can_go_into_an_existing_library(
    app: App, desk: ImportDesk, viewer: UUID, book_files: dict[str, Path]
) -> None:
    with app.sessions.begin() as session:
        library_id = library_verbs.create_library(session, viewer, "Shelf")
    batch = desk.staging.open(library_id, None)
    desk.staging.add(batch.id, "three.txt", book_files["three.txt"])
    desk.start(batch.id)
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(in_library(app, library_id)) == 1


def test_two_imports_into_a_new_library_of_one_name_create_it_once(
    app: App, viewer: UUID, book_files: dict[str, Path], tmp_path: Path
) -> None:
    desks = [Imports(app.tools, tmp_path / f"process {n}").of(viewer) for n in range(2)]
    batches = [
        staged(desk, {name: book_files[name] for name in names})
        for desk, names in zip(desks, (("one.pdf", "two.epub"), ("three.txt", "four.md")), strict=True)
    ]
    for desk, batch_id in zip(desks, batches, strict=True):
        desk.start(batch_id)
    assert [finished(desk) for desk in desks] == [AttemptStatus.COMPLETE] * 2
    assert desks[0].library_id == desks[1].library_id
    assert len(in_library(app, desks[0].library_id)) == 4


def test_a_paused_import_resumes_without_parsing_anything_again(
    app: App, desk: ImportDesk, readers: Readers, book_files: dict[str, Path]
) -> None:
    batch_id = staged(desk, book_files)
    readers.gate.clear()
    attempt = desk.start(batch_id).attempt_id
    assert readers.begun.wait(PATIENCE)
    assert desk.pause().status is AttemptStatus.STOPPING
    readers.gate.set()
    assert finished(desk) is AttemptStatus.PAUSED
    assert desk.state.phase is Phase.PARSING
    assert count(app) == {"media": 0, "libraries": 0, "fragments": 0, "chunks": 0}
    before = list(readers.read_names)
    assert desk.resume().attempt_id == attempt
    assert finished(desk) is AttemptStatus.COMPLETE
    parsed = [name for name in readers.read_names if readers.read_names.count(name) == 1]
    assert sorted(parsed) == sorted(book_files)
    assert len(before) < len(book_files)


def test_a_pause_ends_a_parser_that_does_not_end_by_itself(
    desk: ImportDesk, readers: Readers, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus.imports.runner.GRACE_SECONDS", 0.05)
    readers.gate.clear()
    desk.start(staged(desk, book_files))
    assert readers.begun.wait(PATIENCE)
    desk.pause()
    assert finished(desk) is AttemptStatus.PAUSED
    assert FileOutcome.FAILED not in outcomes(desk).values()
    readers.gate.set()
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE


def test_a_pause_after_the_commit_leaves_nothing_to_resume(
    app: App, desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pausing = threading.Thread(target=desk.pause)
    kept, done = Storing.keep, ImportRun.settle

    def keep(storing: Storing) -> None:
        """Somebody asks in the last moment before the commit, and has to wait for its outcome."""
        pausing.start()
        pausing.join(0.1)
        assert pausing.is_alive()
        kept(storing)

    def ending(run: ImportRun) -> None:
        pausing.join(PATIENCE)
        assert desk.leave(run.batch_id).safe
        done(run)

    monkeypatch.setattr(Storing, "keep", keep)
    monkeypatch.setattr(ImportRun, "settle", ending)
    batch_id = staged(desk, book_files)
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.IDLE
    assert count(app)["media"] == 4
    assert len(in_library(app, desk.library_id)) == 4
    assert desk.staging.all() == []


def test_an_import_paused_for_hours_loses_no_file_to_upkeep(
    app: App,
    desk: ImportDesk,
    book_files: dict[str, Path],
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a laptop sleeps after the files are stored and before any row knows them."""
    failures, removed = Storing.failures, []

    def sleeping(storing: Storing) -> Iterator[Any]:
        yield from failures(storing)
        if not removed:
            clock.time = datetime.now(UTC) + timedelta(hours=2)
            removed.extend(clean.find_leftovers(app.sessions, app.files, remove=True))

    monkeypatch.setattr(Storing, "failures", sleeping)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(removed) == count(app)["media"] == 4
    assert clean.missing_objects(app.sessions, app.files) == []


def test_a_transaction_that_lasts_for_hours_loses_no_file_to_upkeep(
    app: App,
    desk: ImportDesk,
    book_files: dict[str, Path],
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write, removed = committing.write_batch, []

    def sleeping(*given: Any) -> UUID:
        library_id = write(*given)
        if not removed:
            clock.forward(hours=2)
            for stored_object in list(app.files.storage.objects(app.files.prefix)):
                app.files.storage.delete(stored_object.path)
                removed.append(stored_object)
        return library_id

    monkeypatch.setattr(committing, "write_batch", sleeping)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(removed) == count(app)["media"] == 4
    assert clean.missing_objects(app.sessions, app.files) == []


def test_a_pause_during_preflight_fails_no_file(
    desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runner.check_source

    def checking(source: Any, *given: Any) -> Any:
        if source.name == "two.epub":
            desk.pause()
        return real(source, *given)

    monkeypatch.setattr(runner, "check_source", checking)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.PAUSED
    assert set(outcomes(desk).values()) == {FileOutcome.CHECKED, FileOutcome.WAITING}
    monkeypatch.setattr(runner, "check_source", real)
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE


def test_a_pause_does_not_wait_for_a_file_that_is_being_stored(
    app: App, desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def slow(_store: Any, _path: str, chunks: Iterator[bytes], _kind: str) -> None:
        """A file with many pieces, of which none is the last."""
        for _ in chunks:
            seen.append(desk.pause())

    monkeypatch.setattr(type(app.files.storage), "put", slow)
    monkeypatch.setattr(committing, "read_pieces", lambda _: cycle([b"piece"]))
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.PAUSED
    assert 1 <= len(seen) <= committing.AT_ONCE


def test_a_resumed_import_checks_files_that_changed_meanwhile(
    app: App, desk: ImportDesk, readers: Readers, book_files: dict[str, Path]
) -> None:
    copy = book_files["three.txt"].with_name("copy.txt")
    copy.write_bytes(book_files["three.txt"].read_bytes())
    bad = book_files["one.pdf"]
    bad.write_bytes(b"%PDF-1.4 nothing else")
    desk.start(staged(desk, {**book_files, "copy.txt": copy}))
    assert finished(desk) is AttemptStatus.PAUSED
    assert outcomes(desk)["copy.txt"] is FileOutcome.DUPLICATE
    copy.write_text(f"A text of its own. {SENTENCE}")
    book_files["four.md"].write_text(f"# Another four\n\n{SENTENCE}")
    bad.write_bytes(documents.pdf(SENTENCE))
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(in_library(app, desk.library_id)) == 5
    assert (readers.read_names.count("three.txt"), readers.read_names.count("four.md")) == (1, 2)


def test_a_pause_does_not_wait_for_a_transaction_that_is_still_written(
    app: App, desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ImportRun._prepared

    def preparing(run: ImportRun, one: Any) -> Any:
        desk.pause()
        return real(run, one)

    monkeypatch.setattr(ImportRun, "_prepared", preparing)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.PAUSED
    assert desk.state.phase is Phase.ATOMIC_TEXT_COMMIT
    assert (count(app)["media"], stored_paths(app)) == (0, [])
    monkeypatch.setattr(ImportRun, "_prepared", real)
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE


def test_a_pause_before_the_commit_commits_nothing(
    app: App, desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ImportRun._split

    def splitting(run: ImportRun, *given: Any) -> None:
        real(run, *given)
        run.registry.stop()

    monkeypatch.setattr(ImportRun, "_split", splitting)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.PAUSED
    assert count(app)["media"] == 0
    assert stored_paths(app) == []


def phases(desk: ImportDesk, monkeypatch: pytest.MonkeyPatch) -> list[Phase]:
    """The phases seen from now on, without repetitions."""
    seen: list[Phase] = []
    told = desk._tell

    def tell() -> None:
        if not seen or desk.state.phase is not seen[-1]:
            seen.append(desk.state.phase)
        told()

    monkeypatch.setattr(desk.progress, "tell", tell)
    return seen


@pytest.mark.parametrize("phase", [Phase.PREFLIGHT, Phase.PARSING, Phase.SPLITTING, Phase.ATOMIC_TEXT_COMMIT])
def test_a_resumed_import_continues_in_the_phase_it_was_paused_in(
    desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    advance = Registry.advance

    def pausing(registry: Registry, attempt_id: UUID, to: Phase) -> AttemptAnswer:
        answer = advance(registry, attempt_id, to)
        if to is phase:
            desk.pause()
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(Registry, "advance", pausing)
        if phase is Phase.PREFLIGHT:
            patched.setattr(runner, "check_source", lambda *given: (desk.pause(), check_source(*given))[1])
        desk.start(staged(desk, book_files))
        assert finished(desk) is AttemptStatus.PAUSED
    assert desk.state.phase is phase
    seen = phases(desk, monkeypatch)
    assert desk.resume().phase is phase
    assert finished(desk) is AttemptStatus.COMPLETE
    order = list(Phase)
    later = [one for one in order[order.index(phase) :] if one is not Phase.TEXT_COMMITTED]
    assert [one for one in seen if one in order[1:5]] == later


def test_taking_out_a_failed_file_keeps_the_phase(
    desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    book_files["one.pdf"].write_bytes(b"%PDF-1.4 nothing else")
    batch_id = staged(desk, book_files)
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    desk.staging.remove(batch_id, desk.progress.of(FileOutcome.FAILED)[0].source_id)
    seen = phases(desk, monkeypatch)
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert Phase.PREFLIGHT not in seen


def test_a_replaced_file_goes_through_preflight_again(
    desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    book_files["one.pdf"].write_bytes(b"%PDF-1.4 nothing else")
    batch_id = staged(desk, book_files)
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    (failed,) = desk.progress.of(FileOutcome.FAILED)
    book_files["one.pdf"].write_bytes(documents.pdf(SENTENCE))
    desk.staging.replace(batch_id, failed.source_id, "one.pdf", book_files["one.pdf"])
    seen = phases(desk, monkeypatch)
    assert desk.resume().phase is Phase.PARSING
    assert finished(desk) is AttemptStatus.COMPLETE
    assert seen.index(Phase.PREFLIGHT) < seen.index(Phase.PARSING, seen.index(Phase.PREFLIGHT))


def test_a_pause_reveals_that_an_import_was_committed(
    app: App, desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Registry, "complete", Mock(side_effect=MemoryError))
        desk.start(staged(desk, book_files))
        assert finished(desk) is AttemptStatus.RUNNING
    assert len(in_library(app, desk.library_id)) == 4
    desk.pause()
    assert desk.state == IDLE
    assert desk.staging.all() == []
    desk.start(staged(desk, book_files, "Another"))
    assert finished(desk) is AttemptStatus.COMPLETE


def test_another_pause_reveals_that_an_import_has_stopped(
    desk: ImportDesk, readers: Readers, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    readers.gate.clear()
    desk.start(staged(desk, book_files))
    assert readers.begun.wait(PATIENCE)
    with monkeypatch.context() as broken:
        broken.setattr(Registry, "finish_stop", Mock(side_effect=MemoryError))
        desk.pause()
        readers.gate.set()
        assert finished(desk) is AttemptStatus.STOPPING
    desk.pause()
    assert desk.state.status is AttemptStatus.PAUSED
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE


def test_a_failed_file_pauses_the_import_and_the_rest_goes_on_without_it(
    app: App, desk: ImportDesk, readers: Readers, book_files: dict[str, Path]
) -> None:
    book_files["one.pdf"].write_bytes(b"%PDF-1.4 nothing else")
    batch_id = staged(desk, book_files)
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    (failed,) = desk.progress.of(FileOutcome.FAILED)
    assert (failed.name, failed.code) == ("one.pdf", "E_PDF_DAMAGED")
    assert failed.message
    assert count(app)["media"] == 0
    desk.staging.remove(batch_id, failed.source_id)
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(in_library(app, desk.library_id)) == 3
    assert readers.read_names.count("three.txt") == 1


def test_a_file_that_fails_preflight_is_named_before_anything_is_parsed(
    desk: ImportDesk, readers: Readers, book_files: dict[str, Path]
) -> None:
    batch_id = staged(desk, book_files)
    book_files["one.pdf"].unlink()
    book_files["two.epub"].write_bytes(b"something else")
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    assert desk.state.phase is Phase.PREFLIGHT
    assert {line.name for line in desk.progress.of(FileOutcome.FAILED)} == {"one.pdf", "two.epub"}
    assert readers.read_names == []


def test_removing_the_last_failed_file_ends_the_attempt(
    desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    book_files["one.pdf"].write_bytes(b"%PDF-1.4 nothing else")
    batch_id = staged(desk, {"one.pdf": book_files["one.pdf"]})
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    desk.staging.remove(batch_id, desk.progress.lines()[0].source_id)
    assert (desk.state.status, desk.staging.active) == (AttemptStatus.IDLE, None)
    with capture_logs() as logged:
        desk.staging.discard(batch_id)
    assert logged == []


def test_an_import_without_the_files_that_failed_says_if_nothing_is_left(
    desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    book_files["one.pdf"].write_bytes(b"%PDF-1.4 nothing else")
    batch_id = staged(desk, {"one.pdf": book_files["one.pdf"]})
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    with pytest.raises(InvalidState, match="Nothing is left to import"):
        desk.resume_without_failed(batch_id)
    assert desk.state.status is AttemptStatus.IDLE


def test_a_file_that_changes_during_an_import_is_named_and_read_again(
    app: App,
    desk: ImportDesk,
    readers: Readers,
    book_files: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = ImportRun._parse

    def parsing(run: ImportRun, *given: Any) -> None:
        real(run, *given)
        book_files["three.txt"].write_text(f"Something else. {SENTENCE}")

    monkeypatch.setattr(ImportRun, "_parse", parsing)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.PAUSED
    assert [(line.name, line.code) for line in desk.progress.of(FileOutcome.FAILED)] == [
        ("three.txt", "E_FILE_CHANGED")
    ]
    assert count(app)["media"] == 0
    assert stored_paths(app) == []
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert readers.read_names.count("three.txt") == 2
    assert sum(text.startswith("Something else.") for text in texts_in(app, desk.library_id)) == 1


@pytest.mark.parametrize("standing", ["new", "unread"])
def test_a_file_swapped_while_it_is_parsed_never_gives_its_text_to_the_checked_one(
    app: App,
    desk: ImportDesk,
    readers: Readers,
    viewer: UUID,
    book_files: dict[str, Path],
    standing: str,
) -> None:
    path = book_files["one.pdf"]
    checked = path.read_bytes()
    if standing == "unread":
        walk_media_to(app, Uploader(app, viewer).upload(checked), MediaStatus.FAILED)
    readers.before = lambda: path.write_bytes(documents.pdf("Something else."))
    readers.after = lambda: path.write_bytes(checked)
    desk.start(staged(desk, {"one.pdf": path}))
    assert finished(desk) is AttemptStatus.PAUSED
    assert [line.code for line in desk.progress.of(FileOutcome.FAILED)] == ["E_FILE_CHANGED"]
    readers.before = readers.after = lambda: None
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert [text[:9] for text in texts_in(app, desk.library_id)] == ["The ferry"]


def test_a_file_that_disappears_before_it_is_stored_is_not_blamed_on_the_store(
    desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ImportRun._split

    def splitting(run: ImportRun, *given: Any) -> None:
        real(run, *given)
        book_files["three.txt"].unlink()

    monkeypatch.setattr(ImportRun, "_split", splitting)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.PAUSED
    assert [(line.name, line.code) for line in desk.progress.of(FileOutcome.FAILED)] == [
        ("three.txt", "E_FILE_MISSING")
    ]


def test_a_file_that_can_not_be_stored_is_imported_when_the_store_is_back(
    app: App, desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = type(app.files.storage).put

    def away(store: Any, path: str, *given: Any) -> Any:
        if path.endswith(".epub"):
            raise StorageError("away")
        return real(store, path, *given)

    with monkeypatch.context() as patched:
        patched.setattr(type(app.files.storage), "put", away)
        desk.start(staged(desk, book_files))
        assert finished(desk) is AttemptStatus.PAUSED
    assert [line.code for line in desk.progress.of(FileOutcome.FAILED)] == ["E_FILE_UNREACHABLE"]
    assert stored_paths(app) == []
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(stored_paths(app)) == 4


def test_an_unexpected_error_pauses_the_import_and_fails_no_file(
    app: App, desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_id = staged(desk, book_files)
    with monkeypatch.context() as locked:
        locked.setattr(committing, "write_batch", Mock(side_effect=sqlite3.OperationalError("locked")))
        desk.start(batch_id)
        assert finished(desk) is AttemptStatus.PAUSED
        assert set(outcomes(desk).values()) == {FileOutcome.SPLIT}
        assert desk.trouble
        desk.staging.discard(batch_id)
        assert desk.trouble is None
        desk.start(staged(desk, book_files))
        assert finished(desk) is AttemptStatus.PAUSED
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert desk.trouble is None
    assert count(app)["media"] == 4


def test_an_import_whose_thread_can_not_start_is_paused(
    desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch_id = staged(desk, book_files)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError))
        with pytest.raises(RuntimeError):
            desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE


def test_a_staged_copy_that_can_not_be_removed_does_not_block_the_commit(
    desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = desk.staging.open(None, "Research")
    desk.staging.add(batch.id, "three.txt", book_files["three.txt"], ours=True)
    real = Path.unlink

    def unlink(path: Path, *given: Any, **named: Any) -> None:
        if path == book_files["three.txt"]:
            raise OSError("read-only")
        real(path, *given, **named)

    monkeypatch.setattr(Path, "unlink", unlink)
    desk.start(batch.id)
    assert finished(desk) is AttemptStatus.COMPLETE


def test_an_import_whose_workspace_is_gone_says_what_to_do(
    desk: ImportDesk, book_files: dict[str, Path], tmp_path: Path
) -> None:
    book_files["one.pdf"].write_bytes(b"%PDF-1.4 nothing else")
    batch_id = staged(desk, book_files)
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    shutil.rmtree(tmp_path / "data" / "imports")
    with pytest.raises(InvalidState, match="Discard the import"):
        desk.resume()
    desk.staging.discard(batch_id)
    del book_files["one.pdf"]
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.COMPLETE


def test_a_commit_whose_answer_got_lost_is_not_repeated_and_loses_no_file(
    app: App,
    imports: Imports,
    viewer: UUID,
    book_files: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = imports.of(viewer)
    begin = Sessions.begin

    @contextmanager
    def losing(sessions: Sessions) -> Iterator[Session]:
        with begin(sessions) as session:
            yield session
        raise CommitUnanswered("the connection is lost")

    monkeypatch.setattr(Sessions, "begin", losing)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.COMPLETE
    assert set(outcomes(desk).values()) == {FileOutcome.COMMITTED}
    monkeypatch.setattr(Sessions, "begin", begin)
    assert (count(app)["media"], count(app)["libraries"], len(stored_paths(app))) == (4, 2, 4)
    assert len(in_library(app, desk.library_id)) == 4


def test_duplicates_within_an_import_are_imported_once_and_named(
    app: App, desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    copy = book_files["three.txt"].with_name("copy.txt")
    copy.write_bytes(book_files["three.txt"].read_bytes())
    desk.start(staged(desk, {**book_files, "copy.txt": copy}))
    assert finished(desk) is AttemptStatus.COMPLETE
    assert outcomes(desk)["copy.txt"] is FileOutcome.DUPLICATE
    assert len(in_library(app, desk.library_id)) == 4


def test_duplicates_of_existing_media_are_added_to_the_library_unchanged(
    app: App, desk: ImportDesk, readers: Readers, book_files: dict[str, Path]
) -> None:
    desk.start(staged(desk, book_files, "First"))
    assert finished(desk) is AttemptStatus.COMPLETE
    desk.start(staged(desk, book_files, "Second"))
    assert finished(desk) is AttemptStatus.COMPLETE
    assert set(outcomes(desk).values()) == {FileOutcome.DUPLICATE}
    assert count(app)["media"] == 4
    assert len(in_library(app, desk.library_id)) == 4
    assert len(readers.read_names) == 4


def test_duplicates_of_a_file_that_is_uploaded_and_deleted_meanwhile_are_one_media_or_none(
    app: App, imports: Imports, book_files: dict[str, Path]
) -> None:
    body = book_files["one.pdf"].read_bytes()
    for number in range(20):
        person, before = Uploader(app), count(app)["media"]
        desk = imports.of(person.id)
        together = threading.Barrier(3)

        def upload(person: Uploader = person, together: Any = together, number: int = number) -> None:
            together.wait(PATIENCE)
            media_id = person.upload(body)
            if number % 2:
                with suppress(ApiError):
                    person.delete(media_id)

        with ThreadPoolExecutor(2) as threads:
            uploads = [threads.submit(upload) for _ in range(2)]
            batch_id = staged(desk, {"one.pdf": book_files["one.pdf"]})
            together.wait(PATIENCE)
            desk.start(batch_id)
            for done in uploads:
                done.result(PATIENCE)
        assert finished(desk) is AttemptStatus.COMPLETE
        made = count(app)["media"] - before
        assert made <= 1
        assert len(in_library(app, desk.library_id)) == made
    assert len(stored_paths(app)) == count(app)["media"]


def test_duplicates_of_a_failed_media_are_read_again_without_a_second_media(
    app: App, desk: ImportDesk, viewer: UUID, book_files: dict[str, Path]
) -> None:
    person = Uploader(app, viewer)
    media_id = person.upload(book_files["one.pdf"].read_bytes())
    walk_media_to(app, media_id, MediaStatus.FAILED)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.COMPLETE
    assert outcomes(desk)["one.pdf"] is FileOutcome.COMMITTED
    found = everything_of(app.sessions, media_id)
    assert found.row.processing_status == MediaStatus.READY_FOR_READING
    assert found.row.processing_attempts == 2
    assert found.texts[0].startswith("The ferry")
    assert desk.library_id in found.holders
    assert count(app)["media"] == 4
    assert len(stored_paths(app)) == 4


@pytest.mark.parametrize("change", ["it is uploaded", "it is deleted", "it is tried again"])
def test_duplicates_that_appear_or_disappear_before_the_commit_are_checked_again(
    app: App,
    desk: ImportDesk,
    readers: Readers,
    viewer: UUID,
    book_files: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    person = Uploader(app, viewer)
    body = book_files["one.pdf"].read_bytes()
    if change != "it is uploaded":
        media_id = person.upload(body)
    if change == "it is tried again":
        walk_media_to(app, media_id, MediaStatus.FAILED)
    real = ImportRun._split

    def meanwhile(run: ImportRun, *given: Any) -> None:
        monkeypatch.setattr(ImportRun, "_split", real)
        real(run, *given)
        if change == "it is uploaded":
            person.upload(body)
        elif change == "it is deleted":
            person.delete(media_id)
        else:
            with app.sessions.begin() as session:
                retry_media(session, media_id, viewer)

    monkeypatch.setattr(ImportRun, "_split", meanwhile)
    desk.start(staged(desk, book_files))
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(in_library(app, desk.library_id)) == 4
    assert count(app)["media"] == 4
    assert len(stored_paths(app)) == 4
    assert readers.read_names.count("one.pdf") == 1


def test_duplicates_removed_during_a_pause_are_not_imported(
    app: App, desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    desk.start(staged(desk, {"one.pdf": book_files["one.pdf"]}, "First"))
    assert finished(desk) is AttemptStatus.COMPLETE
    bad = book_files["two.epub"].with_name("bad.pdf")
    bad.write_bytes(b"%PDF-1.4 nothing else")
    given = {"one.pdf": book_files["one.pdf"], "bad.pdf": bad, "three.txt": book_files["three.txt"]}
    batch_id = staged(desk, given, "Second")
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.PAUSED
    for source in desk.staging.get(batch_id).sources[:2]:
        desk.staging.remove(batch_id, source.id)
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(in_library(app, desk.library_id)) == 1


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.docx", b"PK"),
        ("a.pdf", b"no pdf"),
        ("a.epub", b"PK\x03\x04 no epub"),
        ("a.txt", b"\x00\x01\x02"),
        ("a", b"text"),
    ],
)
def test_staging_accepts_files_whose_name_and_content_agree(
    desk: ImportDesk, tmp_path: Path, name: str, body: bytes
) -> None:
    path = tmp_path / "given"
    path.write_bytes(body)
    batch = desk.staging.open(None, "Research")
    with pytest.raises(InvalidFileType):
        desk.staging.add(batch.id, name, path)
    assert desk.staging.get(batch.id).sources == ()


def test_staged_files_are_reordered_only_by_the_exact_list(
    desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    batch_id = staged(desk, book_files)
    ids = [source.id for source in desk.staging.get(batch_id).sources]
    assert [s.id for s in desk.staging.reorder(batch_id, ids[::-1]).sources] == ids[::-1]
    for wrong in (ids[:-1], [*ids, ids[0]], [*ids[:-1], uuid4()], []):
        with pytest.raises(InvalidRequest):
            desk.staging.reorder(batch_id, wrong)
    assert [s.id for s in desk.staging.get(batch_id).sources] == ids[::-1]


def test_a_staged_file_moves_up_and_down_as_far_as_there_are_others(
    desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    batch_id = staged(desk, book_files)
    first, second, *others, last = (source.id for source in desk.staging.get(batch_id).sources)
    desk.staging.move(batch_id, first, -1)
    desk.staging.move(batch_id, first, 1)
    desk.staging.move(batch_id, last, 1)
    assert [source.id for source in desk.staging.get(batch_id).sources] == [second, first, *others, last]


def test_staging_is_closed_while_an_import_runs_and_open_while_it_is_paused(
    desk: ImportDesk, readers: Readers, book_files: dict[str, Path]
) -> None:
    batch_id = staged(desk, {"one.pdf": book_files["one.pdf"]})
    readers.gate.clear()
    desk.start(batch_id)
    assert readers.begun.wait(PATIENCE)
    with pytest.raises(InvalidState):
        desk.staging.add(batch_id, "three.txt", book_files["three.txt"])
    desk.pause()
    readers.gate.set()
    assert finished(desk) is AttemptStatus.PAUSED
    desk.staging.add(batch_id, "three.txt", book_files["three.txt"])
    desk.resume()
    assert finished(desk) is AttemptStatus.COMPLETE
    assert len(outcomes(desk)) == 2


def test_a_library_has_one_batch_however_often_it_is_opened(desk: ImportDesk) -> None:
    assert desk.staging.open(None, "Research") is desk.staging.open(None, "Research")
    assert desk.staging.open(None, "Other").id != desk.staging.open(None, "Research").id


def test_staging_removes_its_own_copies_and_never_a_users_file(
    desk: ImportDesk, book_files: dict[str, Path]
) -> None:
    batch = desk.staging.open(None, "Research")
    theirs = desk.staging.add(batch.id, "one.pdf", book_files["one.pdf"])
    ours = desk.staging.add(batch.id, "two.epub", book_files["two.epub"], ours=True)
    desk.staging.replace(batch.id, ours.id, "three.txt", book_files["three.txt"], ours=True)
    assert not book_files["two.epub"].exists()
    desk.staging.remove(batch.id, theirs.id)
    assert book_files["one.pdf"].exists()
    desk.staging.discard(batch.id)
    assert not book_files["three.txt"].exists()


def test_leaving_is_safe_if_nothing_would_be_lost(
    app: App, desk: ImportDesk, viewer: UUID, book_files: dict[str, Path]
) -> None:
    with app.sessions.begin() as session:
        library_id = access.ensure_user(session, viewer)
    assert desk.leave(desk.staging.open(None, "Research").id).safe
    batch = desk.staging.open(library_id, None)
    desk.staging.add(batch.id, "one.pdf", book_files["one.pdf"])
    assert desk.leave(batch.id).safe


def test_leaving_would_discard_a_draft_until_its_text_is_committed(
    desk: ImportDesk, book_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    real = ImportRun._commit

    def commit(run: ImportRun, *given: Any) -> None:
        seen.append(desk.leave(run.batch_id))
        real(run, *given)
        seen.append(desk.leave(run.batch_id))

    monkeypatch.setattr(ImportRun, "_commit", commit)
    batch_id = staged(desk, book_files)
    assert desk.leave(batch_id).should_warn
    desk.start(batch_id)
    assert finished(desk) is AttemptStatus.COMPLETE
    assert [(leave.safe, leave.would_discard) for leave in seen] == [(False, True), (True, False)]


def test_an_empty_batch_can_not_be_imported(desk: ImportDesk) -> None:
    with pytest.raises(InvalidRequest):
        desk.start(desk.staging.open(None, "Research").id)
    assert desk.state.status is AttemptStatus.IDLE


def test_a_second_import_waits_for_the_first(
    desk: ImportDesk, readers: Readers, book_files: dict[str, Path]
) -> None:
    readers.gate.clear()
    desk.start(staged(desk, book_files))
    with pytest.raises(InvalidState):
        desk.start(staged(desk, {"one.pdf": book_files["one.pdf"]}, "Other"))
    readers.gate.set()
    assert finished(desk) is AttemptStatus.COMPLETE


def test_an_import_under_racing_requests_ends_with_all_or_nothing(
    app: App, imports: Imports, book_files: dict[str, Path]
) -> None:
    whole_books = {name: book_files[name] for name in ("three.txt", "four.md")}
    for number in range(20):
        desk = imports.of(uuid4())
        batch_id = staged(desk, whole_books)
        (first, _) = desk.staging.get(batch_id).sources
        verbs: list[Callable[[], object]] = [
            lambda desk=desk, batch_id=batch_id: desk.start(batch_id),
            desk.pause,
            desk.resume,
            lambda desk=desk, batch_id=batch_id: desk.staging.discard(batch_id),
            lambda desk=desk, batch_id=batch_id, first=first: desk.staging.remove(batch_id, first.id),
        ]
        together = threading.Barrier(len(verbs))

        def ask(which: int, verbs: Any = verbs, together: Any = together, number: int = number) -> None:
            together.wait(PATIENCE)
            for turn in range(5):
                with suppress(ApiError):
                    verbs[(which + turn * (number + 1)) % len(verbs)]()

        before = count(app)["media"]
        with ThreadPoolExecutor(len(verbs)) as threads:
            list(threads.map(ask, range(len(verbs))))
        assert desk.wait(PATIENCE)
        assert desk.state.status in {AttemptStatus.IDLE, AttemptStatus.PAUSED, AttemptStatus.COMPLETE}
        done = [line for line in desk.progress.lines() if line.outcome is FileOutcome.COMMITTED]
        assert count(app)["media"] - before == (len(done) if desk.library_id else 0)


def test_an_ending_process_commits_no_import_and_leaves_its_folder_to_the_next_start(
    app: App,
    imports: Imports,
    desk: ImportDesk,
    readers: Readers,
    book_files: dict[str, Path],
    tmp_path: Path,
) -> None:
    readers.gate.clear()
    desk.start(staged(desk, book_files))
    assert readers.begun.wait(PATIENCE)
    threading.Timer(0.1, readers.gate.set).start()
    imports.close()
    assert desk.state.status is AttemptStatus.STOPPING
    assert count(app)["media"] == 0
    base = tmp_path / "data" / "imports"
    assert len(list(base.iterdir())) == 1
    Imports(app.tools, base).open()
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("whose", ["of somebody who is there", "of somebody new"])
def test_no_import_starts_once_the_process_is_ending(
    imports: Imports, desk: ImportDesk, book_files: dict[str, Path], whose: str
) -> None:
    imports.cancel()
    other = desk if whose == "of somebody who is there" else imports.of(uuid4())
    with pytest.raises(NotReady, match="is shutting down"):
        other.start(staged(other, book_files))
    assert other.state == IDLE


def test_no_import_commits_behind_another_once_the_process_is_ending(imports: Imports) -> None:
    """The commit is waited for, and nobody else may begin one meanwhile."""
    first, second = imports.of(uuid4()).registry, imports.of(uuid4()).registry
    begun, other = first.start().state, second.start().state
    assert begun.attempt_id is not None
    assert other.attempt_id is not None
    with first.committing(begun.attempt_id) as allowed:
        assert allowed
        ending = threading.Thread(target=imports.cancel)
        ending.start()
        eventually(lambda: second.is_closed, "everybody is told")
        with second.committing(other.attempt_id) as late:
            assert not late
    ending.join(PATIENCE)
    assert not ending.is_alive()
