"""Recordings that are heard: piece by piece, each once, whatever happens in between."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.errors import TranscriptionCrashed
from nexus.extract import Hints
from nexus.libraries import access
from nexus.libraries.catalog import hold_media
from nexus.libraries.quota import Operation
from nexus.media import deletions, refresh
from nexus.media.lifecycle import retry_media
from nexus.media.recordings import speech
from nexus.media.recordings.own_transcripts import bring_transcript
from nexus.queue.local import LocalQueue
from nexus.settings import Settings
from nexus.states.media import MediaStatus
from nexus.transcribe.speech import MissingSpeech
from nexus.upkeep import clean
from nexus.upkeep.promises import PROMISES
from nexus.upkeep.promises.promise import Offender
from tests.kit.clock import SetClock
from tests.kit.media import events_of, everything_of, row_of, status_of
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.settings import make_settings
from tests.kit.speech import (
    LIMITS,
    CountingEars,
    file_of,
    hearing_tools,
    listens_to,
    new_video,
    pieces_of,
    recording_of,
    run_item,
    seconds_used,
    sounds_in_store,
    tone,
)
from tests.kit.transcripts import VTT
from tests.kit.work import refresh_item

SECONDS = 10
SOUND = file_of(tone(SECONDS))


@pytest.fixture
def settings(database_url: str, redis_url: str, tmp_path: Path, pages: Pages) -> Settings:
    return make_settings(
        database_url, tmp_path, redis_url=redis_url, fetch_allow=(pages.place,), backoff_seconds=0
    )


@pytest.fixture
def url(pages: Pages) -> str:
    pages["/sound"] = Answer(SOUND, "audio/flac")
    found = pages.url("/sound")
    listens_to(found)
    return found


def asked(pages: Pages) -> int:
    return sum(path == "/sound" for path, _ in pages.asked)


def broken_promises(app: App) -> list[str]:
    with app.sessions.read() as session:
        found: dict[str, list[Offender]] = {one.name: session.all(one.offenders, most=5) for one in PROMISES}
    return [name for name, rows in found.items() if rows]


def stops_after(model: CountingEars, pieces: int) -> None:
    """The model fails at the piece after these."""

    def meanwhile() -> None:
        if len(model.heard) == pieces:
            model.meanwhile = lambda: None
            raise TranscriptionCrashed

    model.meanwhile = meanwhile


def test_a_recording_becomes_the_text_of_its_pieces_with_their_times(app: App, url: str) -> None:
    model, media_id = CountingEars(), new_video(app)
    assert run_item(hearing_tools(app, model), media_id) == "readable"
    (text,) = everything_of(app.sessions, media_id).texts
    assert text.splitlines() == [f"{length} milliseconds" for length in model.heard]
    assert sum(model.heard) == SECONDS * 1000
    assert all(2000 <= length <= 4000 for length in model.heard[:-1])
    assert recording_of(app, media_id).seconds == SECONDS, "nobody else says how long it is"


def test_nothing_of_a_transcription_is_left_when_its_text_is_written(app: App, url: str) -> None:
    media_id = new_video(app)
    run_item(hearing_tools(app, CountingEars()), media_id)
    assert pieces_of(app, media_id) == []
    assert recording_of(app, media_id).audio_path is None
    assert sounds_in_store(app, media_id) == []
    assert broken_promises(app) == []


def test_a_retry_goes_on_with_the_next_piece_and_fetches_nothing_again(
    app: App, url: str, pages: Pages
) -> None:
    model, media_id = CountingEars(), new_video(app)
    tools = hearing_tools(app, model)
    stops_after(model, 2)
    assert run_item(tools, media_id) == "released"
    assert len(pieces_of(app, media_id)) == 2
    assert len(sounds_in_store(app, media_id)) == 1
    assert run_item(tools, media_id) == "readable"
    assert sum(model.heard) == SECONDS * 1000
    assert asked(pages) == 1


def test_the_sounds_of_one_user_do_not_fill_the_store(
    app: App, url: str, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What there is no copy of is fetched again."""
    monkeypatch.setattr(speech, "MOST_KEPT_SOUNDS", 1)
    model, user = CountingEars(), uuid4()
    tools, items = hearing_tools(app, model), [new_video(app, user) for _ in range(2)]
    for pieces, media_id in zip((1, 2), items, strict=True):
        stops_after(model, pieces)
        assert run_item(tools, media_id) == "released"
    assert [len(sounds_in_store(app, media_id)) for media_id in items] == [1, 0]
    assert [run_item(tools, media_id) for media_id in items] == ["readable", "readable"]
    assert sum(model.heard) == 2 * SECONDS * 1000
    assert asked(pages) == 3


def test_nobody_undoes_what_was_heard_for_others_with_a_transcript_of_their_own(
    app: App, url: str, pages: Pages
) -> None:
    model, media_id, other = CountingEars(), new_video(app), uuid4()
    tools = hearing_tools(app, model)
    stops_after(model, 2)
    assert run_item(tools, media_id) == "released"
    with app.sessions.begin() as session:
        hold_media(session, access.ensure_user(session, other), media_id)
    for _ in range(2):
        bring_transcript(tools, media_id, other, VTT.encode(), Hints())
    assert len(pieces_of(app, media_id)) == 2
    assert run_item(tools, media_id) == "readable"
    assert sum(model.heard) == SECONDS * 1000
    assert asked(pages) == 1


