"""The model that `make speech` installs, on real sound: it hears what is said, and nothing where nobody speaks."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from nexus.app import App
from nexus.errors import (
    TranscriptionCrashed,
    TranscriptionMemory,
    TranscriptionNoModel,
    TranscriptionSlow,
    TranscriptionStopped,
)
from nexus.settings import Settings
from nexus.transcribe.sound import RATE, PieceLengths
from nexus.transcribe.sound.process import OpenSound
from nexus.transcribe.speech import believable, local, make_speech_model
from nexus.transcribe.speech.local import LocalSpeech, weights_folder
from tests.kit.media import everything_of, row_of
from tests.kit.parsers import gone, state
from tests.kit.servers.web_pages import Answer, Pages
from tests.kit.settings import make_settings
from tests.kit.speech import (
    CLIP,
    CLIP_SECONDS,
    CLIP_TEXT,
    LIMITS,
    hearing_tools,
    listens_to,
    new_video,
    run_item,
    seconds_used,
    tone,
)
from tests.kit.waiting import eventually

SECONDS = 120.0
MIB = 1024 * 1024


@contextmanager
def held(made: LocalSpeech) -> Iterator[LocalSpeech]:
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def model() -> Iterator[LocalSpeech]:
    with held(LocalSpeech(SECONDS)) as made:
        yield made


def clip() -> bytes:
    with CLIP.open("rb") as file, OpenSound(file, PieceLengths(60.0, 120.0)) as sound:
        return b"".join(piece.samples for piece in sound.pieces())


def samples_of(sound: numpy.ndarray) -> bytes:
    return (sound * 32767).astype("<i2").tobytes()


def words_of(text: str) -> list[str]:
    numbers = {"200": "two hundred", "programme": "program", "anymore": "any more"}
    plain = re.sub(r"[^a-z0-9 ]", "", text.lower().replace("\n", " "))
    for short, whole in numbers.items():
        plain = plain.replace(short, whole)
    return plain.split()


def word_error(said: str, heard: str) -> float:
    """The edits from one to the other, per word that was said."""
    wanted, found = words_of(said), words_of(heard)
    row = list(range(len(found) + 1))
    for place, word in enumerate(wanted, 1):
        before, row[0] = row[0], place
        for at, other in enumerate(found, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (word != other))
    return row[-1] / len(wanted)


def test_three_words_in_ten_are_heard_wrong_at_most(model: LocalSpeech) -> None:
    heard = " ".join(cue.text for cue in believable(model.hear(clip(), "en")))
    assert word_error(CLIP_TEXT.read_text(), heard) < 0.3


def test_cues_have_times_in_order_within_the_piece(model: LocalSpeech) -> None:
    times = [(cue.starts_ms, cue.ends_ms) for cue in model.hear(clip(), "en")]
    assert times == sorted(times)
    assert all(0 <= starts <= ends <= CLIP_SECONDS * 1000 for starts, ends in times)
    assert times[-1][1] > 30_000


def hum() -> numpy.ndarray:
    at = numpy.arange(30 * RATE) / RATE
    return 0.1 * sum(numpy.sin(2 * numpy.pi * pitch * at) for pitch in (262, 330, 392, 523))


def noise() -> numpy.ndarray:
    return numpy.random.default_rng(1).normal(0, 0.1, 30 * RATE).clip(-1, 1)


@pytest.mark.parametrize(
    "sound",
    [lambda: numpy.zeros(30 * RATE), noise, hum, lambda: tone(30)],
    ids=["silence", "noise", "music", "beeps"],
)
def test_no_text_is_invented_where_nobody_speaks(
    model: LocalSpeech, sound: Callable[[], numpy.ndarray]
) -> None:
    assert believable(model.hear(samples_of(sound()), "en")) == []


def test_an_item_is_heard_and_read_with_its_times(app: App, pages: Pages, model: LocalSpeech) -> None:
    pages["/sound"] = Answer(CLIP.read_bytes(), "audio/ogg")
    listens_to(pages.url("/sound"), language="en-GB")
    media_id = new_video(app)
    assert run_item(hearing_tools(app, model, replace(LIMITS, turn_seconds=120.0)), media_id) == "readable"
    (text,) = everything_of(app.sessions, media_id).texts
    assert word_error(CLIP_TEXT.read_text(), text) < 0.3
    assert seconds_used(app, media_id) == 40


@pytest.fixture
def settings(database_url: str, redis_url: str, tmp_path: Path, pages: Pages) -> Settings:
    return make_settings(database_url, tmp_path, redis_url=redis_url, fetch_allow=(pages.place,))


def test_a_recording_in_another_language_is_not_heard(app: App, pages: Pages, model: LocalSpeech) -> None:
    listens_to(pages.url("/sound"), language="de")
    media_id = new_video(app)
    assert run_item(hearing_tools(app, model), media_id) == "failed"
    assert row_of(app.sessions, media_id).last_error_code == "E_TRANSCRIPT_UNAVAILABLE"
    assert pages.asked == []


def test_the_installed_model_is_used_without_a_setting(tmp_path: Path) -> None:
    found = make_speech_model(make_settings("", tmp_path, speech=""))
    assert isinstance(found, LocalSpeech)
    assert found.missing is None


def test_weights_that_are_not_the_known_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(local.PINNED, "model.bin", "0" * 64)
    with held(LocalSpeech(SECONDS)) as model, pytest.raises(TranscriptionNoModel, match=r"model\.bin"):
        model.hear(clip(), "en")


def test_every_file_of_the_weights_is_pinned() -> None:
    assert {path.name for path in weights_folder().iterdir()} == set(local.PINNED)


def process_of(model: LocalSpeech) -> int:
    found = model.host.process_id
    assert found is not None
    return found


def test_a_process_that_is_killed_is_replaced() -> None:
    with held(LocalSpeech(SECONDS)) as model:
        before = model.hear(clip(), "en")
        os.kill(process_of(model), signal.SIGKILL)
        assert model.hear(clip(), "en") == before


def test_a_process_that_hangs_is_ended() -> None:
    with held(LocalSpeech(3.0)) as model:
        model.hear(samples_of(numpy.zeros(RATE)), "en")
        first = process_of(model)
        os.kill(first, signal.SIGSTOP)
        eventually(lambda: state(first) == "T", "the process stops")
        with pytest.raises(TranscriptionSlow):
            model.hear(samples_of(numpy.zeros(RATE)), "en")
        assert gone(first)


def test_a_process_without_memory_is_a_failure_that_may_pass() -> None:
    with (
        held(LocalSpeech(SECONDS, memory_bytes=16 * MIB)) as model,
        pytest.raises((TranscriptionMemory, TranscriptionCrashed)) as raised,
    ):
        model.hear(clip(), "en")
    assert raised.value.transient


def test_a_piece_that_nobody_wants_any_more_ends_its_process() -> None:
    def watch() -> None:
        raise TranscriptionStopped

    with held(LocalSpeech(SECONDS)) as model:
        model.hear(samples_of(numpy.zeros(RATE)), "en")
        first = process_of(model)
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(TranscriptionStopped):
            model.hear(clip(), "en", watch)
        assert gone(first)


def test_a_process_has_low_priority_and_nothing_of_the_environment(
    model: LocalSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXUS_JWT_SECRET", "a-secret")
    with held(LocalSpeech(SECONDS)) as own:
        own.hear(samples_of(numpy.zeros(RATE)), "en")
        about = Path("/proc", str(process_of(own)))
        assert os.getpriority(os.PRIO_PROCESS, process_of(own)) >= 10
        environment = about.joinpath("environ").read_bytes()
        assert b"NEXUS_JWT_SECRET" not in environment
        assert b"HF_HUB_OFFLINE=1" in environment
