"""Transcriptions from a server: whatever it answers, there are usable cues in time, or a helpful error."""

from __future__ import annotations

import io
import logging
import threading
import wave
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message

import pytest

from nexus.errors import (
    TranscriptionFailed,
    TranscriptionKeyRefused,
    TranscriptionNoCredit,
    TranscriptionRateLimited,
    TranscriptionRefused,
    TranscriptionSlow,
    TranscriptionStopped,
    TranscriptionUnreachable,
    TranscriptionUnusable,
)
from nexus.transcribe.sound import RATE, WIDTH
from nexus.transcribe.speech import HeardCue, believable
from nexus.transcribe.speech.openai import OpenAiSpeech
from tests.kit.servers.openai_api import Asked, Model, Step, answers, drips, drops, fails, hangs, model

KEY = "sk-secret-of-the-tests"
SECONDS = 45.0
LENGTH = 10
PIECE = bytes(LENGTH * RATE * WIDTH)


@pytest.fixture
def server() -> Iterator[Model]:
    with model() as running:
        yield running


def asking(server: Model, *steps: Step, seconds: float = SECONDS) -> OpenAiSpeech:
    server.will(*steps)
    return OpenAiSpeech(server.url, KEY, "whisper-1", seconds)


def segments(*found: dict[str, object]) -> Step:
    return answers(200, {"task": "transcribe", "text": "all of it", "segments": list(found)})


def form_of(asked: Asked) -> dict[str, Message]:
    head = f"Content-Type: {asked.headers['content-type']}\r\n\r\n".encode()
    message = message_from_bytes(head + asked.body["form"])
    parts = [part for part in message.walk() if not part.is_multipart()]
    return {str(part.get_param("name", header="content-disposition")): part for part in parts}


def value_of(part: Message) -> bytes:
    found = part.get_payload(decode=True)
    assert isinstance(found, bytes)
    return found


def test_the_request_is_what_the_api_expects(server: Model) -> None:
    asking(server, segments()).hear(PIECE, "en")
    (asked,) = server.asked
    assert asked.path == "/v1/audio/transcriptions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    form = form_of(asked)
    said = {name: value_of(part).decode() for name, part in form.items() if name != "file"}
    assert said == {
        "model": "whisper-1",
        "response_format": "verbose_json",
        "timestamp_granularities[]": "segment",
        "language": "en",
    }
    with wave.open(io.BytesIO(value_of(form["file"]))) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getnframes()) == (RATE, 1, LENGTH * RATE)


def test_the_largest_piece_is_smaller_than_servers_take() -> None:
    longest = OpenAiSpeech("", KEY, "whisper-1", SECONDS).lengths.most
    assert longest * RATE * WIDTH < 25_000_000


def test_a_recording_in_an_unknown_language_is_sent_without_one(server: Model) -> None:
    speech = asking(server, segments())
    language = speech.language_of(None)
    assert language is not None
    speech.hear(PIECE, language)
    assert "language" not in form_of(server.asked[0])


@pytest.mark.parametrize(("given", "sent"), [("pt-BR", "pt"), ("DE", "de"), ("english", ""), ("x'y", "")])
def test_a_language_is_sent_as_two_letters_or_not_at_all(given: str, sent: str) -> None:
    assert OpenAiSpeech("", KEY, "m", SECONDS).language_of(given) == sent


def test_a_server_without_a_key_is_sent_none(server: Model) -> None:
    server.will(segments())
    OpenAiSpeech(server.url, " ", "m", SECONDS).hear(PIECE, "")
    assert "authorization" not in server.asked[0].headers


def test_segments_become_cues_with_their_times_and_doubts(server: Model) -> None:
    one = {"start": 0.0, "end": 2.5, "text": " Hello.", "no_speech_prob": 0.1, "avg_logprob": -0.2}
    two = {"start": 2.5, "end": 9.0, "text": " Bye.", "compression_ratio": 3.0}
    found = asking(server, segments(one, two)).hear(PIECE, "en")
    assert found == [
        HeardCue(0, 2500, "Hello.", 0.1, -0.2),
        HeardCue(2500, 9000, "Bye.", repetition=3.0),
    ]
    assert believable(found) == found[:1]


def test_times_beyond_the_piece_are_moved_to_its_end(server: Model) -> None:
    found = asking(server, segments({"start": -1, "end": 99, "text": "a"})).hear(PIECE, "en")
    assert found == [HeardCue(0, LENGTH * 1000, "a")]


