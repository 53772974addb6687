"""What strangers say about videos: read as far as it makes sense, refused with a code otherwise, never a crash."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus.errors import ExtractionFailed
from nexus.extract import Hints, Reader
from nexus.extract.elements import words
from nexus.extract.recording import TimedChapter
from nexus.transcribe.choosing import choose_captions
from nexus.transcribe.descriptions import chapters_in, notes_in
from nexus.transcribe.oembed import read_oembed
from nexus.transcribe.page_recording import read_recording_page
from nexus.transcribe.peertube import read_peertube_captions, read_peertube_chapters, read_peertube_video
from nexus.transcribe.vimeo import read_config
from nexus.transcribe.youtube_facts import read_player, read_watch_page

HINTS = Hints("https://video.example/one", "text/html", "utf-8")
READERS: list[Reader] = [
    read_oembed,
    read_recording_page,
    read_peertube_captions,
    read_peertube_chapters,
    read_peertube_video,
    read_config,
    read_player,
    read_watch_page,
]
#: Names that the readers look for.
NAMES = sorted(
    words(
        """uuid name description duration data language id captionPath chapters timecode title video request
        text_tracks lang url kind embed thumbs owner videoDetails thumbnail thumbnails width lengthSeconds
        shortDescription html transcript files size fileUrl streamingPlaylists channel displayName previewPath"""
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("1:00 x"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=30,
)


@pytest.mark.parametrize("reader", READERS)
@given(value=VALUES)
@settings(max_examples=60, deadline=None)
def test_json_of_any_shape_is_read_or_refused(reader: Reader, value: Any) -> None:
    with suppress(ExtractionFailed):
        reader(json.dumps(value).encode(), HINTS)


@pytest.mark.parametrize("reader", READERS)
@given(data=st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_bytes_of_any_kind_are_read_or_refused(reader: Reader, data: bytes) -> None:
    with suppress(ExtractionFailed):
        reader(data, HINTS)


@given(value=VALUES)
@settings(max_examples=100, deadline=None)
def test_linked_data_of_any_shape_is_read(value: Any) -> None:
    data = json.dumps(
        {"@type": "VideoObject", "hasPart": value, "author": value, "caption": value, "name": value}
    )
    page = f'<title>A page</title><script type="application/ld+json">{data}</script><p>Words.'
    read_recording_page(page.encode(), HINTS)


@pytest.mark.parametrize(
    ("description", "found"),
    [
        ("0:00 Ebb\n1:00 Slack\n1:02:03 Flood", [(0, "Ebb"), (60, "Slack"), (3723, "Flood")]),
        ("Words.\n\n(0:00) - Ebb\n[01:00] Slack\n• 2:00: Flood", [(0, "Ebb"), (60, "Slack"), (120, "Flood")]),
        ("Ebb 0:00\nSlack – 1:00\nFlood (2:00)", [(0, "Ebb"), (60, "Slack"), (120, "Flood")]),
        ("0:00 Ebb\n1:00 Flood", []),
        ("0:30 Ebb\n1:00 Slack\n2:00 Flood", []),
        ("0:00 Ebb\n2:00 Slack\n1:00 Flood", []),
        ("Meet us at 18:00\nor at 19:00\nor at 20:00", []),
        ("", []),
    ],
)
def test_chapters_are_a_list_of_times_from_the_beginning(
    description: str, found: list[tuple[float, str]]
) -> None:
    assert chapters_in(description) == tuple(TimedChapter(*one) for one in found)


def test_chapters_beyond_the_end_are_no_chapters() -> None:
    assert chapters_in("0:00 Ebb\n1:00 Slack\n2:00 Flood", 100) == ()


def test_a_description_becomes_paragraphs_without_markup() -> None:
    assert notes_in("One <b>\ntwo & three\n\n \nfour") == "<p>One &lt;b&gt;<br>two &amp; three</p><p>four</p>"
    assert notes_in(" \n ") is None


@pytest.mark.parametrize(
    ("captions", "languages", "chosen"),
    [
        ([], ["en"], None),
        ([("en", True), ("en", False)], ["en"], 1),
        ([("de", False), ("en", True)], ["en"], 1),
        ([("de", False), ("en", True)], ["de", "en"], 0),
        ([("en", False), ("en-GB", False)], ["en-GB", "en"], 1),
        ([("en-US", False), ("fr", False)], ["en"], 0),
        ([("pt", False), ("de", False), ("de", True)], ["en"], 1),
        ([("de", True), ("pt", False)], ["en"], 0),
        ([("zh-Hans", False), ("zh_TW", False)], ["zh-tw"], 1),
    ],
)
def test_captions_are_chosen_by_language_then_by_who_wrote_them(
    captions: list[tuple[str, bool]], languages: list[str], chosen: int | None
) -> None:
    assert choose_captions(captions, languages) == chosen
