"""Pages with a player, and files: what is known about a recording, and where its text comes from."""

import json
from dataclasses import replace
from typing import Any

import pytest

from nexus.app import App, kernel_for
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.media.runner import Extracting
from nexus.media.workbench import Tools
from nexus.states.media import MediaStatus
from nexus.work.turns import Turns
from tests.integration.videos.reading import (
    SAID,
    failure_of,
    player_page,
    read_video,
    recording_of,
    revision_source,
    text_of,
)
from tests.kit.media import new_media, row_of, status_of
from tests.kit.servers.video_sites import VideoSites, json_answer, vtt
from tests.kit.servers.web_pages import Answer
from tests.kit.work import extract_item

# pages

PAGE = "https://pages.example/talks/tides"


def linked(**data: Any) -> str:
    return f'<script type="application/ld+json">{json.dumps(data)}</script>'


def serve_page(sites: VideoSites, body: bytes) -> None:
    sites["pages.example/talks/tides"] = Answer(body)


def test_the_tracks_of_a_player_become_the_text(app: App, tools: Tools, video_sites: VideoSites) -> None:
    tracks = (
        '<track kind="chapters" src="/c.vtt" srclang="en"><track kind="subtitles" src="/fr.vtt" srclang="fr">'
        '<track kind="captions" src="../en.vtt" srclang="en" label="English"><track kind="metadata" src="/m.vtt">'
    )
    serve_page(video_sites, player_page(tracks))
    video_sites["pages.example/en.vtt"] = vtt()
    media_id = read_video(app, tools, PAGE)
    assert text_of(app, media_id) == SAID
    assert revision_source(app, media_id) == "Captions of the page"
    assert recording_of(app, media_id) == Recording(
        title="On tides",
        site="The Example",
        language="en",
        picture_url="https://pages.example/p.jpg",
        transcripts=(
            NamedTranscript("https://pages.example/fr.vtt", None, "fr", "subtitles"),
            NamedTranscript("https://pages.example/en.vtt", None, "en", "captions"),
        ),
        audio_url="https://pages.example/talks/tides.mp4",
        audio_type="video/mp4",
    )


