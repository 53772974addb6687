"""`nexus import` in a terminal: all of a folder or nothing, and a message for every file that fails."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.kit import documents
from tests.kit.commands import Terminal
from tests.kit.waiting import eventually

CTRL_C = "\x03"
SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "


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


def test_an_imported_folder_becomes_a_library(terminal: Terminal, books: Path) -> None:
    ran = terminal.run("import", books, "--library", "Research")
    assert ran.code == 0, ran.err
    assert "2 files imported" in ran.out
    assert len(titles(terminal, "--library", "Research")) == 2
    assert terminal.run("doctor").code == 0


def test_importing_a_folder_twice_is_no_failure(terminal: Terminal, books: Path) -> None:
    terminal.run("import", books, "--library", "Research")
    ran = terminal.run("import", books, "--library", "Research")
    assert (ran.code, "2 duplicates" in ran.out) == (0, True)
    assert len(titles(terminal)) == 2


def test_an_unreadable_file_is_named_and_nothing_is_imported(terminal: Terminal, books: Path) -> None:
    (books / "bad.pdf").write_bytes(b"%PDF-1.4 nothing else")
    ran = terminal.run("import", books, "--library", "Research")
    assert ran.code == 1
    assert sum("bad.pdf" in line and "E_PDF_DAMAGED" in line for line in ran.out.splitlines()) == 1
    assert "bad.pdf" not in ran.err, "a failure is printed once"
    assert titles(terminal) == []


def test_unsupported_files_are_listed(terminal: Terminal, books: Path) -> None:
    ran = terminal.run("import", books / "more" / "notes.docx")
    assert ran.code == 1
    assert "notes.docx" in ran.err
    missing = terminal.run("import", books / "missing.pdf")
    assert (missing.code, "no such file" in missing.err) == (1, True)


def test_import_answers_in_json_if_asked_to(terminal: Terminal, books: Path) -> None:
    ran = terminal.run("import", books, "--json")
    assert {json.loads(line)["outcome"] for line in ran.out.splitlines()} == {"committed"}


def test_import_shows_each_file_and_the_count_in_a_terminal(terminal: Terminal, books: Path) -> None:
    code, seen = terminal.run_in_terminal("import", books, "--library", "Research")
    assert code == 0
    assert "✓" in seen
    assert "2 files imported" in seen


class TestCtrlC:
    """With a file that is read only once the folder of gates has a file of that name."""

    @pytest.fixture
    def gates(self, tmp_path: Path, books: Path, terminal: Terminal) -> Path:
        (books / "slow.txt").write_text(SENTENCE * 5)
        folder = tmp_path / "gates"
        folder.mkdir()
        terminal.environment |= {
            "NEXUS_PLUGINS": "tests.kit.plugins.gated_imports",
            "NEXUS_TEST_GATES": str(folder),
        }
        return folder

    def test_ctrl_c_pauses_an_import_that_then_resumes_without_reading_anything_twice(
        self, terminal: Terminal, books: Path, gates: Path
    ) -> None:
        with terminal.start_in_terminal("import", books, "--library", "Research") as screen:
            screen.until("slow.txt")
            screen.press(CTRL_C)
            screen.until("Stopping…")
            screen.until("Paused. Continue? [resume/discard]")
            assert titles(terminal) == []
            (gates / "slow.txt").touch()
            screen.press("resume\n")
            assert screen.wait() == 0
        assert "3 files imported" in screen.seen
        assert len(titles(terminal, "--library", "Research")) == 3
        read = (gates / "read").read_text().splitlines()
        assert (read.count("one.pdf"), read.count("slow.txt")) == (1, 2)

    @pytest.mark.parametrize("answer", ["discard\n", CTRL_C])
    def test_a_paused_import_is_discarded_if_the_user_says_so(
        self, terminal: Terminal, books: Path, gates: Path, answer: str
    ) -> None:
        with terminal.start_in_terminal("import", books, "--library", "Research") as screen:
            screen.until("slow.txt")
            screen.press(CTRL_C)
            screen.until("Paused. Continue?")
            screen.press(answer)
            assert screen.wait() == 130
        assert "Nothing was imported." in screen.seen
        assert titles(terminal) == []
        assert terminal.run("doctor").code == 0

    def test_a_second_ctrl_c_does_not_wait_for_the_pause(
        self, terminal: Terminal, books: Path, gates: Path
    ) -> None:
        (books / "slow.txt").rename(books / "held.txt")
        with terminal.start_in_terminal("import", books, "--library", "Research") as screen:
            screen.until("held.txt")
            screen.press(CTRL_C)
            screen.until("Stopping…")
            screen.press(CTRL_C)
            assert screen.wait() == 130
        assert "Nothing was imported." in screen.seen
        assert "import_" not in screen.seen
        assert titles(terminal) == []
        assert "imports" in terminal.run("clean").out
        assert "imports" in terminal.run("clean", "--remove").out
        assert terminal.run("clean").out == ""

    def test_ctrl_c_lets_an_unstoppable_import_run_and_says_so(
        self, terminal: Terminal, books: Path, gates: Path
    ) -> None:
        plugins = "tests.kit.plugins.gated_imports,tests.kit.plugins.unstoppable_imports"
        with terminal.start("import", books, "--library", "Research", NEXUS_PLUGINS=plugins) as running:
            running.until(lambda out: re.search(r"parsing\s+slow.txt", out))
            running.signal(signal.SIGINT)
            eventually(lambda: "is still running" in running.err, "it says that it runs on")
            (gates / "slow.txt").touch()
            ran = running.wait()
        assert (ran.code, "3 files imported" in ran.out) == (0, True), ran.err
        assert len(titles(terminal, "--library", "Research")) == 3

    def test_ctrl_c_without_a_terminal_imports_nothing(
        self, terminal: Terminal, books: Path, gates: Path
    ) -> None:
        with terminal.start("import", books, "--library", "Research") as running:
            running.until(lambda out: re.search(r"parsing\s+slow.txt", out))
            running.signal(signal.SIGINT)
            ran = running.wait()
        assert ran.code == 130
        assert titles(terminal) == []
        assert "Traceback" not in ran.err


class TestSigterm:
    """With a file that is being read, by a reader that does not end before the process does."""

    @pytest.fixture
    def held(self, tmp_path: Path, books: Path, terminal: Terminal) -> Path:
        (books / "held.txt").write_text(SENTENCE * 5)
        terminal.environment |= {
            "NEXUS_PLUGINS": "tests.kit.plugins.gated_imports",
            "NEXUS_TEST_GATES": str(tmp_path),
        }
        return tmp_path / "held.txt"

    def test_sigterm_cancels_an_import_and_leaves_its_folder_to_the_next_start(
        self, terminal: Terminal, books: Path, held: Path
    ) -> None:
        with terminal.start(
            "import", books, "--library", "Research", NEXUS_LOG_LEVEL="info", NEXUS_LOG_FORMAT="json"
        ) as running:
            running.until(lambda out: re.search(r"parsing\s+held.txt", out))
            running.signal(signal.SIGTERM)
            eventually(lambda: "import_closed" in running.err, "it is cancelled")
            held.touch()
            ran = running.wait()
        assert ran.code == 143, ran.err
        assert "Nothing was imported." in ran.err
        assert "Traceback" not in ran.err
        assert "import_ends_with_the_process" in ran.err
        assert titles(terminal) == []
        assert list((terminal.data / "imports").glob("*/held"))
        again = terminal.run("import", books / "one.pdf", "--library", "Research")
        assert again.code == 0, again.err
        assert list((terminal.data / "imports").iterdir()) == []

    def test_sigterm_cancels_a_paused_import_without_another_question(
        self, terminal: Terminal, books: Path, held: Path
    ) -> None:
        (books / "held.txt").rename(books / "slow.txt")
        with terminal.start_in_terminal("import", books, "--library", "Research") as screen:
            screen.until("slow.txt")
            screen.press(CTRL_C)
            screen.until("Paused. Continue?")
            assert screen.process.pid is not None
            os.kill(screen.process.pid, signal.SIGTERM)
            assert screen.wait() == 143
        assert "Nothing was imported." in screen.seen
        assert titles(terminal) == []


def test_the_user_can_go_on_without_an_unreadable_file(terminal: Terminal, books: Path) -> None:
    (books / "bad.pdf").write_bytes(b"%PDF-1.4 nothing else")
    (books / "page.pdf").write_bytes(b"<html>not a PDF at all</html>")
    with terminal.start_in_terminal("import", books, "--library", "Research") as screen:
        screen.until("page.pdf: This isn't a PDF, despite its name.")
        screen.until("Import the rest without them? [without/discard]")
        screen.press("what?\n")
        screen.until("Import the rest without them? [without/discard]")
        screen.press("y\n")
        screen.until("E_PDF_DAMAGED")
        screen.until("Continue without them? [without/discard]")
        screen.press("without\n")
        assert screen.wait() == 0
    assert len(titles(terminal, "--library", "Research")) == 2


@pytest.mark.parametrize("answer", ["no", "n", "d", "Discard"])
def test_answering_no_imports_nothing(terminal: Terminal, books: Path, answer: str) -> None:
    (books / "page.pdf").write_bytes(b"<html>not a PDF at all</html>")
    with terminal.start_in_terminal("import", books) as screen:
        screen.until("Import the rest without them?")
        screen.press(f"{answer}\n")
        assert screen.wait() == 1
    assert titles(terminal) == []


def test_a_program_learns_which_file_failed_and_why(terminal: Terminal, books: Path) -> None:
    (books / "bad.pdf").write_bytes(b"%PDF-1.4 nothing else")
    ran = terminal.run("import", books, "--json")
    found = {one["name"]: one["error"] for one in map(json.loads, ran.out.splitlines())}
    assert (ran.code, found["one.pdf"], found["bad.pdf"]["code"]) == (1, None, "E_PDF_DAMAGED")
    (books / "bad.pdf").write_bytes(b"")
    ran = terminal.run("import", books, "--json")
    (refused,) = map(json.loads, ran.out.splitlines())
    assert (ran.code, refused["name"], refused["outcome"]) == (1, "bad.pdf", "refused")
    assert refused["error"]["message"] == "This file is empty."


def test_hidden_files_are_not_imported(terminal: Terminal, books: Path) -> None:
    (books / "._one.pdf").write_bytes(b"\0\5\x16\7 what a Mac puts beside a file")
    (books / ".cache").mkdir()
    (books / ".cache" / "three.txt").write_text(SENTENCE)
    assert terminal.run("import", books).code == 0
    assert len(titles(terminal)) == 2


def test_named_pipes_are_not_waited_for(terminal: Terminal, books: Path) -> None:
    os.mkfifo(books / "pipe.txt")
    assert terminal.run("import", books).code == 0
    ran = terminal.run("import", books / "pipe.txt")
    assert (ran.code, "neither a file nor a folder" in ran.err) == (1, True)
