"""The page of a recording: its notes."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import httpx2
import pytest
from sqlalchemy import text

from nexus.app import App
from tests.kit.http import Caller, Site
from tests.kit.recordings import about, add_recording
from tests.kit.sign_ins import cookie_of

SOUND = "https://harbour.example/ferry.mp3"

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


def noted(app: App, me: Caller, notes: str) -> UUID:
    return add_recording(app, me.user, about(SOUND, notes=notes))


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
