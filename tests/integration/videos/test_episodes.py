"""Episodes of podcasts: what is known about them comes from their feed."""

import json
from dataclasses import replace
from uuid import UUID

import pytest

from nexus.app import App
from nexus.errors import FetchHttp5xx, TranscriptUnavailable
from nexus.extract import Source
from nexus.extract.recording import NamedTranscript, Recording
from nexus.media.recordings.facts import keep_recording
from nexus.media.recordings.transcribing import Ears
from nexus.media.workbench import Bench, Tools
from nexus.states.media import Kind
from nexus.transcribe.videos import podcast_episode
from tests.integration.videos.reading import SAID
from tests.kit.media import new_media, row_of
from tests.kit.servers.video_sites import VideoSites, vtt
from tests.kit.servers.web_pages import Answer
from tests.kit.speech import LIMITS, CountingEars


def source_of(app: App, tools: Tools, recording: Recording | None) -> Source:
    media_id: UUID = new_media(app, url="https://pages.example/episode", kind="video")
    if recording is not None:
        with app.sessions.begin() as session:
            keep_recording(session, media_id, recording)
    bench = Bench(tools, row_of(app.sessions, media_id), attempt=1)
    return Source(media_id, Kind.PODCAST_EPISODE, None, None, None, 1, bench)


def test_the_transcript_that_a_feed_names_becomes_the_text(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    video_sites["pages.example/t.vtt"] = vtt()
    named = NamedTranscript("https://pages.example/t.vtt", "text/vtt")
    found = podcast_episode(source_of(app, tools, Recording(title="On tides", transcripts=(named,))))
    assert (found.title, found.fragments[0].text) == ("On tides", SAID)
    assert found.fragments[0].times
    assert video_sites.places() == ["pages.example/t.vtt"]


@pytest.mark.parametrize("known", [None, Recording(title="On tides")])
def test_an_episode_without_a_transcript_can_only_be_played(
    app: App, tools: Tools, video_sites: VideoSites, known: Recording | None
) -> None:
    with pytest.raises(TranscriptUnavailable):
        podcast_episode(source_of(app, tools, known))
    assert video_sites.asked == []


def test_an_episode_whose_sound_is_gone_has_no_transcript_and_one_that_is_late_waits(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    hearing = replace(tools, ears=Ears(CountingEars(), LIMITS))
    gone = source_of(app, hearing, Recording(audio_url="https://pages.example/gone.mp3"))
    with pytest.raises(TranscriptUnavailable, match="does not give Nexus its sound"):
        podcast_episode(gone)
    video_sites["pages.example/late.mp3"] = Answer(b"", status=503)
    late = source_of(app, hearing, Recording(audio_url="https://pages.example/late.mp3"))
    with pytest.raises(FetchHttp5xx):
        podcast_episode(late)


def chapters(*listed: tuple[float, str]) -> Answer:
    named = [{"startTime": seconds, "title": title} for seconds, title in listed]
    return Answer(json.dumps({"version": "1.2.0", "chapters": named}).encode(), "application/json+chapters")


def test_chapters_at_an_address_become_headings_and_are_asked_for_once(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    video_sites["pages.example/t.vtt"] = vtt()
    video_sites["pages.example/chapters.json"] = chapters((0, "High water"))
    named = NamedTranscript("https://pages.example/t.vtt", "text/vtt")
    told = Recording(chapters_url="https://pages.example/chapters.json", transcripts=(named,))
    source = source_of(app, tools, told)
    assert [one.title for one in podcast_episode(source).outline] == ["High water"]
    assert [one.title for one in podcast_episode(source).outline] == ["High water"]
    assert video_sites.places().count("pages.example/chapters.json") == 1


@pytest.mark.parametrize("answer", [None, Answer(b"<p>no chapters", "text/html"), chapters()])
def test_an_episode_does_without_chapters_that_are_not_there(
    app: App, tools: Tools, video_sites: VideoSites, answer: Answer | None
) -> None:
    video_sites["pages.example/t.vtt"] = vtt()
    if answer is not None:
        video_sites["pages.example/chapters.json"] = answer
    named = NamedTranscript("https://pages.example/t.vtt", "text/vtt")
    told = Recording(chapters_url="https://pages.example/chapters.json", transcripts=(named,))
    assert podcast_episode(source_of(app, tools, told)).fragments[0].text == SAID
