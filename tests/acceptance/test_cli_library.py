"""The commands for what a library holds: what they count, what they say of items that wait, and how they remove."""

from __future__ import annotations

import json
import sqlite3
from uuid import uuid4

import pytest

from tests.kit.commands import Ran, Terminal

PAGES = [f"https://example.com/ok/{number}" for number in range(3)]


@pytest.fixture
def terminal(terminal: Terminal) -> Terminal:
    """With items that stay queued."""
    terminal.environment["NEXUS_EXTRACTION"] = "off"
    return terminal


def added(terminal: Terminal, *arguments: str) -> list[str]:
    ran = terminal.run("add", *arguments, "--json")
    return [json.loads(line)["media_id"] for line in ran.out.splitlines()]


def first_line(ran: Ran) -> set[str]:
    return set(ran.out.splitlines()[0].split("\t"))


def test_status_says_how_many_of_how_many_it_lists(terminal: Terminal) -> None:
    added(terminal, *PAGES)
    few = terminal.run("status", "--limit", "2")
    assert len(few.out.splitlines()) == 3
    assert {"listed=2", "of=3", "pending=3"} <= first_line(few)
    assert "2 of 3 items" in terminal.run_in_terminal("status", "--limit", "2")[1]


def test_status_counts_what_it_lists(terminal: Terminal) -> None:
    added(terminal, PAGES[0], "--library", "Research")
    added(terminal, *PAGES[1:])
    assert {"listed=3", "of=3"} <= first_line(terminal.run("status"))
    assert {"listed=1", "of=1", "pending=1"} <= first_line(terminal.run("status", "--library", "Research"))
    failed = first_line(terminal.run("status", "--status", "failed"))
    assert failed == {"listed=0", "of=0", "failed=0"}


def test_status_says_which_site_an_item_waits_for(terminal: Terminal) -> None:
    added(terminal, *PAGES[:2])
    assert "waiting for" not in terminal.run("status").out
    with sqlite3.connect(terminal.data / "nexus.sqlite3") as database:
        database.execute(
            "UPDATE media SET run_after = '2999-01-01 14:05:00.000000' WHERE canonical_url = ?", [PAGES[0]]
        )
    database.close()
    listed = terminal.run("status", TZ="UTC").out.splitlines()[1:]
    waiting = [line for line in listed if "waiting for example.com until 14:05" in line]
    assert (len(listed), len(waiting)) == (2, 1)
    assert PAGES[0] in waiting[0]
    assert "waiting for example.com until 14:05" in terminal.run_in_terminal("status", TZ="UTC")[1]


def test_removed_items_are_gone(terminal: Terminal) -> None:
    one, two, three = added(terminal, *PAGES)
    ran = terminal.run("rm", one, two, one)
    assert (ran.code, ran.out) == (0, f"removed\t{one}\nremoved\t{two}\n")
    assert [item["id"] for item in json.loads(terminal.run("status", "--json").out)] == [three]


def test_removing_goes_on_after_an_item_that_is_not_there(terminal: Terminal) -> None:
    (known,) = added(terminal, PAGES[0])
    unknown = str(uuid4())
    ran = terminal.run("rm", unknown, known)
    assert (ran.code, ran.out) == (1, f"removed\t{known}\n")
    assert ran.err.startswith(f"nexus: {unknown}: ")
    again = terminal.run("rm", known, "--json")
    told = json.loads(again.out)
    assert (again.code, told["removed"], told["error"]["code"]) == (1, False, "E_NOT_FOUND")


def test_an_address_needs_no_scheme(terminal: Terminal) -> None:
    (page, paper, video) = added(
        terminal, "example.com/an-article", "example.com/paper.pdf", "youtu.be/dQw4w9WgXcQ"
    )
    items = {item["id"]: item for item in json.loads(terminal.run("status", "--json").out)}
    assert items[page]["canonical_url"] == "https://example.com/an-article"
    assert items[paper]["canonical_url"] == "https://example.com/paper.pdf"
    assert items[video]["kind"] == "video"
    missing = terminal.run("add", "missing.pdf", "books/missing.pdf")
    assert (missing.code, missing.out.count("No such file")) == (1, 2)


