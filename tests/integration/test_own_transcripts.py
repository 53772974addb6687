"""The transcript of a video that Nexus finds none for: brought by a user, with its times, and theirs alone."""

from __future__ import annotations

from uuid import UUID

import pytest

from nexus.app import App
from nexus.errors import TranscriptUnavailable
from nexus.media import lifecycle
from nexus.media.recordings.own_transcripts import MOST_TRANSCRIPT
from nexus.states.media import Stage
from tests.kit.http import Caller, Site, data, problem
from tests.kit.sign_ins import cookie_of
from tests.kit.transcripts import PODCAST_JSON, SRT, VTT

URL = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"
SAID = "Ann: alpha bravo.\n\nBo: charlie & delta.\n\nAnn: echo foxtrot."


@pytest.fixture
def silent(app: App, me: Caller) -> UUID:
    """A video whose transcription failed."""
    media_id = me.add(URL, "video")
    with app.sessions.begin() as session:
        claim = lifecycle.worker_start_attempt(session, media_id)
        assert claim is not None
        error = TranscriptUnavailable()
        lifecycle.mark_failed(
            session, media_id, Stage.TRANSCRIBE, error.code, error.message, claim.processing_attempts
        )
    return media_id


def bring(
    caller: Caller, media_id: UUID, text: str | bytes, kind: str = "text/vtt", name: str = ""
) -> object:
    content = text.encode() if isinstance(text, str) else text
    address = f"/media/{media_id}/transcript" + (f"?filename={name}" if name else "")
    return data(caller.put(address, content=content, headers={"Content-Type": kind}))


def words(caller: Caller, media_id: UUID) -> str:
    return "\n\n".join(piece["text"] for piece in data(caller.get(f"/media/{media_id}/fragments"))["items"])


def test_a_transcript_is_read_by_its_user_alone(site: Site, me: Caller, silent: UUID) -> None:
    other = site.caller()
    other.add(URL, "video")
    assert bring(me, silent, VTT) == {"media_id": str(silent), "revision": 1}
    item = data(me.get(f"/media/{silent}"))
    assert (item["revision"], item["capabilities"]["can_read"], item["capabilities"]["can_play"]) == (
        1,
        True,
        True,
    )
    assert words(me, silent) == SAID
    (version,) = data(me.get(f"/media/{silent}/revisions"))["items"]
    assert (version["origin"], version["extractor"]) == ("entered", "entered by hand")
    assert words(other, silent) == ""
    assert data(other.get(f"/media/{silent}"))["capabilities"]["can_read"] is False
    assert problem(other.get(f"/media/{silent}/revisions/1")) == (404, "E_NOT_FOUND")
    assert problem(site.caller().put(f"/media/{silent}/transcript", content=VTT)) == (404, "E_NOT_FOUND")


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        (SRT, "application/x-subrip", ""),
        (SRT, "application/octet-stream", "a.srt"),
        (PODCAST_JSON, "application/json", ""),
        ("One paragraph.\n\nAnother.", "text/plain; charset=utf-8", "a.txt"),
        ("0:01\nOne.\n0:04\nTwo.\n1:00\nThree.", "text/plain", ""),
        (VTT.encode("utf-16"), "text/vtt", ""),
    ],
)
def test_every_format_can_be_brought(
    me: Caller, silent: UUID, text: str | bytes, kind: str, name: str
) -> None:
    assert bring(me, silent, text, kind, name) == {"media_id": str(silent), "revision": 1}
    assert words(me, silent)


def test_the_same_again_is_the_same_version_and_another_replaces_it(me: Caller, silent: UUID) -> None:
    assert [bring(me, silent, text)["revision"] for text in (VTT, VTT, SRT)] == [1, 1, 2]  # type: ignore[index]
    assert words(me, silent) == "alpha bravo. charlie & delta.\n\necho foxtrot."


@pytest.mark.parametrize(
    "body", [b"", b" \n", b"WEBVTT\n\n", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), b"{}", b"[]"]
)
def test_what_can_not_be_read_is_refused_and_changes_nothing(me: Caller, silent: UUID, body: bytes) -> None:
    refused = me.put(f"/media/{silent}/transcript", content=body, headers={"Content-Type": "text/vtt"})
    assert problem(refused) == (400, "E_INVALID_FILE_TYPE")
    assert data(me.get(f"/media/{silent}/revisions"))["items"] == []


def test_a_transcript_that_is_too_large_is_refused(me: Caller, silent: UUID) -> None:
    refused = me.put(f"/media/{silent}/transcript", content=b"x" * (MOST_TRANSCRIPT + 1))
    assert problem(refused)[0] == 413


def test_only_videos_and_episodes_take_a_transcript(me: Caller) -> None:
    refused = me.put(f"/media/{me.add()}/transcript", content=VTT)
    assert problem(refused) == (400, "E_INVALID_REQUEST")


def test_the_page_of_a_failed_video_takes_a_file_or_a_pasted_text(
    app: App, site: Site, me: Caller, silent: UUID
) -> None:
    browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)
    address = f"/items/{silent}"
    shown = browser.get(address).text
    assert "Add its transcript" in shown
    assert "Paste the text of the page" not in shown
    wrong = browser.post(f"{address}/transcript", files={"file": ("a.vtt", b"<b>nothing")})
    assert wrong.status_code == 400
    assert "This is not a transcript that Nexus can read." in wrong.text
    empty = browser.post(f"{address}/transcript", data={"text": " "}, headers={"HX-Request": "true"})
    assert (empty.status_code, 'id="bring-transcript"' in empty.text) == (400, True)
    done = browser.post(f"{address}/transcript", files={"file": ("a.vtt", VTT.encode())})
    assert (done.status_code, done.headers["location"]) == (303, address)
    shown = browser.get(address).text
    assert "echo foxtrot." in shown
    assert "Entered by hand" in shown
    pasted = {"data": {"text": "0:01\nOne.\n0:04\nTwo.\n1:00\nThree."}, "files": {"file": ("", b"")}}
    by_script = browser.post(f"{address}/transcript", **pasted, headers={"HX-Request": "true"})  # type: ignore[arg-type]
    assert (by_script.status_code, by_script.headers["hx-redirect"]) == (204, address)
    assert "Three." in browser.get(address).text
