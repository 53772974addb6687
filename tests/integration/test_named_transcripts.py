"""Transcripts and chapters that feeds and pages name: fetched by the guarded fetcher, read in a parser process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from nexus.cli.loose_bench import Loose
from nexus.errors import FetchHttp5xx, TranscriptUnreadable
from nexus.extract import Hints, Workbench
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.extract.sandbox import Sandbox
from nexus.fetch import Fetcher, FetchLimits, parse_host_ports
from nexus.media.recordings.transcribing import Ears
from nexus.transcribe import Transcript
from nexus.transcribe.chapters import MOST_CHAPTERS, named_chapters
from nexus.transcribe.named_transcripts import MOST_TRIED, in_order, named_transcript
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.speech import LIMITS
from tests.kit.transcripts import PODCAST_HTML, PODCAST_JSON, SRT, VTT


@pytest.fixture
def bench(pages: Pages, parsers: Sandbox) -> Iterator[Workbench]:
    with closing(Fetcher(FetchLimits(allow=parse_host_ports([pages.place]), delay=0))) as fetcher:
        yield Loose(fetcher, parsers, Ears(None, LIMITS), None)


def episode(*named: NamedTranscript, language: str | None = None) -> Recording:
    return Recording(title="An episode", language=language, transcripts=named)


@pytest.mark.parametrize(
    ("path", "body", "declared"),
    [
        ("/a.vtt", VTT, "text/vtt"),
        ("/a.srt", SRT, "application/x-subrip"),
        ("/a.json", PODCAST_JSON, "application/json"),
        ("/a.html", PODCAST_HTML, "text/html"),
        ("/a", VTT, None),
    ],
)
def test_a_named_transcript_is_read_with_its_times(
    pages: Pages, bench: Workbench, path: str, body: str, declared: str | None
) -> None:
    pages[path] = Answer(body.encode(), "text/plain")
    found = named_transcript(bench, episode(NamedTranscript(pages.url(path), declared, "en")), ["en"])
    assert found is not None
    assert [(cue.starts_ms, cue.text) for cue in found.cues] == [
        (1000, "alpha bravo."),
        (2500, "charlie & delta."),
        (64_000, "echo foxtrot."),
    ]
    assert (found.source, found.language) == ("Transcript from the podcast", "en")


def test_captions_of_a_page_say_so(pages: Pages, bench: Workbench) -> None:
    pages["/a.vtt"] = Answer(VTT.encode(), "text/vtt")
    named = NamedTranscript(pages.url("/a.vtt"), "text/vtt", "de", "subtitles")
    found = named_transcript(bench, episode(named), ["en"])
    assert found is not None
    assert (found.source, found.language) == ("Captions of the page", "de")


def test_the_languages_come_first_and_then_the_formats() -> None:
    def one(name: str, language: str | None, declared: str | None = None) -> NamedTranscript:
        return NamedTranscript(f"https://example.com/{name}", declared, language)

    given = [
        one("1.html", "en"),
        one("2.vtt", "fr"),
        one("3", "de", "text/vtt; charset=utf-8"),
        one("4.srt", "en-GB"),
        one("5.json", "en"),
        one("6.vtt", None),
        one("7.txt", "pt-BR"),
        one("8.vtt", "pt"),
        one("1.html", "en"),
    ]
    found = in_order(episode(*given), ["pt-BR", "en"])
    names = [named.url.rpartition("/")[2] for named in found]
    assert names == ["7.txt", "8.vtt", "5.json", "1.html", "4.srt", "6.vtt", "2.vtt", "3"]


def test_each_is_tried_until_one_can_be_read(pages: Pages, bench: Workbench) -> None:
    pages["/page.vtt"] = Answer(b"<!doctype html><title>Sign in</title><p>Please sign in.", "text/html")
    pages["/broken.srt"] = Answer(b"\x89PNG" + bytes(range(256)), "application/srt")
    pages["/good.json"] = Answer(PODCAST_JSON.encode(), "application/json")
    paths = ("/missing.vtt", "/page.vtt", "/broken.srt", "/good.json")
    known = episode(*(NamedTranscript(pages.url(path), language="en") for path in paths))
    found = named_transcript(bench, known, ["en"])
    assert found is not None
    assert found.cues[0].speaker == "Ann"
    assert [path for path, _ in pages.asked] == list(paths)


def test_none_is_none_and_a_site_that_is_down_is_asked_again(pages: Pages, bench: Workbench) -> None:
    assert named_transcript(bench, episode(), ["en"]) is None
    gone = NamedTranscript(pages.url("/gone.vtt"))
    assert named_transcript(bench, episode(gone), ["en"]) is None
    pages["/down.vtt"] = Answer(b"", "text/plain", 503)
    with pytest.raises(FetchHttp5xx):
        named_transcript(bench, episode(NamedTranscript(pages.url("/down.vtt")), gone), ["en"])


def test_addresses_inside_and_endless_lists_are_not_followed(pages: Pages, bench: Workbench) -> None:
    inside = episode(NamedTranscript("http://127.0.0.1:1/a.vtt"), NamedTranscript("file:///etc/passwd"))
    assert named_transcript(bench, inside, ["en"]) is None
    many = episode(*(NamedTranscript(pages.url(f"/{n}.vtt")) for n in range(50)))
    assert named_transcript(bench, many, ["en"]) is None
    assert len(pages.asked) == MOST_TRIED


def test_a_hostile_transcript_costs_only_itself(bench: Workbench) -> None:
    bomb = b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'x'>]><transcript><text start='1'>&b;</text></transcript>"
    with pytest.raises(TranscriptUnreadable) as refused:
        bench.read_as(Transcript, "nexus.transcribe.transcript_files:read_transcript", bomb, Hints())
    assert (refused.value.code, refused.value.stage) == ("E_TRANSCRIPT_UNREADABLE", "transcribe")


def test_named_chapters_are_read_in_order_without_what_is_none(pages: Pages, bench: Workbench) -> None:
    listed = [
        {"startTime": 168, "title": "  Later\n on "},
        {"startTime": 0, "title": "Intro"},
        {"startTime": 5, "title": "Hidden", "toc": False},
        {"startTime": "7", "title": "Text for a number"},
        {"startTime": -1, "title": "Before"},
        {"startTime": float("nan"), "title": "Never"},
        {"startTime": True, "title": "True"},
        {"startTime": 9, "title": ""},
        {"startTime": 10},
        "chapter",
    ]
    pages["/c.json"] = Answer(
        json.dumps({"version": "1.2.0", "chapters": listed}).encode(), "application/json"
    )
    expected = (TimedChapter(0.0, "Intro"), TimedChapter(168.0, "Later on"))
    assert named_chapters(bench, pages.url("/c.json")) == expected


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"chapters": 7}', b"[" * 100_000, b"\xff\xfe\x00"])
def test_what_holds_no_chapters_is_an_empty_list(pages: Pages, bench: Workbench, body: bytes) -> None:
    pages["/c.json"] = Answer(body, "application/json")
    assert named_chapters(bench, pages.url("/c.json")) == ()


def test_no_more_chapters_are_read_than_anybody_looks_at(pages: Pages, bench: Workbench) -> None:
    listed = [{"startTime": n, "title": f"Chapter {n}"} for n in range(MOST_CHAPTERS + 500)]
    pages["/c.json"] = Answer(json.dumps({"chapters": listed}).encode(), "application/json")
    assert len(named_chapters(bench, pages.url("/c.json"))) == MOST_CHAPTERS
