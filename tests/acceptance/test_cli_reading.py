"""What a person reads at the command line: `nexus extract`, `extractors`, `refresh`, and `add` with real extractors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit import documents
from tests.kit.commands import Terminal
from tests.kit.servers.openai_api import answers, model
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.speech import CLIP, CLIP_SECONDS

SENTENCE = "The boats of the harbour leave early in the morning, and most are back before the evening comes."
PAGE = (
    "<html><head><title>Boats</title></head><body><article><h1>Boats</h1>"
    f"{f'<p>{SENTENCE}</p>' * 8}</article></body></html>"
)


VTT = b"WEBVTT\n\n00:00.000 --> 00:02.000\nThe water rises for six hours.\n"


@pytest.fixture
def terminal(terminal: Terminal, pages: Pages) -> Terminal:
    terminal.environment["NEXUS_FETCH_ALLOW"] = pages.place
    return terminal


def written(terminal: Terminal, name: str, body: bytes) -> str:
    (terminal.folder / name).write_bytes(body)
    return name


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_extract_reads_addresses_and_files_of_every_kind_with_no_database(
    terminal: Terminal, pages: Pages, tmp_path: Path
) -> None:
    pages["/boats"] = Answer(PAGE.encode())
    sources = [
        pages.url("/boats"),
        written(terminal, "page.html", PAGE.encode()),
        written(terminal, "paper.pdf", documents.pdf(SENTENCE)),
        written(terminal, "book.epub", documents.epub({"c.xhtml": documents.chapter(f"<p>{SENTENCE}</p>")})),
        written(terminal, "notes.md", f"# Boats\n\n{SENTENCE}".encode()),
        written(terminal, "broken.pdf", b"%PDF-1.7 broken"),
        pages.url("/nowhere"),
        "missing.txt",
    ]
    elsewhere = tmp_path / "untouched"
    ran = terminal.run("extract", "--json", *sources, NEXUS_DATA_DIR=str(elsewhere))
    assert ran.code == 1
    found = lines(ran.out)
    assert [one.get("url") or one.get("file") for one in found] == sources
    for one in found[:5]:
        assert SENTENCE in one["text"], one
        assert {"title", "text", "html", "metadata"} < set(one)
    codes = [one["error"]["code"] for one in found[5:]]
    assert codes == ["E_PDF_DAMAGED", "E_FETCH_HTTP_4XX", "E_INVALID_REQUEST"]
    assert not elsewhere.exists()


def test_extract_reads_recordings_and_transcripts_with_no_database(terminal: Terminal, pages: Pages) -> None:
    pages["/talk"] = Answer(
        b'<html><head><title>On tides</title></head><body><video src="/t.mp4">'
        b'<track kind="captions" srclang="en" src="/t.vtt"></video></body></html>'
    )
    pages["/t.vtt"] = Answer(VTT, "text/vtt")
    pages["/talk.opus"] = Answer(CLIP.read_bytes(), "audio/ogg")
    spoken = written(terminal, "talk.opus", CLIP.read_bytes())
    written(terminal, "talk.vtt", VTT)
    written(terminal, "broken.mp3", b"no sound at all")
    sources = [
        pages.url("/talk"),
        "talk.vtt",
        pages.url("/talk.opus"),
        spoken,
        "broken.mp3",
        written(terminal, "empty.srt", b""),
    ]
    elsewhere = terminal.folder / "not-there"
    with model() as server:
        heard = {
            "task": "transcribe",
            "segments": [{"start": 0.5, "end": 3.5, "text": "The lamp turns slowly."}],
        }
        server.will(*[answers(200, heard)] * 4)
        speech = {
            "NEXUS_SPEECH": "openai",
            "NEXUS_SPEECH_BASE_URL": server.url,
            "NEXUS_SPEECH_MODEL": "whisper-1",
        }
        ran = terminal.run("extract", "--json", *sources, NEXUS_DATA_DIR=str(elsewhere), **speech)
    found = lines(ran.out)
    assert [(one["title"], one["text"]) for one in found[:4]] == [
        ("On tides", "The water rises for six hours."),
        ("talk", "The water rises for six hours."),
        ("talk", "The lamp turns slowly."),
        ("talk", "The lamp turns slowly."),
    ]
    assert (found[0]["metadata"]["source"], found[0]["metadata"]["language"]) == (
        "Captions of the page",
        "en",
    )
    assert [one["metadata"].get("seconds") for one in found[2:4]] == [CLIP_SECONDS, CLIP_SECONDS]
    assert [one["error"]["code"] for one in found[4:]] == ["E_SOUND_UNREADABLE", "E_TRANSCRIPT_UNREADABLE"]
    assert (ran.code, elsewhere.exists()) == (1, False)


def test_extract_prints_readable_text_in_a_terminal(terminal: Terminal) -> None:
    code, seen = terminal.run_in_terminal(
        "extract", written(terminal, "notes.md", f"# Boats\n\n{SENTENCE}".encode())
    )
    assert code == 0
    assert "Boats" in seen
    assert "words" in seen


def test_extract_reports_unreadable_input_with_its_code(terminal: Terminal) -> None:
    ran = terminal.run("extract", written(terminal, "broken.pdf", b"%PDF-1.7 broken"))
    assert ran.code == 1
    assert "E_PDF_DAMAGED" in ran.err


def test_extractors_command_lists_every_extractor(terminal: Terminal) -> None:
    ran = terminal.run("extractors")
    assert ran.code == 0
    kinds = [line.split("\t")[0] for line in ran.out.splitlines()]
    assert kinds == ["web_article", "video", "podcast_episode", "pdf", "epub", "text"]
    assert "nexus.extract.builtin:pdf" in ran.out
    assert "nexus.transcribe.extractors:extract_video" in ran.out
    code, seen = terminal.run_in_terminal("extractors")
    assert (code, "none: its items wait" in seen) == (0, False)


def test_a_page_is_added_read_and_refreshed(terminal: Terminal, pages: Pages) -> None:
    pages["/boats"] = Answer(PAGE.encode())
    ran = terminal.run("add", pages.url("/boats"))
    assert ran.code == 0, ran.err
    (media,) = json.loads(terminal.run("status", "--json").out)
    assert (media["title"], media["processing_status"]) == ("Boats", "ready_for_reading")

    pages["/boats"] = Answer(PAGE.replace("Boats", "Ships").encode())
    (told,) = lines(terminal.run("refresh", media["id"], "--json").out)
    assert told["outcome"] == "revision 2"
    (media,) = json.loads(terminal.run("status", "--json").out)
    assert media["title"] == "Ships"

    del pages["/boats"]
    ran = terminal.run("refresh", media["id"])
    assert ran.code == 1
    assert "404" in ran.out
    assert "Nothing is outdated" in terminal.run("refresh", "--outdated").err
    assert terminal.run("refresh").code == 2


def test_versions_are_listed_compared_and_chosen(terminal: Terminal, pages: Pages) -> None:
    pages["/boats"] = Answer(PAGE.encode())
    assert terminal.run("add", pages.url("/boats")).code == 0
    (media,) = json.loads(terminal.run("status", "--json").out)
    pages["/boats"] = Answer(PAGE.replace("Boats", "Ships").encode())
    assert terminal.run("refresh", media["id"]).code == 0

    listed = lines(terminal.run("revisions", media["id"], "--json").out)
    assert [(one["number"], one["title"], one["is_read"]) for one in listed] == [
        (2, "Ships", True),
        (1, "Boats", False),
    ]
    compared = terminal.run("revisions", media["id"], "--diff", "1", "2").out
    assert "[-" in compared
    assert "{+" in compared
    ran = terminal.run("revisions", media["id"], "--use", "1")
    assert (ran.code, "yours" in ran.out.splitlines()[1]) == (0, True)
    (media,) = json.loads(terminal.run("status", "--json").out)
    assert (media["title"], media["revision"], media["newer_revision"]) == ("Boats", 1, 2)

    for wrong in (["--use", "7"], ["--diff", "1", "7"]):
        refused = terminal.run("revisions", media["id"], *wrong)
        assert refused.code == 1
        assert "Traceback" not in refused.err
    assert terminal.run("revisions", media["id"], "--use", "1", "--diff", "1", "2").code == 2


def test_a_missing_page_is_reported_with_what_to_do(terminal: Terminal, pages: Pages) -> None:
    ran = terminal.run("add", pages.url("/nowhere"))
    assert ran.code == 1
    assert "404" in ran.out


def test_a_wrong_allow_list_is_reported(terminal: Terminal) -> None:
    ran = terminal.run("status", NEXUS_FETCH_ALLOW="not a pair")
    assert ran.code == 2
    assert "NEXUS_FETCH_ALLOW" in ran.err
