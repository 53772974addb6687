"""Transcripts become texts: paragraphs by pause, speaker and sentence, chapters as headings, times for sentences."""

from __future__ import annotations

from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus.errors import TranscriptUnavailable
from nexus.extract import Extraction, Fragment, Heading
from nexus.extract.recording import Recording, TimedChapter
from nexus.extract.safe_html import is_safe
from nexus.transcribe import UNTIMED, Cue, Transcript
from nexus.transcribe.paragraphs import FRAGMENT_LENGTH, transcript_extraction


def made(*cues: Cue, chapters: tuple[tuple[float, str], ...] = (), source: str = "Captions") -> Extraction:
    known = Recording(chapters=tuple(TimedChapter(*one) for one in chapters))
    return transcript_extraction("A talk", Transcript(cues, source), known)


def spoken(fragment: Fragment) -> list[tuple[str, int, int]]:
    return [(fragment.text[one.start : one.end], one.starts_ms, one.ends_ms) for one in fragment.times]


def shown(html: str) -> str:
    """The text content of html that holds nothing but its few tags."""
    text, rest = "", html
    while "<" in rest:
        before, _, rest = rest.partition("<")
        text, rest = text + before, rest.partition(">")[2]
    return unescape(text + rest)


def test_cues_join_to_sentences_that_keep_their_times() -> None:
    found = made(
        Cue(0, 2000, "Good morning,"), Cue(2000, 4000, "everybody. Let us"), Cue(4000, 5000, "begin.")
    )
    (fragment,) = found.fragments
    assert fragment.text == "Good morning, everybody. Let us begin."
    assert fragment.html == "<p>Good morning, everybody. Let us begin.</p>"
    assert spoken(fragment) == [
        ("Good morning, everybody.", 0, 3176),
        ("Let us begin.", 3294, 5000),
    ]


def test_a_long_pause_begins_a_paragraph() -> None:
    found = made(Cue(0, 2000, "That is the end."), Cue(9000, 11_000, "Welcome back."))
    assert found.fragments[0].html == "<p>That is the end.</p>\n\n<p>Welcome back.</p>"


def test_a_paragraph_ends_with_a_sentence_once_it_is_long() -> None:
    cues = [
        Cue(n * 2000, n * 2000 + 2000, f"This is number {n} of the many things that we say.")
        for n in range(60)
    ]
    paragraphs = made(*cues).fragments[0].text.split("\n\n")
    assert all(one.endswith(".") and 500 < len(one) < 900 for one in paragraphs[:-1])


def test_speakers_are_named_in_bold_when_they_begin() -> None:
    found = made(
        Cue(0, 1000, "Who is it?", "Ann & Bo"),
        Cue(1000, 2000, "It is me.", "Cy <x>"),
        Cue(2000, 3000, "Only me.", "Cy <x>"),
    )
    (fragment,) = found.fragments
    assert fragment.text == "Ann & Bo: Who is it?\n\nCy <x>: It is me. Only me."
    assert fragment.html == (
        "<p><strong>Ann &amp; Bo:</strong> Who is it?</p>\n\n"
        "<p><strong>Cy &lt;x&gt;:</strong> It is me. Only me.</p>"
    )
    assert [text for text, _, _ in spoken(fragment)] == ["Who is it?", "It is me.", "Only me."]


def test_chapters_are_headings_with_fragments_of_their_own() -> None:
    words = ("Nought", "One", "Two", "Three", "Four", "Five")
    cues = [Cue(n * 1000, n * 1000 + 1000, f"{word}!") for n, word in enumerate(words)]
    found = made(*cues, chapters=((2.0, "The <middle>"), (4.2, "The end"), (float("nan"), "Nowhere")))
    assert [one.text for one in found.fragments] == [
        "Nought! One!",
        "The <middle>\n\nTwo! Three!",
        "The end\n\nFour! Five!",
    ]
    assert found.outline == (Heading("The <middle>", 2, "f1-c"), Heading("The end", 2, "f2-c"))
    assert found.fragments[1].html == ('<h2 id="f1-c">The &lt;middle&gt;</h2>\n\n<p>Two! Three!</p>')
    assert spoken(found.fragments[1])[:2] == [("The <middle>", 2000, 2000), ("Two!", 2000, 3000)]