def test_a_retry_by_a_person_goes_on_where_the_failure_was(app: App, url: str, pages: Pages) -> None:
    user = uuid4()
    model, media_id = CountingEars(), new_video(app, user)
    tools = hearing_tools(app, model)
    for pieces in (1, 1, 2):
        stops_after(model, pieces)
        run_item(tools, media_id)
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.failure_stage, row.last_error_code) == (
        MediaStatus.FAILED,
        "transcribe",
        "E_TRANSCRIPTION_CRASHED",
    )
    with app.sessions.begin() as session:
        retry_media(session, media_id, user)
    assert run_item(tools, media_id) == "readable"
    assert sum(model.heard) == SECONDS * 1000
    assert asked(pages) == 1


def test_each_second_is_counted_once_however_often_the_work_is_interrupted(app: App, url: str) -> None:
    model, media_id = CountingEars(), new_video(app)
    tools = hearing_tools(app, model)
    for pieces in (1, 2):
        stops_after(model, pieces)
        run_item(tools, media_id)
    run_item(tools, media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    assert seconds_used(app, media_id) == SECONDS


def test_what_is_heard_for_a_refresh_is_charged_to_the_user_who_asked_for_it(app: App, url: str) -> None:
    model, media_id, other = CountingEars(), new_video(app), uuid4()
    tools = hearing_tools(app, model)
    assert run_item(tools, media_id) == "readable"
    with app.sessions.begin() as session:
        hold_media(session, access.ensure_user(session, other), media_id)
    refresh.request(app.sessions, LocalQueue(), media_id, other, None)
    assert refresh_item(tools, media_id) == "unchanged"
    assert (seconds_used(app, media_id), seconds_used(app, media_id, other)) == (2 * SECONDS, SECONDS)


def test_others_have_their_turn_while_a_long_recording_is_heard(app: App, url: str) -> None:
    model, media_id = CountingEars(), new_video(app)
    tools = hearing_tools(app, model, replace(LIMITS, turn_seconds=-1.0))
    assert run_item(tools, media_id) == "released"
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.tries) == (MediaStatus.PENDING, 0)
    assert row.run_after <= app.sessions.clock()
    assert events_of(app.sessions, media_id)[-1] == "release"


def test_every_turn_hears_at_least_one_piece(app: App, url: str) -> None:
    model, media_id = CountingEars(), new_video(app)
    tools = hearing_tools(app, model, replace(LIMITS, turn_seconds=-1.0))
    outcomes = [run_item(tools, media_id) for _ in range(5)]
    assert "readable" in outcomes
    assert sum(model.heard) == SECONDS * 1000


def test_pieces_of_other_sound_are_heard_again(app: App, url: str, pages: Pages) -> None:
    model, media_id = CountingEars(), new_video(app)
    tools = hearing_tools(app, model)
    stops_after(model, 2)
    run_item(tools, media_id)
    (path,) = sounds_in_store(app, media_id)
    app.files.storage.delete(path)
    pages["/sound"] = Answer(file_of(tone(SECONDS + 2)), "audio/flac")
    model.heard.clear()
    assert run_item(tools, media_id) == "readable"
    assert sum(model.heard) == (SECONDS + 2) * 1000
    assert sounds_in_store(app, media_id) == []


def test_pieces_of_another_model_are_heard_again(app: App, url: str, pages: Pages) -> None:
    first, second, media_id = CountingEars(), CountingEars(model="counting/2"), new_video(app)
    stops_after(first, 2)
    run_item(hearing_tools(app, first), media_id)
    assert run_item(hearing_tools(app, second), media_id) == "readable"
    assert sum(second.heard) == SECONDS * 1000
    assert asked(pages) == 1


def test_a_copy_that_has_changed_in_the_store_is_fetched_again(app: App, url: str, pages: Pages) -> None:
    model, media_id = CountingEars(), new_video(app)
    tools = hearing_tools(app, model)
    stops_after(model, 1)
    run_item(tools, media_id)
    (path,) = sounds_in_store(app, media_id)
    app.files.storage.delete(path)
    app.files.storage.put(path, [b"something else"], "application/octet-stream")
    assert run_item(tools, media_id) == "readable"
    assert asked(pages) == 2
    assert sum(model.heard) == SECONDS * 1000
    assert sounds_in_store(app, media_id) == []


@pytest.mark.parametrize("reason", ["no address", "off", "missing", "language"])
def test_a_recording_that_nothing_can_hear_has_no_transcript(app: App, url: str, reason: str) -> None:
    model: CountingEars | None = CountingEars()
    assert model is not None
    if reason == "no address":
        listens_to(None)
    elif reason == "language":
        listens_to(url, language="tlh")
    elif reason == "off":
        model = None
    else:
        model.missing = MissingSpeech("It is not here.", None)
    media_id = new_video(app)
    assert run_item(hearing_tools(app, model), media_id) == "failed"
    assert row_of(app.sessions, media_id).last_error_code == "E_TRANSCRIPT_UNAVAILABLE"


