"""People who wait for a transcription in a terminal see which minute it has reached."""

from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.cli.waiting_for_items import WaitForItems
from nexus.extract import Extraction
from nexus.media import lifecycle
from nexus.media.queries import View
from nexus.media.recordings import speech
from nexus.media.texts import Found
from tests.kit.media import new_media

MINUTE = 60_000


@pytest.mark.wall_clock
def test_the_minute_that_is_transcribed_is_told_as_it_moves_on(app: App) -> None:
    viewer = uuid4()
    media_id = new_media(app, viewer, "https://example.com/talk", "video")
    with app.sessions.begin() as session:
        row = lifecycle.worker_start_attempt(session, media_id)
    assert row is not None
    attempt = row.processing_attempts
    told: list[tuple[str | None, str]] = []

    def tell(_: UUID, view: View | None, minute: str) -> None:
        told.append((None if view is None else view.row.processing_status, minute))
        done = len(told) - 1
        with app.sessions.begin() as session:
            if done < 2:
                reached = (done * 11 * MINUTE, 57 * MINUTE + 1)
                speech.tell_speech_progress(session, speech.Attempt(media_id, attempt), *reached)
            else:
                found = Found(Extraction.plain("A talk", "All that was said."), "test")
                lifecycle.mark_ready_for_reading(session, media_id, attempt, found)

    WaitForItems(app, viewer, [media_id], tell).run()
    assert told == [
        ("extracting", ""),
        ("extracting", "minute 1 of 58"),
        ("extracting", "minute 12 of 58"),
        ("ready_for_reading", ""),
    ]