def test_a_text_without_times_has_its_paragraphs_and_no_times() -> None:
    found = made(Cue(UNTIMED, UNTIMED, "One. Two."), Cue(UNTIMED, UNTIMED, "Three."), chapters=((0, "A"),))
    assert found.fragments == (Fragment("One. Two.\n\nThree.", "<p>One. Two.</p>\n\n<p>Three.</p>"),)


def test_a_few_cues_without_times_follow_the_one_before() -> None:
    found = made(Cue(0, 1000, "One."), Cue(UNTIMED, UNTIMED, "Two."), Cue(2000, 3000, "Three."))
    assert spoken(found.fragments[0]) == [("One.", 0, 1000), ("Two.", 1000, 1000), ("Three.", 2000, 3000)]


def test_overlapping_cues_end_when_the_next_begins_and_twins_share_their_time() -> None:
    found = made(Cue(0, 9000, "One."), Cue(1000, 5000, "Two."), Cue(1000, 3000, "Six."))
    assert spoken(found.fragments[0]) == [("One.", 0, 1000), ("Two.", 1000, 3000), ("Six.", 3000, 5000)]


def test_lines_of_a_script_without_spaces_are_joined_without_one() -> None:
    assert made(Cue(0, 1000, "これは"), Cue(1000, 2000, "本です。")).fragments[0].text == "これは本です。"


def test_what_is_known_about_the_recording_is_kept() -> None:
    known = Recording(
        "Its own title", "Ann", "Tube", "2026-01-02", "de", picture_url="https://example.com/p.jpg"
    )
    found = transcript_extraction(None, Transcript((Cue(0, 1, "Hallo."),), "Captions", "en"), known)
    facts = found.facts
    assert (found.title, facts.byline, facts.site, facts.published) == (
        "Its own title",
        "Ann",
        "Tube",
        "2026-01-02",
    )
    assert (facts.language, facts.lead_image, facts.source) == ("en", "https://example.com/p.jpg", "Captions")


def test_silence_is_no_transcript() -> None:
    with pytest.raises(TranscriptUnavailable):
        made(Cue(0, 1000, " \u200b\n"))


def test_long_speech_without_a_stop_is_cut_at_the_cues() -> None:
    cues = [Cue(n * 3000, n * 3000 + 3000, f"and then word {n} follows on") for n in range(3000)]
    found = made(*cues)
    spans = [one for fragment in found.fragments for one in fragment.times]
    assert max(one.end - one.start for one in spans) <= 400
    assert max(len(fragment.text) for fragment in found.fragments) <= FRAGMENT_LENGTH
    assert (
        " ".join(fragment.text for fragment in found.fragments).split()
        == " ".join(cue.text for cue in cues).split()
    )


@pytest.mark.parametrize("text", ["x" * 3_000_000, "word " * 600_000, "。" * 1_000_000])
@pytest.mark.parametrize("moment", [UNTIMED, 0])
def test_one_endless_cue_is_cut_into_fragments(text: str, moment: int) -> None:
    found = made(Cue(moment, moment if moment == UNTIMED else 3_600_000, text))
    assert max(len(fragment.text) for fragment in found.fragments) <= FRAGMENT_LENGTH


CUES = st.builds(
    Cue,
    st.one_of(st.integers(-5, 20_000), st.integers(-(2**60), 2**60)),
    st.one_of(st.integers(-5, 20_000), st.integers(-(2**60), 2**60)),
    st.text(max_size=60)
    | st.sampled_from(["One. Two", "three? Four!", "<b>&amp;", "A.", "words without a stop"]),
    st.none() | st.text(max_size=10),
)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(CUES, max_size=30),
    st.lists(st.tuples(st.floats(), st.text(max_size=20)), max_size=5),
)
def test_whatever_the_cues_are_html_is_clean_and_times_lie_in_the_text(
    cues: list[Cue], chapters: list[tuple[float, str]]
) -> None:
    try:
        found = made(*cues, chapters=tuple(chapters))
    except TranscriptUnavailable:
        return
    assert made(*cues, chapters=tuple(chapters)) == found
    for fragment in found.fragments:
        assert fragment.html is not None
        assert is_safe(fragment.html)
        assert shown(fragment.html) == fragment.text
        after, moment = 0, 0
        for span in fragment.times:
            assert after <= span.start < span.end <= len(fragment.text)
            assert moment <= span.starts_ms <= span.ends_ms
            after, moment = span.end, span.starts_ms
