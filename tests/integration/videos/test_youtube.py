"""YouTube, as it answers youtube-transcript-api: with captions, without, and not at all."""

import json
from dataclasses import replace

import pytest

from nexus.app import App
from nexus.extract.recording import Recording, TimedChapter
from nexus.media import refresh, submit
from nexus.media.workbench import Tools
from nexus.states.media import MediaStatus
from tests.integration.videos.reading import URL, failure_of, read_video, recording_of, revision_source
from tests.kit.media import everything_of, new_media, row_of, status_of
from tests.kit.servers.video_sites import (
    PLAYER,
    TIMED_TEXT,
    VIDEO_ID,
    WATCH,
    YOUTUBE_OEMBED,
    VideoSites,
    YouTubeVideo,
    json_answer,
    timed_text,
)
from tests.kit.servers.web_pages import Answer
from tests.kit.users import new_user
from tests.kit.work import extract_item, refresh_item

TEXT = "The water rises for six hours. Then it falls again & again."
AGE = {"status": "LOGIN_REQUIRED", "reason": "This video may be inappropriate for some users."}


# captions


def test_captions_become_the_text_and_what_is_known_is_kept(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    YouTubeVideo().serve(video_sites)
    media_id = read_video(app, tools)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    row = row_of(app.sessions, media_id)
    assert (row.title, row.provider_id) == ("On tides", VIDEO_ID)
    text = "\n\n".join(everything_of(app.sessions, media_id).texts)
    assert "The water rises for six hours." in text
    assert "Then it falls again & again." in text
    assert 'The "ebb"' in text, "chapters are headings"
    assert revision_source(app, media_id) == "Captions from YouTube"
    assert recording_of(app, media_id) == Recording(
        title="On tides",
        author="A. Mariner",
        site="YouTube",
        published="2026-01-31T08:00:00-08:00",
        seconds=62.0,
        picture_url=f"https://i.ytimg.com/vi/{VIDEO_ID}/hqdefault.jpg",
        embed_url=f"https://www.youtube-nocookie.com/embed/{VIDEO_ID}",
        notes="<p>About tides.</p>",
        chapters=(TimedChapter(0.0, 'The "ebb"'), TimedChapter(4.0, "The flood")),
    )


def test_youtube_is_asked_as_its_library_asks(app: App, tools: Tools, video_sites: VideoSites) -> None:
    YouTubeVideo().serve(video_sites)
    read_video(app, tools)
    assert video_sites.places() == [YOUTUBE_OEMBED, WATCH, PLAYER, TIMED_TEXT]
    _, page, player, captions = video_sites.asked
    assert page.place == f"{WATCH}?v={VIDEO_ID}"
    assert player.method == "POST"
    assert player.place == f"{PLAYER}?key=the-key_1"
    assert player.headers["content-type"] == "application/json"
    assert json.loads(player.body)["videoId"] == VIDEO_ID
    for asked in (page, player, captions):
        assert asked.headers["accept-language"] == "en-US"


def test_captions_that_people_wrote_come_before_automatic_ones(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    YouTubeVideo(tracks={("en", "asr"): ("Machine.",), ("en", ""): ("Human.",)}).serve(video_sites)
    media_id = read_video(app, tools)
    assert "Human." in everything_of(app.sessions, media_id).texts[0]
    assert revision_source(app, media_id) == "Captions from YouTube"


def test_automatic_captions_are_said_to_be_automatic(app: App, tools: Tools, video_sites: VideoSites) -> None:
    YouTubeVideo(tracks={("de", ""): ("Mensch.",), ("en", "asr"): ("Machine.",)}).serve(video_sites)
    media_id = read_video(app, tools)
    assert "Machine." in everything_of(app.sessions, media_id).texts[0]
    assert revision_source(app, media_id) == "Captions from YouTube, automatic"


def test_the_languages_that_people_read_come_first(app: App, tools: Tools, video_sites: VideoSites) -> None:
    YouTubeVideo(tracks={("en", ""): ("Human.",), ("fr", "asr"): ("Machine à marée.",)}).serve(video_sites)
    media_id = read_video(app, replace(tools, languages=("fr-CA", "en")))
    assert "marée" in everything_of(app.sessions, media_id).texts[0]


def test_captions_in_another_language_are_better_than_none(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    """What is spoken, and not a translation of it."""
    tracks = {("pt", ""): ("Maré.",), ("de", ""): ("Die Flut.",), ("de", "asr"): ("die flut",)}
    YouTubeVideo(tracks=tracks).serve(video_sites)
    media_id = read_video(app, tools)
    assert "Die Flut." in everything_of(app.sessions, media_id).texts[0]


# none


def test_a_video_without_captions_can_only_be_played(app: App, tools: Tools, video_sites: VideoSites) -> None:
    YouTubeVideo(tracks={}).serve(video_sites)
    media_id = read_video(app, tools)
    assert failure_of(app, media_id) == ("transcribe", "E_TRANSCRIPT_UNAVAILABLE")
    row = row_of(app.sessions, media_id)
    assert row.external_playback_url == f"https://www.youtube.com/watch?v={VIDEO_ID}"
    assert row.title == "On tides"
    found = recording_of(app, media_id)
    assert found is not None
    assert found.seconds == 62


def test_a_retry_looks_for_captions_and_for_nothing_else(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    user = new_user(app)
    YouTubeVideo(tracks={}).serve(video_sites)
    media_id = new_media(app, user, url=URL, kind="video")
    extract_item(tools, media_id)
    YouTubeVideo().serve(video_sites)
    del video_sites[YOUTUBE_OEMBED]
    video_sites.asked.clear()
    submit.retry_failed_item(app.sessions, app.queue, media_id, user)
    extract_item(tools, media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    assert YOUTUBE_OEMBED not in video_sites.places()


def test_a_refresh_looks_again(app: App, tools: Tools, video_sites: VideoSites) -> None:
    user = new_user(app)
    YouTubeVideo().serve(video_sites)
    media_id = new_media(app, user, url=URL, kind="video")
    extract_item(tools, media_id)
    YouTubeVideo(title="On tides, corrected", tracks={("en", ""): ("Better.",)}).serve(video_sites)
    refresh.request(app.sessions, app.queue, media_id, user, None)
    refresh_item(tools, media_id)
    found = recording_of(app, media_id)
    assert found is not None
    assert found.title == "On tides, corrected"


# not to be had


@pytest.mark.parametrize(
    ("playability", "code"),
    [
        (AGE, "E_VIDEO_AGE_RESTRICTED"),
        ({"status": "LOGIN_REQUIRED", "reason": "Sign in to confirm your age"}, "E_VIDEO_AGE_RESTRICTED"),
        ({"status": "ERROR", "reason": "This video is unavailable"}, "E_VIDEO_UNAVAILABLE"),
        ({"status": "LOGIN_REQUIRED", "reason": "This video is private"}, "E_VIDEO_UNAVAILABLE"),
        ({"status": "ERROR", "reason": "This video has been removed by the uploader"}, "E_VIDEO_UNAVAILABLE"),
        ({"status": "UNPLAYABLE", "reason": "Not in your country"}, "E_TRANSCRIPT_UNAVAILABLE"),
        ({"status": "LIVE_STREAM_OFFLINE", "reason": "Begins in 2 hours"}, "E_TRANSCRIPT_UNAVAILABLE"),
        ({"status": "UNPLAYABLE", "reason": ["?"]}, "E_TRANSCRIPT_UNAVAILABLE"),
    ],
)
def test_a_video_that_youtube_does_not_play_says_why(
    app: App, tools: Tools, video_sites: VideoSites, playability: dict[str, object], code: str
) -> None:
    YouTubeVideo(playability=playability).serve(video_sites)
    media_id = read_video(app, tools)
    assert failure_of(app, media_id) == ("transcribe", code)


def test_a_video_that_is_gone_says_so(app: App, tools: Tools, video_sites: VideoSites) -> None:
    video_sites[WATCH] = Answer(b"", status=404)
    media_id = read_video(app, tools)
    assert failure_of(app, media_id) == ("transcribe", "E_VIDEO_UNAVAILABLE")


def broken_player(change: object) -> Answer:
    return json_answer({**YouTubeVideo().player(), **change})  # type: ignore[dict-item]


BROKEN = {
    "no key": {WATCH: Answer(b"<html></html>")},
    "an empty page": {WATCH: Answer(b"")},
    "not utf-8": {WATCH: Answer(b"\xff\xfe\x00" * 100)},
    "a huge page": {WATCH: Answer(b" " * 5_000_000)},
    "no json": {PLAYER: Answer(b"<html>", "application/json")},
    "deep json": {PLAYER: Answer(b"[" * 100_000, "application/json")},
    "a list": {PLAYER: json_answer([])},
    "null": {PLAYER: json_answer(None)},
    "no playability": {PLAYER: broken_player({"playabilityStatus": None})},
    "tracks of another shape": {
        PLAYER: broken_player({"captions": {"playerCaptionsTracklistRenderer": {"captionTracks": [{}]}}})
    },
    "tracks that are no list": {
        PLAYER: broken_player({"captions": {"playerCaptionsTracklistRenderer": {"captionTracks": 7}}})
    },
    "a redirect of the player": {PLAYER: Answer(b"", status=302, headers={"Location": "/elsewhere"})},
    "400": {PLAYER: Answer(b"", status=400)},
    "empty captions": {f"{TIMED_TEXT}?v={VIDEO_ID}&lang=en&kind=": Answer(b"", "text/xml")},
    "captions without cues": {f"{TIMED_TEXT}?v={VIDEO_ID}&lang=en&kind=": timed_text(())},
    "captions that are a page": {
        f"{TIMED_TEXT}?v={VIDEO_ID}&lang=en&kind=": Answer(b"<html><body>Sorry</body></html>")
    },
    "an entity bomb": {
        f"{TIMED_TEXT}?v={VIDEO_ID}&lang=en&kind=": Answer(
            b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><transcript><text start="0">&b;</text>',
            "text/xml",
        )
    },
}


@pytest.mark.parametrize("how", BROKEN)
def test_an_answer_that_makes_no_sense_is_no_transcript(
    app: App, tools: Tools, video_sites: VideoSites, how: str
) -> None:
    YouTubeVideo().serve(video_sites)
    video_sites.update(BROKEN[how])
    media_id = read_video(app, tools)
    assert failure_of(app, media_id) == ("transcribe", "E_TRANSCRIPT_UNAVAILABLE")


@pytest.mark.parametrize("status", [500, 503])
def test_youtube_that_is_down_is_asked_again(
    app: App, tools: Tools, video_sites: VideoSites, status: int
) -> None:
    YouTubeVideo().serve(video_sites)
    video_sites[PLAYER] = Answer(b"", status=status)
    media_id = read_video(app, tools)
    row = row_of(app.sessions, media_id)
    assert (status_of(app.sessions, media_id), row.tries) == (MediaStatus.PENDING, 1)


@pytest.mark.parametrize(
    "oembed", [Answer(b"", status=401), Answer(b"{"), Answer(b"[]"), json_answer({"title": 7})]
)
def test_a_video_is_read_even_if_its_description_cant_be_had(
    app: App, tools: Tools, video_sites: VideoSites, oembed: Answer
) -> None:
    YouTubeVideo().serve(video_sites)
    video_sites[YOUTUBE_OEMBED] = oembed
    media_id = read_video(app, tools)
    assert row_of(app.sessions, media_id).title == "On tides"
    found = recording_of(app, media_id)
    assert found is not None
    assert found.picture_url == f"https://i.ytimg.com/vi/{VIDEO_ID}/1280.jpg"


@pytest.mark.parametrize("seconds", ["-1", "nan", "1e400", "x", "99999999999999999999"])
def test_no_size_that_youtube_says_is_trusted(
    app: App, tools: Tools, video_sites: VideoSites, seconds: str
) -> None:
    YouTubeVideo(seconds=seconds).serve(video_sites)  # type: ignore[arg-type]
    media_id = read_video(app, tools)
    found = recording_of(app, media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    assert found is not None
    assert found.seconds is None


def test_chapters_are_found_in_the_description(app: App, tools: Tools, video_sites: VideoSites) -> None:
    YouTubeVideo(description="Tides\n0:00 Ebb\n0:20 Slack\n0:40 Flood").serve(video_sites)
    video_sites[WATCH] = Answer(b'"INNERTUBE_API_KEY": "k"')
    found = recording_of(app, read_video(app, tools))
    assert found is not None
    assert found.chapters == (TimedChapter(0, "Ebb"), TimedChapter(20, "Slack"), TimedChapter(40, "Flood"))