def test_a_text_is_entered_by_hand(terminal: Terminal) -> None:
    (media_id,) = added(terminal, PAGES[0])
    pasted = terminal.folder / "pasted.txt"
    pasted.write_text("What the page says.")
    ran = terminal.run("revisions", media_id, "--enter", pasted, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["origin"] == "entered"
    both = terminal.run("revisions", media_id, "--enter", pasted, "--use", "1")
    assert (both.code, "only one of" in both.err) == (2, True)
    unreadable = terminal.run("revisions", media_id, "--enter", terminal.folder)
    assert (unreadable.code, "can't be read as text" in unreadable.err) == (1, True)


def test_marked_items_are_listed_by_their_marks(terminal: Terminal) -> None:
    one, two, three = added(terminal, *PAGES)
    assert terminal.run("mark", one, two, "--read").out.splitlines() == [
        f"marked\t{media_id}" for media_id in sorted((one, two))
    ]
    terminal.run("mark", two, "--favourite", "--title", "My own")
    terminal.run("mark", three, "--archive")

    def listed(*options: str) -> list[str]:
        return sorted(item["id"] for item in json.loads(terminal.run("status", "--json", *options).out))

    assert listed() == sorted((one, two))
    assert listed("--unread") == []
    assert listed("--favourite") == listed("--read", "--favourite", "--kind", "web_article") == [two]
    assert listed("--archived") == [three]
    assert listed("--site", "https://www.example.com/") == sorted((one, two))
    assert listed("--site", "other.example") == []
    assert listed("--since", "2999-01-01") == []
    assert listed("--before", "2999-01-01") == sorted((one, two))
    assert "My own" in terminal.run("status", two).out
    assert {"listed=1", "of=1", "pending=1"} <= first_line(terminal.run("status", "--favourite"))
    terminal.run("mark", one, two, three, "--unread", "--unarchive", "--no-favourite")
    assert listed("--unread") == sorted((one, two, three))
    terminal.run("mark", two, "--title", "")
    assert "My own" not in terminal.run("status", two).out


def test_status_sorts_by_what_is_asked_for(terminal: Terminal) -> None:
    ids = added(terminal, *PAGES)
    for title, media_id in zip("bca", ids, strict=True):
        terminal.run("mark", media_id, "--title", title)
    items = json.loads(terminal.run("status", "--sort", "title", "--json").out)
    assert [item["title"] for item in items] == ["a", "b", "c"]
    items = json.loads(terminal.run("status", "--sort", "title", "--reverse", "--limit", "2", "--json").out)
    assert [item["title"] for item in items] == ["c", "b"]


def test_mark_says_what_it_could_not_mark(terminal: Terminal) -> None:
    [one] = added(terminal, PAGES[0])
    unknown = str(uuid4())
    ran = terminal.run("mark", unknown, one, "--read", "--json")
    assert ran.code == 1
    told = {line["media_id"]: line for line in map(json.loads, ran.out.splitlines())}
    assert told[one]["marked"]
    assert told[unknown]["error"]["code"] == "E_NOT_FOUND"
    for refused, why in (
        (["mark", one], "Nothing to mark"),
        (["mark", one, unknown, "--title", "x"], "one item"),
    ):
        ran = terminal.run(*refused)
        assert ran.code != 0
        assert why in ran.err


def test_the_transcript_of_a_video_comes_from_a_file(terminal: Terminal) -> None:
    (media_id,) = added(terminal, "https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    named = terminal.folder / "talk.vtt"
    named.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Good morning.\n")
    ran = terminal.run("transcript", media_id, named, "--json")
    assert json.loads(ran.out) == {"media_id": media_id, "revision": 1}
    assert "that you entered by hand" in terminal.run("status", media_id).out
    wrong = terminal.run("transcript", media_id, terminal.folder)
    assert (wrong.code, "can't be read" in wrong.err) == (1, True)
    named.write_bytes(b"\x89PNG")
    assert "not a transcript" in terminal.run("transcript", media_id, named).err
