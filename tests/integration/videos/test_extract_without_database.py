"""`nexus extract` reads videos as a worker does, with nothing to remember them in."""

from typing import Any

import pytest

from nexus.app import App
from nexus.cli.extract import read_source
from nexus.cli.loose_bench import Loose
from nexus.media.recordings.transcribing import Ears
from nexus.media.workbench import Tools
from tests.integration.videos.reading import SAID, URL, player_page
from tests.kit.servers.video_sites import WATCH, VideoSites, YouTubeVideo, vtt
from tests.kit.servers.web_pages import Answer
from tests.kit.speech import LIMITS

PAGE = "https://pages.example/talk"


@pytest.fixture
def bench(app: App, tools: Tools) -> Loose:
    return Loose(tools.fetcher, app.tools.sandbox, Ears(None, LIMITS), None)


def code_of(found: dict[str, Any]) -> str:
    code: str = found["error"]["code"]
    return code


def test_the_captions_of_a_video_are_its_text(bench: Loose, video_sites: VideoSites) -> None:
    YouTubeVideo().serve(video_sites)
    found = read_source(bench, URL, None)
    assert (found["title"], SAID in found["text"]) == ("On tides", True)
    assert found["metadata"]["source"] == "Captions from YouTube"


def test_a_block_is_told_by_its_code(bench: Loose, video_sites: VideoSites) -> None:
    video_sites[WATCH] = Answer(b"", status=429)
    assert code_of(read_source(bench, URL, None)) == "E_PROVIDER_BLOCKED"


def test_a_page_without_a_text_is_looked_at_for_a_player(bench: Loose, video_sites: VideoSites) -> None:
    video_sites["pages.example/talk"] = Answer(player_page('<track kind="captions" src="/t.vtt">'))
    assert code_of(read_source(bench, PAGE, None)) == "E_EMPTY_CONTENT"
    assert code_of(read_source(bench, PAGE, "video")) == "E_TRANSCRIPT_UNAVAILABLE"
    video_sites["pages.example/t.vtt"] = vtt()
    for kind in (None, "video"):
        assert read_source(bench, PAGE, kind)["text"] == SAID
    assert code_of(read_source(bench, PAGE, "web_article")) == "E_EMPTY_CONTENT"
