"""Recordings over HTTP: passed on whole or in part, from good sites and bad ones, to those who may read the item."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import pytest
from sqlalchemy import bindparam, update

from nexus.app import App, build
from nexus.db.recordings import recordings
from nexus.db.session import Statement
from nexus.libraries.access import Role
from tests.kit.http import Caller, Site, problem
from tests.kit.media import share_media
from tests.kit.recordings import about, add_recording, tone, transcript
from tests.kit.run_storage import run_prefix
from tests.kit.servers.hostile_site import Hostile, Talk, answer, redirect
from tests.kit.servers.sound_site import Published, SoundSite
from tests.kit.settings import make_settings
from tests.kit.waiting import eventually

SOUND = tone(3)
_COPY = Statement(
    update(recordings)
    .where(recordings.c.media_id == bindparam("media_id"))
    .values(audio_path=bindparam("path"), audio_sha256=bindparam("sha256"))
)


@pytest.fixture
def sounds() -> Iterator[SoundSite]:
    with SoundSite() as running:
        running["/talk.wav"] = Published(SOUND)
        yield running


@pytest.fixture
def app(sounds: SoundSite, hostile_site: Hostile, sqlite_url: str, tmp_path: Path) -> Iterator[App]:
    """May fetch from the sites of this test."""
    allowed = [sounds.place, hostile_site.pair]
    built = build(make_settings(sqlite_url, tmp_path, fetch_allow=allowed, fetch_delay_seconds=0))
    yield built
    built.close()


def recording(app: App, user: UUID, url: str | None, **more: object) -> UUID:
    return add_recording(app, user, about(url, **more), transcript())


def ask(caller: httpx2.Client, media_id: UUID, span: str | None = None) -> httpx2.Response:
    return caller.get(f"/media/{media_id}/sound", headers={} if span is None else {"Range": span})


def test_a_recording_is_passed_on_whole(app: App, me: Caller, sounds: SoundSite) -> None:
    found = ask(me, recording(app, me.user, sounds.url("/talk.wav")))
    assert (found.status_code, found.content) == (200, SOUND)
    assert found.headers["content-type"] == "audio/wav"
    assert found.headers["content-length"] == str(len(SOUND))
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["cache-control"] == "no-store"
    assert found.headers["content-disposition"] == "inline"
    assert "sandbox" in found.headers["content-security-policy"]
    assert sounds.asked == [("/talk.wav", None)]


@pytest.mark.parametrize(
    ("span", "first", "last"),
    [
        ("bytes=0-", 0, len(SOUND) - 1),
        ("bytes=100-199", 100, 199),
        ("bytes=-50", len(SOUND) - 50, len(SOUND) - 1),
        (f"bytes=40-{len(SOUND) * 2}", 40, len(SOUND) - 1),
    ],
)
def test_a_part_is_asked_of_the_site_and_passed_on(
    app: App, me: Caller, sounds: SoundSite, span: str, first: int, last: int
) -> None:
    found = ask(me, recording(app, me.user, sounds.url("/talk.wav")), span)
    assert (found.status_code, found.content) == (206, SOUND[first : last + 1])
    assert found.headers["content-range"] == f"bytes {first}-{last}/{len(SOUND)}"
    assert sounds.asked == [("/talk.wav", span)]


def test_a_part_that_does_not_exist_is_refused(app: App, me: Caller, sounds: SoundSite) -> None:
    found = ask(me, recording(app, me.user, sounds.url("/talk.wav")), "bytes=99999999-")
    assert (found.status_code, found.content) == (416, b"")
    assert found.headers["content-range"] == f"bytes */{len(SOUND)}"


def test_a_site_without_parts_is_passed_on_whole(app: App, me: Caller, sounds: SoundSite) -> None:
    sounds["/simple.wav"] = Published(SOUND, takes_ranges=False)
    found = ask(me, recording(app, me.user, sounds.url("/simple.wav")), "bytes=100-")
    assert (found.status_code, found.content) == (200, SOUND)
    assert "content-range" not in found.headers


@pytest.mark.parametrize("span", ["bytes=0-1,5-6", "lines=1-2", "bytes=9-2", "bytes=x-"])
def test_a_range_that_nobody_understands_is_left_out(
    app: App, me: Caller, sounds: SoundSite, span: str
) -> None:
    assert ask(me, recording(app, me.user, sounds.url("/talk.wav")), span).status_code == 200
    assert sounds.asked[-1][1] is None


def test_nobody_else_hears_it(app: App, me: Caller, you: Caller, site: Site, sounds: SoundSite) -> None:
    media_id = recording(app, me.user, sounds.url("/talk.wav"))
    assert problem(ask(you, media_id)) == (404, "E_NOT_FOUND")
    assert problem(ask(me, uuid4())) == (404, "E_NOT_FOUND")
    assert problem(ask(site.anyone(), media_id)) == (401, "E_UNAUTHORIZED")
    assert sounds.asked == []
    share_media(app, me.user, media_id, (you.user, Role.MEMBER))
    assert ask(you, media_id).content == SOUND


def test_a_video_without_a_file_has_nothing_to_pass_on(app: App, me: Caller) -> None:
    assert problem(ask(me, recording(app, me.user, None))) == (404, "E_NOT_FOUND")


@pytest.mark.parametrize(
    ("said", "known", "name", "passed_on"),
    [
        ("audio/mpeg", None, "/a", "audio/mpeg"),
        ("Video/MP4; codecs=x", None, "/a", "video/mp4"),
        ("application/ogg", None, "/a", "audio/ogg"),
        ("application/octet-stream", "audio/mpeg", "/a", "audio/mpeg"),
        ("application/octet-stream", None, "/a.mp3?token=1", "audio/mpeg"),
        ("application/octet-stream", "text/html", "/a.m4a", "audio/mp4"),
        ("application/octet-stream", None, "/a", None),
        ("application/octet-stream", None, "/a.html", None),
        ("text/html", "audio/mpeg", "/a.mp3", None),
        ("image/svg+xml", "audio/mpeg", "/a.mp3", None),
        ("application/javascript", None, "/a.mp3", None),
        ('audio/"x', None, "/a.mp3", None),
    ],
)
def test_only_audio_and_video_are_passed_on(
    app: App,
    me: Caller,
    hostile_site: Hostile,
    said: str,
    known: str | None,
    name: str,
    passed_on: str | None,
) -> None:
    url = hostile_site.on(answer(b"<script>", content_type=said), name)
    found = ask(me, recording(app, me.user, url, audio_type=known))
    if passed_on is None:
        assert problem(found) == (502, "E_SOURCE_UNAVAILABLE")
    else:
        assert (found.status_code, found.headers["content-type"]) == (200, passed_on)


@pytest.mark.parametrize(
    "act",
    [
        answer(b"", status="404 Not Found"),
        answer(b"", status="410 Gone"),
        answer(b"", status="500 Broken"),
        answer(b"", status="429 Slow down"),
        redirect("http://127.0.0.1:1/"),
        redirect("http://169.254.169.254/latest/meta-data/"),
        redirect("http://[::1]:{port}/"),
        redirect("file:///etc/passwd"),
        answer(b"x", "Content-Encoding: gzip", content_type="audio/mpeg"),
        b"HTTP/1.1 206 Partial\r\nContent-Type: audio/mpeg\r\nContent-Range: bytes 5-9/10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: 99999999999999\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: nine\r\n\r\nhello",
        b"nonsense\r\n\r\n",
        b"",
    ],
)
def test_a_bad_site_is_a_clear_error(app: App, me: Caller, hostile_site: Hostile, act: bytes) -> None:
    media_id = recording(app, me.user, hostile_site.on(act, "/a.mp3"))
    found = ask(me, media_id, "bytes=0-")
    assert problem(found) == (502, "E_SOURCE_UNAVAILABLE")
    message = found.json()["error"]["message"]
    assert message.startswith("The recording can't be had at the moment. ")
    assert hostile_site.pair not in message


def test_a_site_that_sends_less_than_it_said_breaks_off(app: App, me: Caller, hostile_site: Hostile) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: 100000\r\n\r\n"
    media_id = recording(app, me.user, hostile_site.on(head + b"x" * 70_000, "/a.mp3"))
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(me, media_id)


def test_a_site_without_end_is_read_only_as_long_as_somebody_listens(
    app: App, me: Caller, hostile_site: Hostile
) -> None:
    def endless(talk: Talk) -> None:
        talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n")
        try:
            talk.forever(b"x" * 65536)
        finally:
            left.append(True)

    left: list[bool] = []
    media_id = recording(app, me.user, hostile_site.on(endless, "/a.mp3"))
    with me.stream("GET", f"/media/{media_id}/sound") as found:
        assert next(found.iter_bytes(1000)) == b"x" * 1000
    eventually(lambda: bool(left), "the connection to the site is closed")


def test_a_stored_copy_is_played_first(app: App, me: Caller, sounds: SoundSite) -> None:
    media_id = recording(app, me.user, sounds.url("/talk.wav"))
    path = f"{run_prefix()}media/{media_id}/sound-1.wav"
    app.files.storage.put(path, [SOUND[:1000], SOUND[1000:]], "audio/wav")
    with app.sessions.begin() as session:
        session.run(_COPY, media_id=media_id, path=path, sha256="0" * 64)
    assert ask(me, media_id).content == SOUND
    found = ask(me, media_id, "bytes=990-1009")
    assert (found.status_code, found.content) == (206, SOUND[990:1010])
    assert found.headers["content-range"] == f"bytes 990-1009/{len(SOUND)}"
    assert ask(me, media_id, "bytes=-5").content == SOUND[-5:]
    assert ask(me, media_id, f"bytes={len(SOUND)}-").status_code == 416
    assert sounds.asked == []
    app.files.storage.delete(path)
    assert ask(me, media_id).content == SOUND
    assert len(sounds.asked) == 1
