"""`nexus search`: what it prints for a person, for a pipe and for a program."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest

from nexus.cli.searching import hint_for
from nexus.media.searching.finding import SearchHit, SearchPage
from tests.kit.commands import Terminal

BOATS = "Lanterns were lit on the boats.\n\nThe harbour slept under the fog."
BREAD = "Bread is baked before the village wakes."
ANY_HIT = cast(SearchHit, object())


@pytest.fixture
def terminal(terminal: Terminal, tmp_path: Path) -> Terminal:
    """With two texts, which are found by their words."""
    terminal.environment["NEXUS_EMBED"] = "off"
    files = {"boats.txt": BOATS, "bread.txt": BREAD}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    ran = terminal.run("add", *(str(tmp_path / name) for name in files))
    assert ran.code == 0, ran.err
    return terminal


def test_search_prints_a_line_for_each_item_with_its_best_passage(terminal: Terminal) -> None:
    ran = terminal.run("search", "harbour", "lanterns")
    (line,) = ran.out.splitlines()
    assert "The harbour slept under the fog." in line.split("\t")[3]
    assert terminal.run("search", "boats OR bread").out.count("\n") == 2
    assert terminal.run("search", "boats bread", "--limit", "1").out.count("\n") == 1


def test_search_prints_the_answer_of_the_api_as_json(terminal: Terminal) -> None:
    found = json.loads(terminal.run("search", "harbor -bread kind:text", "harbour", "--json").out)
    (item,) = found["items"]
    (passage, *_) = item["passages"]
    marked = [passage["text"][first:last] for first, last in passage["marks"]]
    assert "harbour" in marked
    assert passage["url"].startswith(f"/items/{item['media']['id']}?")
    assert (found["by"], found["next_cursor"], found["total"]) == ("words", None, 1)


def test_search_marks_the_words_in_a_terminal(terminal: Terminal) -> None:
    code, shown = terminal.run_in_terminal("search", "harbour")
    assert code == 0
    assert "slept under the fog" in shown


def test_search_offers_other_words_if_nothing_is_found(terminal: Terminal) -> None:
    ran = terminal.run("search", "lantrens")
    assert (ran.code, ran.out) == (0, "")
    assert "Nothing found. Did you mean: lanterns" in ran.err


def test_search_finds_nothing_of_somebody_else(terminal: Terminal) -> None:
    ran = terminal.run("search", "harbour", "--user", str(uuid4()))
    assert (ran.code, ran.out) == (0, "")


def test_a_damaged_index_is_repaired_by_the_command_that_the_doctor_names(terminal: Terminal) -> None:
    assert "Nothing to repair." in terminal.run("embed", "--repair").err
    with closing(sqlite3.connect(terminal.folder / "data" / "nexus.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM chunks WHERE position >= 0")
    checked = terminal.run("doctor")
    assert checked.code == 1
    assert "nexus embed --repair" in checked.out
    ran = terminal.run("embed", "--repair")
    assert "2 items are found by words again" in ran.out
    assert "slept under the fog" in terminal.run("search", "harbour").out
    assert "search" not in "".join(
        line for line in terminal.run("doctor").out.splitlines() if "problem" in line
    )


def test_nothing_is_called_searchable_by_meaning_while_no_model_can_be_asked(terminal: Terminal) -> None:
    ran = terminal.run("embed", "--status")
    assert "turned off" in ran.err
    assert ran.out.splitlines() == ["Model: none", "2 items are searchable by words."]


def test_the_vectors_of_another_model_are_not_said_to_grow(terminal: Terminal) -> None:
    with closing(sqlite3.connect(terminal.folder / "data" / "nexus.sqlite3")) as connection, connection:
        connection.execute(
            "INSERT INTO vector_sets (model, dimension, begun_at) VALUES (?, 3, ?)",
            ("earlier", "2026-01-01 00:00:00.000000"),
        )
    assert "0 vectors of earlier (never became whole)" in terminal.run("embed", "--status").out


def test_other_words_are_also_offered_if_only_meaning_found_something() -> None:
    page = SearchPage([ANY_HIT], by_meaning=True, suggestions=["harbour lights"])
    assert hint_for(page) == "Did you mean: harbour lights"
    assert hint_for(replace(page, items=[])) == "Nothing found. Did you mean: harbour lights"
    assert hint_for(replace(page, suggestions=[])) == ""
