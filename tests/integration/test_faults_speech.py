"""Workers that die while they transcribe: everything ends readable, and each piece is heard and paid for once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

import nexus.transcribe.speech
from nexus.media.recordings import transcribing
from nexus.states.media import MediaStatus
from tests.kit.databases import copied_postgres
from tests.kit.installation import LONG_LEASE, Nexus, end_leases, installed
from tests.kit.media import everything_of, status_of
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.speech import (
    HEARD,
    HELD_AT,
    REACHED,
    SOUND_URL,
    file_of,
    new_video,
    pieces_of,
    recording_of,
    seconds_used,
    sounds_in_store,
    tone,
)
from tests.kit.waiting import eventually

SECONDS = 10


@pytest.fixture(name="nexus", params=["local", "celery"])
def hearing_nexus(
    request: pytest.FixtureRequest,
    postgres_template: str,
    redis_url: str,
    tmp_path: Path,
    pages: Pages,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Nexus]:
    # Which the plugin replaces, if it is imported here.
    monkeypatch.setattr(
        nexus.transcribe.speech, "make_speech_model", nexus.transcribe.speech.make_speech_model
    )
    monkeypatch.setattr(transcribing, "OpenSound", transcribing.OpenSound)
    own = {
        "plugins": ("tests.kit.plugins.gated_speech",),
        "fetch_allow": (pages.place,),
        "lease_seconds": LONG_LEASE,
    }
    with (
        copied_postgres(postgres_template) as url,
        installed(url, tmp_path, queue=request.param, redis_url=redis_url, **own) as made,
    ):
        yield made


def lines_of(nexus: Nexus, name: str) -> list[str]:
    path = nexus.folder / name
    return path.read_text().splitlines() if path.exists() else []


def recorded(nexus: Nexus, pages: Pages, path: str) -> UUID:
    pages[path] = Answer(file_of(tone(SECONDS)), "audio/flac")
    (nexus.folder / SOUND_URL).write_text(pages.url(path))
    return new_video(nexus.app)


def kill_at(nexus: Nexus, step: str) -> None:
    (nexus.folder / HELD_AT).write_text(step)
    before = lines_of(nexus, REACHED).count(step)
    worker = nexus.worker()
    eventually(lambda: lines_of(nexus, REACHED).count(step) > before, f"a worker is at: {step}")
    worker.kill()
    end_leases(nexus)


def check_end(nexus: Nexus, media_id: UUID) -> None:
    (nexus.folder / HELD_AT).unlink(missing_ok=True)
    nexus.worker()
    ready = {MediaStatus.READY_FOR_READING, MediaStatus.FAILED}
    eventually(lambda: status_of(nexus.app.sessions, media_id) in ready, "it is settled")
    assert status_of(nexus.app.sessions, media_id) is MediaStatus.READY_FOR_READING
    heard = [int(line) for line in lines_of(nexus, HEARD)]
    assert sum(heard) == SECONDS * 1000
    (text,) = everything_of(nexus.app.sessions, media_id).texts
    assert text.splitlines() == [f"{length} milliseconds" for length in heard]
    assert seconds_used(nexus.app, media_id) == SECONDS
    assert pieces_of(nexus.app, media_id) == []
    assert recording_of(nexus.app, media_id).audio_path is None
    eventually(lambda: sounds_in_store(nexus.app, media_id) == [], "the sound is removed")


def test_a_recording_whose_workers_are_killed_while_fetching_and_decoding_is_read(
    nexus: Nexus, pages: Pages
) -> None:
    media_id = recorded(nexus, pages, "/held/sound")
    worker = nexus.worker()
    eventually(lambda: len(pages.asked) == 1, "a worker fetches the sound")
    worker.kill()
    end_leases(nexus)
    pages.gate.set()
    kill_at(nexus, "decode")
    check_end(nexus, media_id)
    assert len(pages.asked) == 2


def test_a_recording_whose_workers_are_killed_while_hearing_and_settling_is_read(
    nexus: Nexus, pages: Pages
) -> None:
    media_id = recorded(nexus, pages, "/sound")
    kill_at(nexus, "hear")
    kill_at(nexus, "settle")
    check_end(nexus, media_id)
    assert len(pages.asked) == 1