def test_the_linked_data_of_a_page_says_what_is_known(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    data = linked(
        **{"@type": "VideoObject"},
        name="The tides",
        author={"name": "A. Mariner"},
        uploadDate="2026-01-31",
        duration="PT1H2M3S",
        inLanguage="en-GB",
        contentUrl="https://pages.example/t.webm",
        embedUrl="https://pages.example/embed/1",
        thumbnailUrl=["https://pages.example/t.jpg"],
        transcript=f"{SAID} Then it falls again, as it does.",
        hasPart=[
            {"@type": "Clip", "name": "Ebb", "startOffset": 0},
            {"name": "Flood", "startOffset": "60"},
            7,
        ],
    )
    serve_page(video_sites, player_page(head=data).replace(b"<video", b"<p").replace(b"<source", b"<p"))
    media_id = read_video(app, tools, PAGE)
    assert SAID in text_of(app, media_id)
    assert revision_source(app, media_id) == "Transcript on the page"
    found = recording_of(app, media_id)
    assert found is not None
    assert (found.title, found.author, found.published) == ("The tides", "A. Mariner", "2026-01-31")
    assert (found.seconds, found.audio_url) == (3723.0, "https://pages.example/t.webm")
    assert found.chapters == (TimedChapter(0.0, "Ebb"), TimedChapter(60.0, "Flood"))
    assert found.picture_url == "https://pages.example/t.jpg"


def test_tracks_with_times_are_better_than_a_text_without(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    data = linked(**{"@type": "AudioObject"}, transcript="Words without any times.")
    serve_page(video_sites, player_page('<track src="/en.vtt" srclang="en">', data))
    video_sites["pages.example/en.vtt"] = vtt()
    assert text_of(app, read_video(app, tools, PAGE)) == SAID


@pytest.mark.parametrize(
    "lost", [Answer(b"", status=404), Answer(b"", status=500), Answer(b"\x00\x01\x02" * 50)]
)
def test_a_text_without_times_is_better_than_tracks_that_are_lost(
    app: App, tools: Tools, video_sites: VideoSites, lost: Answer
) -> None:
    data = linked(**{"@type": "PodcastEpisode"}, transcript="Words without any times.")
    serve_page(video_sites, player_page('<track src="/en.vtt" srclang="en">', data))
    video_sites["pages.example/en.vtt"] = lost
    assert text_of(app, read_video(app, tools, PAGE)) == "Words without any times."


def test_a_page_may_name_its_transcript_by_an_address(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    serve_page(video_sites, player_page(head=linked(**{"@type": "VideoObject"}, transcript="/said.vtt")))
    video_sites["pages.example/said.vtt"] = vtt()
    assert text_of(app, read_video(app, tools, PAGE)) == SAID


def test_oembed_may_carry_what_the_page_does_not(app: App, tools: Tools, video_sites: VideoSites) -> None:
    link = '<link rel="alternate" type="application/json+oembed" href="/oembed?x=1">'
    serve_page(video_sites, player_page(head=link))
    video_sites["pages.example/oembed"] = json_answer(
        {"title": "Another", "author_name": "A. Mariner", "transcript": "Words from elsewhere."}
    )
    media_id = read_video(app, tools, PAGE)
    assert text_of(app, media_id) == "Words from elsewhere."
    found = recording_of(app, media_id)
    assert found is not None
    assert (found.title, found.author) == ("On tides", "A. Mariner")


def test_a_page_without_a_transcript_can_only_be_played(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    serve_page(video_sites, player_page())
    media_id = read_video(app, tools, PAGE)
    assert failure_of(app, media_id) == ("transcribe", "E_TRANSCRIPT_UNAVAILABLE")
    assert row_of(app.sessions, media_id).external_playback_url == PAGE


def test_a_page_that_is_gone_fails_as_such(app: App, tools: Tools, video_sites: VideoSites) -> None:
    assert failure_of(app, read_video(app, tools, PAGE)) == ("extract", "E_FETCH_HTTP_4XX")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00" * 100,
        b"<video>" * 10_000,
        b"<track src='x'>" * 50_000,
        b'<script type=\'application/ld+json\'>{"@type": ["VideoObject"], "transcript": [7], "hasPart": 7, '
        b'"duration": 7, "thumbnailUrl": [], "author": 7, "caption": [[]], "name": {}}</script><p>x',
        b"<script type='application/ld+json'>" + b"[" * 5000,
        b'<link type="application/json+oembed" href="javascript:x"><video src="file:///etc/passwd"><p>x',
    ],
)
def test_a_broken_page_is_a_failure_with_a_code(
    app: App, tools: Tools, video_sites: VideoSites, body: bytes
) -> None:
    serve_page(video_sites, body)
    media_id = read_video(app, tools, PAGE)
    assert status_of(app.sessions, media_id) in {MediaStatus.FAILED, MediaStatus.PENDING}
    found = recording_of(app, media_id)
    assert found is None or found.audio_url is None


# files


@pytest.mark.parametrize(
    ("path", "header", "kind"),
    [
        ("/The_tide.mp3", "audio/mpeg", "audio/mpeg"),
        ("/The_tide.mp3", "application/octet-stream", "audio/mpeg"),
        ("/The_tide", "audio/ogg; codecs=opus", "audio/ogg"),
        ("/The_tide.mp4?token=1", "video/mp4", "video/mp4"),
    ],
)
def test_a_file_is_known_by_its_name_and_its_type(
    app: App, tools: Tools, video_sites: VideoSites, path: str, header: str, kind: str
) -> None:
    video_sites[f"pages.example{path}"] = Answer(b"ID3\x04\x00\x00" * 1000, header)
    media_id = read_video(app, tools, f"https://pages.example{path}")
    assert failure_of(app, media_id) == ("transcribe", "E_TRANSCRIPT_UNAVAILABLE")
    found = recording_of(app, media_id)
    assert found is not None
    assert (found.title, found.audio_url, found.audio_type) == (
        "The tide",
        f"https://pages.example{path}",
        kind,
    )


def test_a_file_of_any_length_is_not_fetched_to_look_at_it(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    video_sites["pages.example/long.mp3"] = Answer(b"\0" * 2000, "application/octet-stream")
    short = replace(tools, fetcher=video_sites.fetcher(most_bytes=1000))
    found = recording_of(app, read_video(app, short, "https://pages.example/long.mp3"))
    assert found is not None
    assert found.audio_url == "https://pages.example/long.mp3"


def test_an_article_that_is_a_recording_says_what_to_do(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    video_sites["pages.example/listen"] = Answer(b"ID3", "audio/mpeg")
    media_id = new_media(app, url="https://pages.example/listen")
    extract_item(tools, media_id)
    row = row_of(app.sessions, media_id)
    assert row.last_error_code == "E_FETCH_WRONG_TYPE"
    assert "leads to a recording (audio/mpeg)" in row.last_error_message
    assert "nexus add --kind video" in row.last_error_message


# after an update


def test_videos_that_waited_for_a_processor_are_found_by_the_sweep(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    """No announcement is repeated: the database is the queue."""
    serve_page(video_sites, player_page('<track src="/en.vtt" srclang="en">'))
    video_sites["pages.example/en.vtt"] = vtt()
    without = replace(tools, extractors={})
    media_id = new_media(app, url=PAGE, kind="video")
    assert extract_item(without, media_id) is None
    assert Turns(app.sessions, tools.leases.length).claim(Extracting(without), 10) == []
    kernel = kernel_for(tools)
    (claim,) = Turns(app.sessions, tools.leases.length).claim(Extracting(tools), 10)
    kernel.finish(claim)
    assert text_of(app, media_id) == SAID
