"""The page of a recording: its notes, what can be done if it has no transcript, and how far Nexus has heard it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import text

from nexus.app import App
from nexus.errors import ProviderBlocked
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.extract.recording import Recording
from nexus.media.recordings import speech
from nexus.media.recordings.facts import keep_recording
from nexus.media.recordings.speech import Attempt
from nexus.settings import Settings
from nexus.states.media import Kind
from nexus.transcribe.speech import MissingSpeech
from tests.kit.clock import SetClock
from tests.kit.commands import Terminal
from tests.kit.http import Caller, Site, data
from tests.kit.media import new_media, start_extraction
from tests.kit.recordings import about, add_recording
from tests.kit.sign_ins import cookie_of
from tests.kit.speech import CountingEars
from tests.kit.work import extract_item

SOUND = "https://harbour.example/ferry.mp3"
HERE = "Transcribe here"

See = Callable[[UUID], str]


@pytest.fixture
def see(app: App, site: Site, me: Caller) -> See:
    """The page of an item, as its owner gets it."""

    def seen(media_id: UUID) -> str:
        browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)
        answer: httpx2.Response = browser.get(f"/items/{media_id}")
        assert answer.status_code == 200
        return answer.text

    return seen


@pytest.fixture
def ears(app: App) -> CountingEars:
    """A speech model that is installed."""
    model = CountingEars()
    app.tools.ears.model = model
    return model


def noted(app: App, me: Caller, notes: str) -> UUID:
    return add_recording(app, me.user, about(SOUND, notes=notes))


def test_a_recording_without_a_transcript_offers_to_transcribe_it(
    app: App, me: Caller, see: See, ears: CountingEars
) -> None:
    page = see(add_recording(app, me.user, about(SOUND)))
    assert HERE in page
    assert "Add its transcript" in page
    assert 'id="player"' in page


def test_the_button_that_transcribes_is_a_retry(
    app: App, site: Site, me: Caller, see: See, ears: CountingEars
) -> None:
    media_id = add_recording(app, me.user, about(SOUND))
    assert f'action="/items/{media_id}/retry"' in see(media_id)
    browser = site.anyone(Cookie=cookie_of(app.sessions, me.user), Origin=site.url)
    browser.post(f"/items/{media_id}/retry", data={"back": "item"})
    assert data(me.get(f"/media/{media_id}"))["processing_status"] == "pending"


def test_without_a_speech_model_a_recording_says_what_to_run(
    app: App, me: Caller, see: See, ears: CountingEars
) -> None:
    ears.missing = MissingSpeech("The model that transcribes speech is not installed.", "make speech")
    page = see(add_recording(app, me.user, about(SOUND)))
    assert HERE not in page
    for said in ("is not installed", "make speech", "nexus[speech]", "NEXUS_SPEECH=openai"):
        assert said in page


def test_a_nexus_that_transcribes_nothing_says_so(app: App, me: Caller, see: See) -> None:
    app.tools.ears.model = None
    page = see(add_recording(app, me.user, about(SOUND)))
    assert HERE not in page
    assert "NEXUS_SPEECH is off" in page


def test_a_recording_in_a_language_that_the_model_does_not_know_says_so(
    app: App, me: Caller, see: See, ears: CountingEars
) -> None:
    page = see(add_recording(app, me.user, about(SOUND, language="tlh")))
    assert HERE not in page
    assert "does not know its language" in page


def test_a_video_whose_sound_nexus_cannot_get_offers_no_transcription(
    app: App, me: Caller, see: See, ears: CountingEars
) -> None:
    page = see(add_recording(app, me.user, about(None), url="https://www.youtube.com/watch?v=dQw4w9WgXcQ"))
    assert HERE not in page
    assert "make speech" not in page
    assert "Add its transcript" in page


def test_the_notes_of_an_episode_are_on_its_page(app: App, me: Caller, see: See) -> None:
    page = see(noted(app, me, '<p>With <a href="https://harbour.example/ann">Ann</a> &amp; the boats.</p>'))
    assert "Show notes" in page
    assert '<p>With <a href="https://harbour.example/ann">Ann</a> &amp; the boats.</p>' in page


def test_long_notes_are_collapsed(app: App, me: Caller, see: See) -> None:
    summary = '<summary><h2 id="notes-title">'
    assert summary in see(noted(app, me, f"<p>{'Many words about boats. ' * 40}</p>"))
    assert summary not in see(noted(app, me, "<p>A few words.</p>"))


def test_pictures_in_notes_are_never_loaded_from_their_site(app: App, me: Caller, see: See) -> None:
    tracker = '<p><a href="https://t.example/a"><img src="https://t.example/1.gif"></a></p>'
    page = see(noted(app, me, f'<p>Look: <img src="https://t.example/p.jpg" alt="a ferry"></p>{tracker}'))
    assert "<p>Look: a ferry</p>" in page
    assert "t.example" not in page


def test_notes_do_not_share_ids_with_the_text(app: App, me: Caller, see: See) -> None:
    page = see(noted(app, me, '<p id="f0-x">Say id="f0-x" <a href="#f0-x">there</a>.</p>'))
    assert '<p>Say id="f0-x" <a>there</a>.</p>' in page


@pytest.mark.parametrize("notes", ["", "<p> </p>", '<p><img src="https://t.example/1.gif"></p>'])
def test_notes_without_words_are_not_announced(app: App, me: Caller, see: See, notes: str) -> None:
    assert "Show notes" not in see(noted(app, me, notes))


@pytest.mark.parametrize("notes", ["<script>alert(1)</script>", '<p onclick="x">a</p>', "<p>never closed"])
def test_notes_that_were_changed_in_the_database_are_checked_again(
    app: App, me: Caller, see: See, notes: str
) -> None:
    media_id = noted(app, me, "<p>Fine.</p>")
    with app.sessions.engine.begin() as connection:
        connection.execute(text("UPDATE recordings SET notes = :notes"), {"notes": notes})
    page = see(media_id)
    assert "Show notes" not in page
    assert notes not in page


def test_a_page_says_which_minute_is_being_transcribed(app: App, me: Caller, see: See) -> None:
    media_id = new_media(app, me.user, "https://harbour.example/talk", "video")
    number = start_extraction(app, media_id)
    assert "Transcribing: minute" not in see(media_id)
    with app.sessions.begin() as session:
        attempt = Attempt(media_id, number)
        speech.tell_speech_progress(session, attempt, done_ms=11 * 60_000 + 30_000, total_ms=58 * 60_000)
    page = see(media_id)
    assert "Transcribing: minute 12 of 58." in page
    assert '<progress max="100" value="20"' in page


def test_a_recording_that_failed_is_not_being_transcribed(
    app: App, me: Caller, see: See, ears: CountingEars
) -> None:
    media_id = add_recording(app, me.user, about(SOUND))
    with app.sessions.begin() as session:
        speech.tell_speech_progress(session, Attempt(media_id, 1), done_ms=60_000, total_ms=120_000)
    page = see(media_id)
    assert "Transcribing: minute" not in page
    assert HERE in page
    with app.sessions.begin() as session:
        speech.tell_speech_progress(session, Attempt(media_id, 1), done_ms=120_000, total_ms=120_000)
    page = see(media_id)
    assert "heard nobody speak" in page
    assert HERE not in page


class TestBlocked:
    """The site of a video refuses to answer this address."""

    @pytest.fixture
    def blocked(self, app: App, me: Caller) -> UUID:
        def extract(source: Source) -> Extraction:
            raise ProviderBlocked

        AVAILABLE_EXTRACTORS[Kind.VIDEO] = extract
        media_id = new_media(app, me.user, "https://www.youtube.com/watch?v=dQw4w9WgXcQ", "video")
        with app.sessions.begin() as session:
            keep_recording(session, media_id, Recording(title="On tides"))
        extract_item(app.tools, media_id)
        return media_id

    def test_its_page_says_until_when_it_waits_and_what_to_do(self, see: See, blocked: UUID) -> None:
        page = see(blocked)
        assert "youtube.com does not give Nexus its transcripts" in page
        assert "Nexus tries again at <time" in page
        assert "If you have its transcript, add it" in page
        assert "Add its transcript" in page.partition("</details>")[0]

    def test_the_api_says_whom_it_waits_for_and_why(
        self, app: App, me: Caller, clock: SetClock, blocked: UUID
    ) -> None:
        item = data(me.get(f"/media/{blocked}"))
        assert (item["processing_status"], item["waiting_for"]) == ("pending", "youtube.com")
        assert datetime.fromisoformat(item["waiting_until"]) > clock.time
        assert item["capabilities"]["can_play"]
        last = data(me.get(f"/media/{blocked}/history"))["items"][-1]
        assert last["error_code"] == "E_PROVIDER_BLOCKED"

    @pytest.mark.wall_clock
    def test_status_says_until_when_it_waits_and_what_to_do(
        self, me: Caller, settings: Settings, tmp_path: Path, blocked: UUID
    ) -> None:
        environment = {"NEXUS_DATABASE_URL": settings.database_url, "NEXUS_DATA_DIR": str(tmp_path)}
        ran = Terminal(tmp_path, environment).run("status", blocked, "--user", me.user)
        assert "youtube.com blocks this address at the moment. Nexus asks again at" in ran.out
        assert f"transcript {blocked} FILE" in ran.out
