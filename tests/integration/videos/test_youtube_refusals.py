"""YouTube blocks addresses as a matter of course: that is a wait, which says so and uses up no try."""

from datetime import timedelta

import pytest

from nexus.app import App
from nexus.errors import ProviderBlocked
from nexus.media.workbench import Tools
from nexus.states.media import MediaStatus
from tests.integration.videos.reading import URL, read_video
from tests.kit.clock import SetClock
from tests.kit.media import history_of, new_media, row_of, status_of
from tests.kit.servers.video_sites import (
    CAPTCHA_PAGE,
    CONSENT_PAGE,
    PLAYER,
    TIMED_TEXT,
    VIDEO_ID,
    WATCH,
    WATCH_PAGE,
    YOUTUBE_OEMBED,
    AskedSite,
    VideoSites,
    YouTubeVideo,
    asks_for_consent,
)
from tests.kit.servers.web_pages import Answer
from tests.kit.work import extract_item

BOT = {"status": "LOGIN_REQUIRED", "reason": "Sign in to confirm you’re not a bot"}

BLOCKS = {
    "429": lambda sites: sites.update({WATCH: Answer(b"", status=429)}),
    "429 at the player": lambda sites: sites.update({PLAYER: Answer(b"", status=429)}),
    "429 at the captions": lambda sites: sites.update(
        {f"{TIMED_TEXT}?v={VIDEO_ID}&lang=en&kind=": Answer(b"", status=429)}
    ),
    "403": lambda sites: sites.update({PLAYER: Answer(b"", status=403)}),
    "captcha": lambda sites: sites.update({WATCH: Answer(CAPTCHA_PAGE.encode())}),
    "redirect to a captcha": lambda sites: sites.update(
        {
            WATCH: Answer(
                b"", status=302, headers={"Location": "https://www.google.com/sorry/index?continue=x"}
            ),
            "www.google.com/sorry/index": Answer(CAPTCHA_PAGE.encode(), status=429),
        }
    ),
    "consent that is never enough": lambda sites: sites.update({WATCH: Answer(CONSENT_PAGE.encode())}),
    "consent without a value": lambda sites: sites.update(
        {WATCH: Answer(b'<form action="https://consent.youtube.com/s"></form>')}
    ),
    "bot check": lambda sites: YouTubeVideo(playability=BOT).serve(sites),
    "bot check in plain letters": lambda sites: YouTubeVideo(
        playability={"status": "LOGIN_REQUIRED", "reason": "Sign in to confirm you're not a bot"}
    ).serve(sites),
}


@pytest.mark.parametrize("how", BLOCKS)
def test_a_block_is_a_wait_that_uses_up_no_try(
    app: App, tools: Tools, video_sites: VideoSites, how: str
) -> None:
    YouTubeVideo().serve(video_sites)
    BLOCKS[how](video_sites)
    media_id = read_video(app, tools)
    row = row_of(app.sessions, media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.PENDING
    assert row.tries == 0
    last = history_of(app.sessions, media_id)[-1]
    assert (last.event, last.error_code) == ("release", "E_PROVIDER_BLOCKED")
    assert timedelta(minutes=13) < row.run_after - app.sessions.clock() <= timedelta(minutes=15, seconds=1)
    assert row.title == "On tides", "it can be found"
    assert row.external_playback_url, "and played"


def test_waits_grow_up_to_a_day_and_begin_again_after_a_success(
    app: App, tools: Tools, video_sites: VideoSites, clock: SetClock
) -> None:
    YouTubeVideo().serve(video_sites)
    video_sites[WATCH] = Answer(b"", status=429)
    media_id = new_media(app, url=URL, kind="video")
    waits = []
    for _ in range(9):
        extract_item(tools, media_id)
        row = row_of(app.sessions, media_id)
        waits.append((row.run_after - app.sessions.clock()).total_seconds() / 60)
        assert row.tries == 0
        clock.time = row.run_after
    for wait, most in zip(waits, (15, 30, 60, 120, 240, 480, 960, 1440, 1440), strict=True):
        assert most * 0.875 <= wait <= most + 1
    video_sites[WATCH] = Answer(WATCH_PAGE.encode())
    extract_item(tools, media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    assert video_sites.places().count(YOUTUBE_OEMBED) == 1


def test_a_block_of_one_provider_keeps_nothing_from_another(
    app: App, tools: Tools, video_sites: VideoSites
) -> None:
    with pytest.raises(ProviderBlocked), tools.fetcher.asking("vimeo"):
        raise ProviderBlocked
    YouTubeVideo().serve(video_sites)
    assert status_of(app.sessions, read_video(app, tools)) is MediaStatus.READY_FOR_READING


def test_a_longer_wait_that_youtube_asks_for_is_kept(app: App, tools: Tools, video_sites: VideoSites) -> None:
    YouTubeVideo().serve(video_sites)
    video_sites[WATCH] = Answer(b"", status=429, headers={"Retry-After": "3600"})
    media_id = read_video(app, tools)
    assert row_of(app.sessions, media_id).run_after - app.sessions.clock() >= timedelta(minutes=52)


def test_while_youtube_blocks_nobody_asks_it_and_then_one(
    app: App, tools: Tools, video_sites: VideoSites, clock: SetClock
) -> None:
    YouTubeVideo().serve(video_sites)
    video_sites[WATCH] = Answer(b"", status=429)
    first = read_video(app, tools)
    others = [read_video(app, tools, f"https://youtu.be/{VIDEO_ID[:-1]}{letter}") for letter in "abc"]
    end = row_of(app.sessions, first).run_after
    for media_id in others:
        row, last = row_of(app.sessions, media_id), history_of(app.sessions, media_id)[-1]
        assert (last.event, last.error_code, row.tries) == ("release", "E_PROVIDER_BLOCKED", 0)
        assert row.run_after - end < timedelta(seconds=1)
        assert row.external_playback_url, "and it can be played meanwhile"
    assert video_sites.places().count(WATCH) == 1
    clock.time = max(row_of(app.sessions, one).run_after for one in (first, *others))
    for media_id in (*others, first):
        extract_item(tools, media_id)
    assert video_sites.places().count(WATCH) == 2, "one finds out that it still does"
    ends = {row_of(app.sessions, one).run_after.replace(microsecond=0) for one in (first, *others)}
    assert timedelta(minutes=26) < min(ends) - clock.time
    assert max(ends) - min(ends) <= timedelta(seconds=1)
    video_sites[WATCH] = Answer(WATCH_PAGE.encode())
    clock.forward(minutes=31)
    for media_id in (*others, first):
        extract_item(tools, media_id)
        assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING


def test_consent_is_given_with_a_cookie(app: App, tools: Tools, video_sites: VideoSites) -> None:
    YouTubeVideo().serve(video_sites)
    video_sites[WATCH] = asks_for_consent
    media_id = read_video(app, tools)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    assert video_sites.places().count(WATCH) == 2


def test_nothing_but_youtube_gets_its_cookie(app: App, tools: Tools, video_sites: VideoSites) -> None:
    YouTubeVideo().serve(video_sites)

    def act(asked: AskedSite) -> Answer:
        if "cookie" in asked.headers:
            return Answer(b"", status=302, headers={"Location": "https://pages.example/elsewhere"})
        return Answer(CONSENT_PAGE.encode())

    video_sites[WATCH] = act
    video_sites["pages.example/elsewhere"] = Answer(WATCH_PAGE.encode())
    read_video(app, tools)
    (elsewhere,) = (one for one in video_sites.asked if one.place == "pages.example/elsewhere")
    assert "cookie" not in elsewhere.headers
