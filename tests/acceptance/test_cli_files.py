"""Files at the command line: `nexus add` takes them in, `nexus clean` removes what is left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.kit.commands import Ran, Terminal, listed_items
from tests.kit.run_storage import run_prefix
from tests.kit.uploads import unique_epub, unique_pdf

DAY = 86_400


@pytest.fixture
def terminal(terminal: Terminal) -> Terminal:
    terminal.environment["NEXUS_PLUGINS"] = "tests.kit.plugins.no_extractors"
    return terminal


def written(terminal: Terminal, name: str, body: bytes) -> Path:
    path = terminal.folder / name
    path.write_bytes(body)
    return path


def objects(terminal: Terminal) -> list[str]:
    store = terminal.data / "storage"
    return sorted(place.relative_to(store).as_posix() for place in store.rglob("*") if place.is_file())


def results(ran: Ran) -> list[str]:
    return [line.split("\t")[0] for line in ran.out.splitlines()]


def test_good_files_are_taken_in_once(terminal: Terminal) -> None:
    one, two = written(terminal, "Ein Buch.pdf", unique_pdf()), written(terminal, "zwei.EPUB", unique_epub())
    notes = written(terminal, "Notes.md", b"# Boats\n\nThey left at noon.")
    ran = terminal.run("add", one, two, notes, one)
    assert ran.code == 0, ran.err
    assert results(ran) == ["queued"] * 4
    found = listed_items(terminal)
    kinds = {("pdf", "Ein Buch"), ("epub", "zwei"), ("text", "Notes")}
    assert {(each["kind"], each["title"]) for each in found} == kinds
    assert len(objects(terminal)) == 3
    assert terminal.run("add", one).code == 0
    assert len(listed_items(terminal)) == 3


def test_bad_files_are_refused_and_say_why(terminal: Terminal) -> None:
    good = written(terminal, "good.pdf", unique_pdf())
    bad, empty = written(terminal, "bad.pdf", b"<html>"), written(terminal, "empty.pdf", b"")
    text, missing = written(terminal, "a.docx", b"x"), terminal.folder / "missing.pdf"
    ran = terminal.run("add", bad, empty, text, missing, good)
    assert ran.code == 1
    assert sorted(results(ran)) == ["queued"] + ["refused"] * 4
    for sentence in ("is not a PDF", "empty file", ".pdf, .epub, .txt or .md", "No such file"):
        assert sentence in ran.out
    assert len(objects(terminal)) == 1


def test_clean_looks_first_and_removes_when_asked_to(terminal: Terminal) -> None:
    assert "Nothing to clean" in terminal.run("clean").err
    assert terminal.run("add", written(terminal, "a.pdf", unique_pdf())).code == 0
    (kept,) = objects(terminal)
    orphan = f"{run_prefix()}media/{uuid4()}/original.pdf"
    left = [orphan, f"test_runs/1/media/{uuid4()}/original.pdf", ".drafts/0123"]
    for path in left:
        place = terminal.data / "storage" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"left behind")
        os.utime(place, (time.time() - 2 * DAY,) * 2)
    looked = terminal.run("clean")
    assert (looked.code, results(looked)) == (0, ["found"] * 3)
    assert "nexus clean --remove" in looked.err
    assert objects(terminal) == sorted([kept, *left])
    assert "files.orphaned" in terminal.run("doctor").out
    removed = terminal.run("clean", "--remove")
    assert (removed.code, results(removed)) == (0, ["removed"] * 3)
    assert [line.split("\t")[2] for line in removed.out.splitlines()] == left
    assert objects(terminal) == [kept]
    assert terminal.run("clean").out == ""