def test_an_answer_without_times_has_a_cue_for_each_paragraph(server: Model) -> None:
    found = asking(server, answers(200, {"text": "One.\n\nTwo two.\n\n\n"})).hear(PIECE, "en")
    assert [cue.text for cue in found] == ["One.", "Two two."]
    assert found[0].starts_ms == 0
    assert found[0].ends_ms == found[1].starts_ms
    assert found[1].ends_ms == LENGTH * 1000


@pytest.mark.parametrize("body", [{"text": ""}, {"text": " ", "segments": []}, {"text": "\n\n"}])
def test_a_piece_in_which_nobody_speaks_has_no_cues(server: Model, body: dict[str, object]) -> None:
    assert asking(server, answers(200, body)).hear(PIECE, "en") == []


@pytest.mark.parametrize(
    ("step", "error", "transient"),
    [
        (fails(429), TranscriptionRateLimited, True),
        (fails(429, "insufficient_quota"), TranscriptionNoCredit, False),
        (fails(402), TranscriptionNoCredit, False),
        (fails(401), TranscriptionKeyRefused, False),
        (fails(403), TranscriptionKeyRefused, False),
        (fails(400), TranscriptionRefused, False),
        (fails(404, "model_not_found"), TranscriptionRefused, False),
        (fails(413), TranscriptionRefused, False),
        (fails(408), TranscriptionUnreachable, True),
        (fails(500), TranscriptionUnreachable, True),
        (fails(503), TranscriptionUnreachable, True),
        (answers(502, "<html>Bad gateway"), TranscriptionUnreachable, True),
        (answers(302, "", Location="http://127.0.0.1:9/"), TranscriptionRefused, False),
        (drops, TranscriptionUnreachable, True),
        (answers(200, "<html>"), TranscriptionUnusable, False),
        (answers(200, ""), TranscriptionUnusable, False),
        (answers(200, "[]"), TranscriptionUnusable, False),
        (answers(200, {}), TranscriptionUnusable, False),
        (answers(200, {"segments": [{"start": "now", "end": 1, "text": "a"}]}), TranscriptionUnusable, False),
        (
            answers(200, '{"segments": [{"start": 0, "end": 1e999, "text": "a"}]}'),
            TranscriptionUnusable,
            False,
        ),
        (answers(200, '{"text": "' + "a" * 9_000_000 + '"}'), TranscriptionUnusable, False),
    ],
)
def test_a_bad_day_of_the_server_is_a_clear_failure(
    server: Model, step: Step, error: type[TranscriptionFailed], transient: bool
) -> None:
    with pytest.raises(TranscriptionFailed) as raised:
        asking(server, step).hear(PIECE, "en")
    assert (type(raised.value), raised.value.transient) == (error, transient)
    assert raised.value.stage == "transcribe"


def test_a_server_that_asks_to_wait_is_left_alone_for_as_long(server: Model) -> None:
    with pytest.raises(TranscriptionRateLimited) as raised:
        asking(server, fails(429, Retry_After="90")).hear(PIECE, "en")
    assert raised.value.retry_after == 90
    assert not raised.value.counted


@pytest.mark.parametrize("step", [hangs, drips])
def test_a_server_that_never_answers_is_left_in_time(server: Model, step: Step) -> None:
    with pytest.raises(TranscriptionSlow) as raised:
        asking(server, step, seconds=0.5).hear(PIECE, "en")
    assert raised.value.transient


def test_nobody_waits_for_an_answer_that_nobody_wants_any_more(server: Model) -> None:
    def watch() -> None:
        raise TranscriptionStopped

    with pytest.raises(TranscriptionStopped):
        asking(server, hangs).hear(PIECE, "en", watch)
    left = [one for one in threading.enumerate() if one.name.startswith("nexus-speech")]
    assert left, "the request goes on"
    assert all(one.daemon for one in left), "no process waits for them to end"


def test_a_server_that_is_not_there_may_come_back() -> None:
    with pytest.raises(TranscriptionUnreachable):
        OpenAiSpeech("http://127.0.0.1:9/v1", KEY, "m", SECONDS).hear(PIECE, "en")


def test_a_key_that_can_not_be_sent_is_refused(server: Model) -> None:
    with pytest.raises(TranscriptionKeyRefused):
        OpenAiSpeech(server.url, "schlüssel–", "m", SECONDS).hear(PIECE, "en")


def test_neither_the_key_nor_what_the_server_says_is_logged_or_shown(
    server: Model, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(TranscriptionKeyRefused) as raised:
        asking(server, fails(401, message=f"bad key {KEY}")).hear(PIECE, "en")
    told = caplog.text + "".join(capsys.readouterr()) + raised.value.message
    assert KEY not in told
    assert server.url not in told
