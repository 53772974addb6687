"""Transcript files of every format and in every state: words with their times, or a clear error, never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus.errors import TranscriptUnavailable, TranscriptUnreadable
from nexus.extract import Extraction, Hints
from nexus.extract.results import MOST_ITEMS
from nexus.extract.safe_html import is_safe
from nexus.transcribe import UNTIMED, Transcript
from nexus.transcribe.paragraphs import transcript_extraction
from nexus.transcribe.transcript_files import read_transcript
from tests.kit import transcripts
from tests.kit.transcripts import HARMFUL, HARMLESS, PODCAST_HTML, PODCAST_JSON, SRT, VTT, WORDS

NOTHING = Hints()
#: What a file may be refused with, and the text that would be made of it.
REFUSED = (TranscriptUnreadable, TranscriptUnavailable)


def read(text: str | bytes, **hints: str) -> Transcript:
    return read_transcript(text.encode() if isinstance(text, str) else text, Hints(**hints))


def cues(text: str | bytes, **hints: str) -> list[tuple[int, int, str, str | None]]:
    return [tuple(cue) for cue in read(text, **hints).cues]  # type: ignore[misc]


def text_of(found: Transcript) -> Extraction:
    """The text that it becomes, which is checked."""
    made = transcript_extraction(None, found, None)
    for fragment in made.fragments:
        assert is_safe(fragment.html or "")
        after = 0
        for span in fragment.times:
            assert after <= span.start < span.end <= len(fragment.text)
            assert 0 <= span.starts_ms <= span.ends_ms
            after = span.end
    return made


SPOKEN = [(1000, 2000, "Ann"), (2500, 4000, "Bo"), (64_000, 66_000, "Ann")]


@pytest.mark.parametrize(
    ("text", "speakers", "ends"),
    [(VTT, True, True), (SRT, False, True), (PODCAST_JSON, True, True), (PODCAST_HTML, True, False)],
    ids=["vtt", "srt", "json", "html"],
)
def test_every_format_keeps_words_times_and_speakers(text: str, speakers: bool, ends: bool) -> None:
    found = read(text).cues
    assert [cue.text for cue in found] == ["alpha bravo.", "charlie & delta.", "echo foxtrot."]
    assert [cue.starts_ms for cue in found] == [starts for starts, _, _ in SPOKEN]
    assert [cue.speaker for cue in found] == [name if speakers else None for _, _, name in SPOKEN]
    if ends:
        assert [cue.ends_ms for cue in found] == [ends for _, ends, _ in SPOKEN]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"events": [{"tStartMs": 5, "dDurationMs": 10, "segs": [{"utf8": "a"}, {"utf8": " b"}]}]}', (5, 15, "a b")),
        ('{"language": "english", "segments": [{"start": 1.5, "end": 2, "text": " a b"}]}', (1500, 2000, " a b")),
        ('[{"start": "1.5", "duration": 2, "text": "a b"}]', (1500, 3500, "a b")),
        ('[{"start": "00:01:00.5", "end": "61s", "text": "a b"}]', (60_500, 61_000, "a b")),
        ('{"chunks": [{"timestamp": [1, 2], "text": "a b"}]}', (1000, 2000, "a b")),
        ('<transcript><text start="0.5" dur="2">a &amp;amp; b</text></transcript>', (500, 2500, "a & b")),
        ('<?xml version="1.0"?><timedtext><body><p t="5" d="9"><s>a</s><s> b</s></p></body></timedtext>',
         (5, 14, "a b")),
        ('<tt xml:lang="en"><body><div><p begin="00:00:01" end="2s">a<br/>b</p></div></body></tt>',
         (1000, 2000, "a b")),
    ],
)  # fmt: skip
def test_forms_of_json_and_xml_are_read(text: str, expected: tuple[int, int, str]) -> None:
    assert cues(text) == [(*expected, None)]


def test_plain_text_has_paragraphs_without_times() -> None:
    assert [cue.text for cue in read("One\nline.\n\nTwo.").cues] == ["One line.", "Two."]
    assert {cue.starts_ms for cue in read("One\nline.\n\nTwo.").cues} == {UNTIMED}
    assert [cue.text for cue in read("One.\nTwo.").cues] == ["One.", "Two."]
    assert [cue.text for cue in read("Ann: One.\nBo: Two.\n\nAnn: Three.").cues] == [
        "Ann: One.",
        "Bo: Two.",
        "Ann: Three.",
    ]


@pytest.mark.parametrize(
    "text",
    ["0:01\nalpha\n0:02\nbravo\n1:04\ncharlie", "[0:01] alpha\n[0:02] bravo\n[00:01:04] charlie"],
)
def test_moments_in_a_pasted_transcript_are_its_times(text: str) -> None:
    found = read(text).cues
    assert [(cue.starts_ms, cue.text.strip()) for cue in found] == [
        (1000, "alpha"),
        (2000, "bravo"),
        (64_000, "charlie"),
    ]


def test_lines_that_automatic_captions_repeat_are_read_once() -> None:
    rolling = "WEBVTT\n\n" + "\n\n".join(
        f"00:00:{n:02}.000 --> 00:00:{n:02}.990\nline {n - 1}\nline {n}\n\n"
        f"00:00:{n:02}.990 --> 00:00:{n + 1:02}.000\nline {n}\n "
        for n in range(1, 9)
    )
    assert [cue.text for cue in read(rolling).cues] == ["line 0 line 1", *(f"line {n}" for n in range(2, 9))]


def test_somebody_who_repeats_themselves_is_not_cut_short() -> None:
    said = [
        "No.",
        "No.",
        "Never.",
        "Never again.",
        "No more.",
        "Really.",
        "No.",
        "Yes.",
        "It is so.",
        "Done.",
    ]
    text = "\n\n".join(f"{n}\n00:00:{n:02},000 --> 00:00:{n + 1:02},000\n{one}" for n, one in enumerate(said))
    assert [cue.text for cue in read(text).cues] == said


def test_dashes_and_arrows_in_what_is_said_stay() -> None:
    said = ["Ann: well -- no.", "From 10:30 - or 11:00 --", "a -> b", "5", "NOTE this"]
    text = "\n\n".join(f"{n}\n00:00:{n:02},000 --> 00:00:{n + 1:02},000\n{one}" for n, one in enumerate(said))
    assert [cue.text for cue in read(text).cues] == said


def test_names_before_a_colon_are_speakers_if_they_are_there_again() -> None:
    said = ["Ann Lee: One.", "Two.", "Note: three.", "Bo: Four.", "Ann Lee: Five.", "Bo: Six."]
    text = "\n\n".join(f"00:00:{n:02},000 --> 00:00:{n + 1:02},000\n{one}" for n, one in enumerate(said))
    assert [(cue.speaker, cue.text) for cue in read(text).cues] == [
        ("Ann Lee", "One."),
        ("Ann Lee", "Two."),
        ("Ann Lee", "Note: three."),
        ("Bo", "Four."),
        ("Ann Lee", "Five."),
        ("Bo", "Six."),
    ]


def test_the_language_is_that_of_the_file() -> None:
    assert read(VTT).language == "en"
    assert read('{"language": "german", "segments": [{"start": 1, "text": "a"}]}').language == "de"
    assert read('{"language": "<script>", "segments": [{"start": 1, "text": "a"}]}').language is None
    assert read('<html lang="fr"><p>Bonjour').language == "fr"


@pytest.mark.parametrize("first", HARMLESS)
def test_no_harmless_damage_costs_a_word(first: str) -> None:
    for name, text in transcripts.damaged(HARMLESS, first):
        words = " ".join(fragment.text for fragment in text_of(read(text)).fragments)
        assert [word for word in WORDS if word not in words] == [], name
        marks = ("-->", "</", "::cue", "width:40", "made by hand")
        assert [mark for mark in marks if mark in words] == [], name


@pytest.mark.parametrize("first", HARMFUL)
@pytest.mark.parametrize("hints", [NOTHING, Hints(filename="a.vtt"), Hints(content_type="application/srt")])
def test_harmful_damage_is_text_or_a_clear_error(first: str, hints: Hints) -> None:
    for name, text in transcripts.damaged(HARMFUL, first):
        try:
            found = read_transcript(text.encode(errors="surrogatepass"), hints)
        except TranscriptUnreadable:
            continue
        assert 0 < len(found.cues) <= MOST_ITEMS, name
        try:
            text_of(found)
        except TranscriptUnavailable:
            assert not any(char.isalnum() for cue in found.cues for char in cue.text), name


@pytest.mark.parametrize("encoding", transcripts.ENCODINGS)
@pytest.mark.parametrize("text", [VTT, SRT], ids=["vtt", "srt"])
def test_every_usual_encoding_is_read(encoding: str, text: str) -> None:
    said = text.replace("bravo", "Größe")
    assert "alpha Größe." in [cue.text for cue in read(said.encode(encoding)).cues]


@pytest.mark.parametrize("text", [VTT, SRT, PODCAST_JSON, PODCAST_HTML])
def test_every_beginning_of_a_file_is_text_or_a_clear_error(text: str) -> None:
    for end in range(len(text)):
        try:
            text_of(read(text[:end]))
        except REFUSED:
            continue


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 1000,
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
        b"PK\x03\x04" + bytes(range(256)) * 20,
        b"\xff\xfe",
        b"{}",
        b"[]",
        b'{"segments": {}}',
        b'{"segments": [[], 5, null, {"text": 7}, {"start": true}]}',
        b"<a/>",
        b"<?xml version='1.0'?>" + b"<a>" * 100_000,
    ],
)
def test_what_is_no_transcript_is_a_clear_error(data: bytes) -> None:
    with pytest.raises(TranscriptUnreadable):
        read(data)


def test_a_page_in_place_of_captions_is_no_transcript() -> None:
    page = "<!doctype html><title>Gone</title><p>Not found."
    assert cues(page)[0][2] == "Not found."
    for named in ("text/vtt", "application/json", "application/srt"):
        with pytest.raises(TranscriptUnreadable):
            read(page, content_type=named)


def test_entities_of_a_stranger_are_not_expanded() -> None:
    bomb = (
        "<!DOCTYPE a ["
        + "".join(f"<!ENTITY a{n + 1} '{f'&a{n};' * 10}'>" for n in range(12))
        + "]><transcript><text start='1' dur='2'>&a12;</text></transcript>"
    )
    for text in (bomb, f"<?xml version='1.0'?>{bomb}"):
        with pytest.raises(TranscriptUnreadable):
            read(text)


def many(count: int, speaker: Callable[[int], str] = lambda n: "") -> str:
    return "WEBVTT\n\n" + "\n".join(
        f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}.000 --> {n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}.900\n"
        f"{speaker(n)}word {n}\n"
        for n in range(count)
    )


def test_more_cues_than_a_result_may_hold_are_joined() -> None:
    found = read(many(120_000))
    assert len(found.cues) <= MOST_ITEMS
    assert found.cues[-1].text.endswith("word 119999")
    assert found.cues[-1].ends_ms == 119_999_900
    text_of(found)


def test_endless_speakers_are_a_clear_error() -> None:
    with pytest.raises(TranscriptUnreadable, match="too many cues"):
        read(many(MOST_ITEMS + 10, lambda n: f"<v Speaker {n}>"))


CUE = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n"


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        *[("", one) for one in ("x", "-->", "00:00 --> ", "1:1:", "[", '{"a":', "<p>", "</p", "Ann: ")],
        *[(CUE, one) for one in ("word ", "<v ", "<v a>", "&amp;", "{\\a ", "\u3042")],
        *[(CUE + begun, " ") for begun in ("<v", "<c", "{\\", "0:01", "Ann")],
    ],
)
def test_megabytes_on_one_line_are_read_or_refused(head: str, piece: str) -> None:
    data = (head + piece * (2_000_000 // len(piece.encode()))).encode()
    with suppress(*REFUSED):
        text_of(read(data))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(["", "a.vtt", "a.srt", "a.json", "a.html", "a.xml", "a.txt"]))
def test_random_bytes_are_text_or_a_clear_error(data: bytes, name: str) -> None:
    with suppress(*REFUSED):
        text_of(read_transcript(data, Hints(filename=name)))


LINES = st.lists(
    st.sampled_from(
        ["", "WEBVTT", "NOTE", "STYLE", "1", "2", "-->", "00:01.000 --> 00:02.000", "00:03,1-->00:02", "a b",
         "<v A>c", "</v>", "&lt;", "<c", "00:00:00.000 --> 99:99:99.999", "-1:00 --> 0:01", "{\\an8}", "Ann: d"]
    )
    | st.text(max_size=12),
    max_size=40,
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_order_of_lines_is_text_or_a_clear_error(lines: list[str], end: str) -> None:
    with suppress(*REFUSED):
        text_of(read_transcript(end.join(lines).encode(errors="surrogatepass"), NOTHING))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["segments", "events", "segs", "start", "end", "duration", "text", "utf8", "speaker", "body"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@settings(max_examples=500, deadline=None)
@given(VALUES)
def test_any_json_is_text_or_a_clear_error(value: object) -> None:
    with suppress(*REFUSED):
        text_of(read_transcript(json.dumps(value).encode(), Hints(content_type="application/json")))