def test_a_recording_in_which_nobody_speaks_has_no_transcript(app: App, url: str) -> None:
    model, media_id = CountingEars(), new_video(app)
    model.hear = lambda *_: []  # type: ignore[method-assign,assignment]
    assert run_item(hearing_tools(app, model), media_id) == "failed"
    assert row_of(app.sessions, media_id).last_error_code == "E_TRANSCRIPT_UNAVAILABLE"


def test_an_item_that_is_deleted_while_it_is_heard_leaves_nothing(app: App, url: str) -> None:
    user = uuid4()
    model, media_id = CountingEars(), new_video(app, user)

    def delete() -> None:
        model.meanwhile = lambda: None
        deletions.delete_media_and_files(app.sessions, app.files, user, media_id)

    model.meanwhile = delete
    assert run_item(hearing_tools(app, model), media_id) == "stale"
    assert len(model.heard) == 1
    assert pieces_of(app, media_id) == []
    assert sounds_in_store(app, media_id) == []
    assert seconds_used(app, media_id) == 0


def test_an_attempt_that_has_lost_its_item_writes_nothing(app: App, url: str, clock: SetClock) -> None:
    late, model, media_id = CountingEars(), CountingEars(), new_video(app)

    def another_worker() -> None:
        late.meanwhile = lambda: None
        clock.forward(hours=1)
        app.kernel.sweep(app.queue)
        assert run_item(hearing_tools(app, model), media_id) == "readable"

    late.meanwhile = another_worker
    assert run_item(hearing_tools(app, late), media_id) == "stale"
    assert seconds_used(app, media_id) == SECONDS
    assert pieces_of(app, media_id) == []


def test_a_worker_that_ends_gives_its_recording_back(app: App, url: str) -> None:
    model, media_id = CountingEars(), new_video(app)
    tools = hearing_tools(app, model)
    model.meanwhile = tools.ears.stop
    assert run_item(tools, media_id) == "released"
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.tries) == (MediaStatus.PENDING, 0)


def test_an_allowance_that_is_used_up_waits_and_goes_on(app: App, url: str, clock: SetClock) -> None:
    model, media_id = CountingEars(), new_video(app)
    tools = replace(hearing_tools(app, model), limits={Operation.TRANSCRIBE_SECONDS: 5})
    assert run_item(tools, media_id) == "released"
    row = row_of(app.sessions, media_id)
    assert (row.processing_status, row.tries) == (MediaStatus.PENDING, 0)
    assert seconds_used(app, media_id) <= 5
    heard = len(model.heard)
    assert heard > 0
    clock.forward(days=1, hours=1)
    run_item(replace(tools, limits={}), media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.READY_FOR_READING
    assert sum(model.heard) == SECONDS * 1000


@pytest.mark.parametrize(
    ("answer", "code", "stage"),
    [
        (Answer(b"<html>Sign in", "text/html"), "E_SOUND_UNREADABLE", "transcribe"),
        (Answer(b"", "audio/mpeg"), "E_SOUND_UNREADABLE", "transcribe"),
        (Answer(b"\0" * 100_000, "audio/mpeg"), "E_SOUND_UNREADABLE", "transcribe"),
        (Answer(b"gone", "text/plain", 410), "E_FETCH_HTTP_4XX", "extract"),
        (Answer(bytes(11 * 1024 * 1024), "audio/mpeg"), "E_SOUND_TOO_LARGE", "transcribe"),
    ],
)
def test_an_address_without_usable_sound_is_a_clear_failure(
    app: App, url: str, pages: Pages, answer: Answer, code: str, stage: str
) -> None:
    pages["/sound"] = answer
    media_id = new_video(app)
    assert run_item(hearing_tools(app, CountingEars()), media_id) == "failed"
    row = row_of(app.sessions, media_id)
    assert (row.last_error_code, row.failure_stage) == (code, stage)


def test_upkeep_removes_the_sound_of_an_item_that_failed_a_day_ago(
    app: App, url: str, clock: SetClock
) -> None:
    media_id = failed_item(app)
    assert list(clean.find_leftovers(app.sessions, app.files, remove=True)) == []
    clock.forward(days=1, minutes=1)
    found = list(clean.find_leftovers(app.sessions, app.files, remove=True))
    assert [one.kind for one in found] == ["sounds"]
    assert sounds_in_store(app, media_id) == []
    assert recording_of(app, media_id).audio_path is None
    assert pieces_of(app, media_id) == []


def failed_item(app: App) -> UUID:
    model, media_id = CountingEars(), new_video(app)
    tools = hearing_tools(app, model)
    for _ in range(3):
        stops_after(model, 1)
        run_item(tools, media_id)
    assert status_of(app.sessions, media_id) is MediaStatus.FAILED
    assert len(sounds_in_store(app, media_id)) == 1
    return media_id
