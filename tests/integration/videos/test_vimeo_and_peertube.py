"""Vimeo and PeerTube: what is known about a video, and where its text comes from."""

import pytest

from nexus.app import App
from nexus.extract.recording import Recording, TimedChapter
from nexus.media import submit
from nexus.media.workbench import Tools
from tests.integration.videos.reading import (
    SAID,
    failure_of,
    player_page,
    read_video,
    recording_of,
    revision_source,
    text_of,
)
from tests.kit.media import history_of, new_media, row_of
from tests.kit.servers.video_sites import VideoSites, json_answer, vtt
from tests.kit.servers.web_pages import Answer
from tests.kit.users import new_user
from tests.kit.work import extract_item

# Vimeo

VIMEO = "https://vimeo.com/76979871"
CONFIG = "player.vimeo.com/video/76979871/config"
VIMEO_OEMBED = {
    "title": "On tides",
    "author_name": "A. Mariner",
    "provider_name": "Vimeo",
    "duration": 62,
    "upload_date": "2026-01-31 08:00:00",
    "thumbnail_url": "https://i.vimeocdn.com/video/1.jpg",
    "html": '<iframe src="https://player.vimeo.com/video/76979871?app_id=1"></iframe>',
}


def vimeo_config(*tracks: tuple[str, str, str]) -> Answer:
    given = [
        {"lang": lang, "kind": kind, "url": f"/texttrack/{name}.vtt?token=x"} for lang, kind, name in tracks
    ]
    return json_answer(
        {
            "video": {"id": 76979871, "title": "On tides", "duration": 62, "owner": {"name": "A. Mariner"}},
            "request": {"text_tracks": given},
            "embed": {"chapters": [{"timecode": 0, "title": "Ebb"}, {"timecode": 31, "title": "Flood"}]},
        }
    )


def serve_vimeo(sites: VideoSites, *tracks: tuple[str, str, str]) -> None:
    sites["vimeo.com/api/oembed.json"] = json_answer(VIMEO_OEMBED)
    sites[CONFIG] = vimeo_config(*tracks)
    for _, _, name in tracks:
        sites[f"player.vimeo.com/texttrack/{name}.vtt"] = vtt(f"From {name}.")


