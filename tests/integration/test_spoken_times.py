"""Where people meet the text of a recording they learn when it is spoken: fragments, versions, search, stories."""

from __future__ import annotations

from uuid import UUID

import pytest

from nexus.app import App
from nexus.extract import TimeSpan
from nexus.media.recordings.spoken import read_spans, spoken_at
from nexus.web.links import moment_address
from tests.kit.http import Caller, Site, data
from tests.kit.sign_ins import cookie_of
from tests.kit.transcripts import VTT

URL = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
TIMES = [[5, 17, 1000, 2000], [23, 39, 2500, 4000], [46, 59, 64_000, 66_000]]


@pytest.fixture
def talk(me: Caller) -> UUID:
    """A video with a transcript."""
    media_id = me.add(URL, "video")
    data(me.put(f"/media/{media_id}/transcript", content=VTT))
    return media_id


def test_fragments_and_versions_carry_times(me: Caller, talk: UUID) -> None:
    (piece,) = data(me.get(f"/media/{talk}/fragments"))["items"]
    assert piece["times"] == TIMES
    spoken = [piece["text"][start:end] for start, end, _, _ in piece["times"]]
    assert spoken == ["alpha bravo.", "charlie & delta.", "echo foxtrot."]
    assert data(me.get(f"/media/{talk}/revisions/1"))["items"][0]["times"] == TIMES


def test_texts_without_times_do_not_speak_of_them(me: Caller, talk: UUID) -> None:
    data(me.put(f"/media/{talk}/transcript", content="Just a paragraph."))
    page = me.add()
    data(me.post(f"/media/{page}/text", json={"text": "Just an article."}))
    for media_id in (talk, page):
        (piece,) = data(me.get(f"/media/{media_id}/fragments"))["items"]
        assert "times" not in piece


def test_a_hit_says_when_it_is_spoken(me: Caller, talk: UUID) -> None:
    page = me.add()
    data(me.post(f"/media/{page}/text", json={"text": "An article about the foxtrot."}))
    found = data(me.get("/search?q=foxtrot"))["items"]
    passages = {item["media"]["id"]: item["passages"][0] for item in found}
    assert passages[str(talk)]["starts_ms"] == 64_000
    assert passages[str(talk)]["url"].endswith("&at=64#mark")
    assert "starts_ms" not in passages[str(page)]
    assert "at=" not in passages[str(page)]["url"]


def test_a_hit_on_a_page_leads_to_its_moment(app: App, site: Site, me: Caller, talk: UUID) -> None:
    browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)
    page = browser.get("/find?q=delta")
    assert "&amp;at=2.5#mark" in page.text


def test_a_moment_is_that_of_the_sentence_or_of_the_one_before() -> None:
    spans = (TimeSpan(5, 10, 1000, 1500), TimeSpan(20, 30, 61_250, 65_000))
    assert [spoken_at(spans, place) for place in (0, 5, 9, 15, 20, 99)] == [
        1000, 1000, 1000, 1000, 61_250, 61_250,
    ]  # fmt: skip
    assert spoken_at((), 3) is None
    assert read_spans(None) == ()
    assert read_spans("[[5, 10, 1000, 1500]]") == spans[:1]
    assert moment_address(UUID(int=7), 61_250).endswith("?at=61.25")


def test_the_quotes_of_a_story_say_when_they_are_spoken(app: App, site: Site, me: Caller) -> None:
    said = [
        "The council of Springfield voted for the new bridge on Monday.",
        "Mayor Ann Lee said that the bridge would cost 20 million dollars.",
        "Work on the bridge begins in March and takes two years.",
    ]
    media_id = me.add(URL, "video")
    lines = [f"1:0{n}:0{n}.000 --> 1:0{n}:09.000\n<v Bo>{one}\n" for n, one in enumerate(said, 1)]
    data(me.put(f"/media/{media_id}/transcript", content="WEBVTT\n\n" + "\n".join(lines)))
    job_id = me.post("/api/ingestion-jobs", json={"mediaId": str(media_id)}).json()["job"]["id"]
    story_id = me.post(f"/api/ingestion-jobs/{job_id}/generate").json()["job"]["storyId"]
    story = me.get(f"/api/stories/{story_id}").json()["story"]
    assert story["moments"]
    for moment in story["moments"]:
        quoted = story["articleText"][moment["start"] :]
        number = next(n for n, one in enumerate(said, 1) if one[:20] in quoted[:24])
        assert moment["startsMs"] == 3_600_000 + number * 61_000
        assert moment["url"] == f"/items/{media_id}?at={3600 + number * 61}"
    browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)
    page = browser.get(f"/admin/stories/{story_id}").text
    assert f'href="/items/{media_id}?at=3661">at 1:01:01</a>' in page
    for export in (
        me.get(f"/api/stories/{story_id}/export?format=json"),
        browser.get(f"/admin/stories/{story_id}/export?format=json"),
    ):
        assert export.json()["moments"] == story["moments"]


def test_the_quotes_of_an_article_have_no_times(me: Caller) -> None:
    page = me.add()
    text = "The council of Springfield voted for the new bridge on Monday. " * 3
    data(me.post(f"/media/{page}/text", json={"title": "A bridge", "text": text}))
    job_id = me.post("/api/ingestion-jobs", json={"mediaId": str(page)}).json()["job"]["id"]
    story_id = me.post(f"/api/ingestion-jobs/{job_id}/generate").json()["job"]["storyId"]
    assert "moments" not in me.get(f"/api/stories/{story_id}").json()["story"]
