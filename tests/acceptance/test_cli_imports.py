"""`nexus import` in a terminal: all of a folder or nothing of it, and a word for every file that is in the way."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests import documents
from tests.commands import Terminal

SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "


@pytest.fixture
def terminal(tmp_path: Path, migrated_sqlite: Path) -> Terminal:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "nexus.sqlite3").write_bytes(migrated_sqlite.read_bytes())
    return Terminal(tmp_path, {"NEXUS_DATA_DIR": str(tmp_path / "data")})


@pytest.fixture
def books(tmp_path: Path) -> Path:
    folder = tmp_path / "Books" / "more"
    folder.mkdir(parents=True)
    (folder.parent / "one.pdf").write_bytes(documents.pdf(SENTENCE))
    (folder / "two.md").write_text(f"# Two\n\n{SENTENCE * 5}")
    (folder / "notes.docx").write_bytes(b"not for us")
    return folder.parent


def titles(terminal: Terminal, *arguments: str) -> list[str]:
    found = json.loads(terminal.run("status", "--json", *arguments).out)
    return sorted(one["title"] for one in found)


def test_a_folder_becomes_a_library(terminal: Terminal, books: Path) -> None:
    ran = terminal.run("import", books, "--library", "Research")
    assert ran.code == 0, ran.err
    assert "2 files imported" in ran.out
    assert len(titles(terminal, "--library", "Research")) == 2
    assert terminal.run("doctor").code == 0


def test_a_second_time_everything_is_there_already_and_that_is_no_failure(
    terminal: Terminal, books: Path
) -> None:
    terminal.run("import", books, "--library", "Research")
    ran = terminal.run("import", books, "--library", "Research")
    assert (ran.code, "2 duplicates" in ran.out) == (0, True)
    assert len(titles(terminal)) == 2


def test_a_file_that_can_not_be_read_is_named_and_nothing_is_imported(
    terminal: Terminal, books: Path
) -> None:
    (books / "bad.pdf").write_bytes(b"%PDF-1.4 nothing else")
    ran = terminal.run("import", books, "--library", "Research")
    assert ran.code == 1
    assert "bad.pdf" in ran.err
    assert "E_PDF_DAMAGED" in ran.err
    assert titles(terminal) == []


def test_what_is_no_book_is_named(terminal: Terminal, books: Path) -> None:
    ran = terminal.run("import", books / "more" / "notes.docx")
    assert ran.code == 1
    assert "notes.docx" in ran.err
    missing = terminal.run("import", books / "missing.pdf")
    assert (missing.code, "no such file" in missing.err) == (1, True)


def test_objects_for_a_program(terminal: Terminal, books: Path) -> None:
    ran = terminal.run("import", books, "--json")
    assert {json.loads(line)["outcome"] for line in ran.out.splitlines()} == {"committed"}


def test_a_person_sees_each_file_and_how_many(terminal: Terminal, books: Path) -> None:
    code, seen = terminal.run_in_terminal("import", books, "--library", "Research")
    assert code == 0
    assert "✓" in seen
    assert "2 files imported" in seen


def test_ctrl_c_imports_nothing_where_nobody_can_be_asked(terminal: Terminal, books: Path) -> None:
    (books / "long.txt").write_text(SENTENCE * 200_000)
    with terminal.start("import", books, "--library", "Research") as running:
        running.until(lambda out: "parsing" in out or "checked" in out)
        running.signal(signal.SIGINT)
        ran = running.wait()
    assert ran.code in {0, 130}  # what was quicker than the signal is there as a whole
    assert len(titles(terminal)) == (3 if ran.code == 0 else 0)
    assert "Traceback" not in ran.err