def test_the_captions_of_a_vimeo_video_become_its_text(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    serve_vimeo(video_sites, ("en-x-autogen", "captions", "auto"), ("en", "captions", "human"))
    media_id = read_video(app, tools, VIMEO)
    assert "From human." in text_of(app, media_id)
    assert revision_source(app, media_id) == "Captions from Vimeo"
    assert recording_of(app, media_id) == Recording(
        title="On tides",
        author="A. Mariner",
        site="Vimeo",
        published="2026-01-31",
        seconds=62.0,
        picture_url="https://i.vimeocdn.com/video/1.jpg",
        embed_url="https://player.vimeo.com/video/76979871?app_id=1",
        chapters=(TimedChapter(0.0, "Ebb"), TimedChapter(31.0, "Flood")),
    )


def test_automatic_captions_of_vimeo_are_said_to_be_automatic(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    serve_vimeo(video_sites, ("de", "subtitles", "german"), ("en-x-autogen", "captions", "auto"))
    media_id = read_video(app, tools, VIMEO)
    assert "From auto." in text_of(app, media_id)
    assert revision_source(app, media_id) == "Captions from Vimeo, automatic"


def test_captions_of_vimeo_that_are_lost_are_replaced_by_others(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    serve_vimeo(video_sites, ("en", "captions", "lost"), ("fr", "captions", "french"))
    del video_sites["player.vimeo.com/texttrack/lost.vtt"]
    assert "From french." in text_of(app, read_video(app, tools, VIMEO))


def test_an_unlisted_vimeo_video_is_asked_for_with_its_key(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    serve_vimeo(video_sites, ("en", "captions", "human"))
    read_video(app, tools, f"{VIMEO}/0123456789")
    assert f"{CONFIG}?h=0123456789" in [one.place for one in video_sites.asked]


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (Answer(b"", status=403), "E_TRANSCRIPT_UNAVAILABLE"),
        (Answer(b"", status=404), "E_VIDEO_UNAVAILABLE"),
        (Answer(b"<html>", "text/html"), "E_TRANSCRIPT_UNAVAILABLE"),
        (json_answer({"video": []}), "E_TRANSCRIPT_UNAVAILABLE"),
        (vimeo_config(), "E_TRANSCRIPT_UNAVAILABLE"),
        (
            json_answer({"video": {"id": 1}, "request": {"text_tracks": [7, {"url": 7}, None]}}),
            "E_TRANSCRIPT_UNAVAILABLE",
        ),
    ],
)
def test_a_vimeo_video_without_captions_can_only_be_played(
    app: App, tools: Tools, video_sites: VideoSites, config: Answer, code: str
) -> None:
    serve_vimeo(video_sites)
    video_sites[CONFIG] = config
    media_id = read_video(app, tools, VIMEO)
    assert failure_of(app, media_id) == ("transcribe", code)
    assert row_of(app.sessions, media_id).title == "On tides"


def test_a_block_by_vimeo_is_a_wait(app: App, tools: Tools, video_sites: VideoSites) -> None:
    serve_vimeo(video_sites)
    video_sites[CONFIG] = Answer(b"", status=429)
    media_id = read_video(app, tools, VIMEO)
    last = history_of(app.sessions, media_id)[-1]
    assert (last.event, last.error_code) == ("release", "E_PROVIDER_BLOCKED")


# PeerTube

UUID_ = "9c9de5e8-0a1e-484a-b099-e80766180a6d"
TUBE = "tube.example"
API = f"{TUBE}/api/v1/videos/{UUID_}"


def serve_peertube(sites: VideoSites, video_id: str = UUID_) -> None:
    api = f"{TUBE}/api/v1/videos/{video_id}"
    sites[api] = json_answer(
        {
            "uuid": UUID_,
            "name": "On tides",
            "description": "About *tides*.",
            "duration": 62,
            "publishedAt": "2026-01-31T08:00:00.000Z",
            "previewPath": "/lazy-static/previews/1.jpg",
            "embedPath": f"/videos/embed/{UUID_}",
            "channel": {"displayName": "A. Mariner"},
            "language": {"id": "en", "label": "English"},
            "files": [
                {"size": 9000, "fileUrl": f"https://{TUBE}/static/720.mp4"},
                {"size": 1000, "fileUrl": f"https://{TUBE}/static/240.mp4"},
            ],
        }
    )
    sites[f"{api}/captions"] = json_answer(
        {
            "total": 2,
            "data": [
                {
                    "language": {"id": "en"},
                    "automaticallyGenerated": True,
                    "captionPath": "/lazy-static/auto.vtt",
                },
                {
                    "language": {"id": "en"},
                    "automaticallyGenerated": False,
                    "captionPath": "/lazy-static/human.vtt",
                },
            ],
        }
    )
    sites[f"{api}/chapters"] = json_answer(
        {"chapters": [{"timecode": 0, "title": "Ebb"}, {"timecode": 9, "title": "Flood"}]}
    )
    sites[f"{TUBE}/lazy-static/human.vtt"] = vtt("Written by hand.")
    sites[f"{TUBE}/lazy-static/auto.vtt"] = vtt("Heard by a machine.")


@pytest.mark.parametrize("path", [f"/w/{UUID_}", f"/videos/watch/{UUID_}", "/w/kkGMgK9ZtnKfYAgnEtQxbv"])
def test_the_captions_of_a_peertube_video_become_its_text(
    app: App, tools: Tools, video_sites: VideoSites, path: str
) -> None:
    serve_peertube(video_sites, path.rpartition("/")[2])
    media_id = read_video(app, tools, f"https://{TUBE}{path}")
    assert "Written by hand." in text_of(app, media_id)
    row = row_of(app.sessions, media_id)
    assert (row.title, row.provider, row.provider_id) == ("On tides", "peertube", f"{UUID_}@{TUBE}")
    found = recording_of(app, media_id)
    assert found is not None
    assert (found.author, found.seconds, found.audio_url, found.audio_bytes) == (
        "A. Mariner",
        62.0,
        f"https://{TUBE}/static/240.mp4",
        1000,
    )
    assert found.picture_url == f"https://{TUBE}/lazy-static/previews/1.jpg"
    assert found.chapters == (TimedChapter(0.0, "Ebb"), TimedChapter(9.0, "Flood"))


def test_two_addresses_of_a_peertube_video_stay_two_items_with_one_id(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    serve_peertube(video_sites)
    one, other = (read_video(app, tools, f"https://{TUBE}/{path}/{UUID_}") for path in ("w", "videos/watch"))
    ids = [row_of(app.sessions, media_id).provider_id for media_id in (one, other)]
    assert ids == [f"{UUID_}@{TUBE}", None]
    assert text_of(app, one) == text_of(app, other)


def test_a_retry_asks_peertube_nothing_that_it_has_answered(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    serve_peertube(video_sites)
    for name in ("human", "auto"):
        del video_sites[f"{TUBE}/lazy-static/{name}.vtt"]
    user = new_user(app)
    media_id = new_media(app, user, url=f"https://{TUBE}/w/{UUID_}", kind="video")
    extract_item(tools, media_id)
    assert failure_of(app, media_id) == ("transcribe", "E_TRANSCRIPT_UNAVAILABLE")
    serve_peertube(video_sites)
    video_sites.asked.clear()
    submit.retry_failed_item(app.sessions, app.queue, media_id, user)
    extract_item(tools, media_id)
    assert "Written by hand." in text_of(app, media_id)
    assert video_sites.places() == [f"{TUBE}/lazy-static/human.vtt"]


@pytest.mark.parametrize(
    "answer", [Answer(b"", status=404), Answer(b"<p>"), json_answer({"uuid": "x"}), json_answer([])]
)
def test_a_page_with_the_address_of_a_peertube_video_may_be_another(
    app: App, tools: Tools, video_sites: VideoSites, answer: Answer
) -> None:
    video_sites[API] = answer
    video_sites[f"{TUBE}/w/{UUID_}"] = Answer(player_page('<track src="/t.vtt" srclang="en">'))
    video_sites[f"{TUBE}/t.vtt"] = vtt()
    media_id = read_video(app, tools, f"https://{TUBE}/w/{UUID_}")
    assert SAID in text_of(app, media_id)
    assert row_of(app.sessions, media_id).provider is None
