"""A model behind any server that speaks OpenAI's transcription API.

Pieces are sent as WAV. An answer without times serves as well: its paragraphs share the time of the piece by their
lengths.
"""

from __future__ import annotations

import io
import math
import re
import threading
import time
import wave
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress

import msgspec

from nexus.errors import (
    TranscriptionKeyRefused,
    TranscriptionNoCredit,
    TranscriptionRateLimited,
    TranscriptionRefused,
    TranscriptionSlow,
    TranscriptionUnreachable,
    TranscriptionUnusable,
)
from nexus.inference.host import ask_nobody
from nexus.inference.server import ModelServer, ServerErrors
from nexus.transcribe.sound import RATE, WIDTH, PieceLengths
from nexus.transcribe.speech import ANY, HeardCue, MissingSpeech

#: Ten minutes are 19 MB; servers take up to 25.
LENGTHS = PieceLengths(480.0, 600.0)
#: Many times what anybody says in ten minutes, with the times of each word.
MOST_BYTES = 8 * 1024 * 1024
#: More cues than there are in ten minutes of speech.
MOST_SEGMENTS = 6000
#: How often to check whether somebody still waits for the answer.
LOOK_SECONDS = 0.5
NOT_A_MODEL = "No speech model answers at its address. Check NEXUS_SPEECH_BASE_URL: most end in /v1."
_PARAGRAPHS = re.compile(r"\n\s*\n|\r\n\s*\r\n")


class _Segment(msgspec.Struct):
    start: float
    end: float
    text: str
    no_speech_prob: float | None = None
    avg_logprob: float | None = None
    compression_ratio: float | None = None


class _Transcription(msgspec.Struct):
    """The parts of a server's answer that are used here."""

    text: str | None = None
    segments: list[_Segment] | None = None


def _refused(status: int) -> TranscriptionRefused:
    if status == 413:
        return TranscriptionRefused(
            "The speech model's server takes no piece of 19 MB. Raise its limit, or set another one, then retry."
        )
    return TranscriptionRefused()


ERRORS = ServerErrors(
    slow=TranscriptionSlow,
    unreachable=TranscriptionUnreachable,
    rate_limited=TranscriptionRateLimited,
    key_refused=TranscriptionKeyRefused,
    no_credit=TranscriptionNoCredit,
    endless=lambda: TranscriptionUnusable("The speech model's answer does not end. Set another model."),
    refused=_refused,
)


class OpenAiSpeech:
    """A process has one, shared by its threads."""

    missing: MissingSpeech | None = None
    lengths = LENGTHS

    def __init__(
        self,
        base_url: str,
        api_key: str,
        model: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self.source = f"Transcribed by {model}"
        self._server = ModelServer(base_url, "audio/transcriptions", api_key, MOST_BYTES, ERRORS, clock)
        self._seconds = seconds

    def language_of(self, language: str | None) -> str | None:
        """It takes any; the API wants two letters."""
        code = (language or "").partition("-")[0].lower()
        return code if len(code) == 2 and code.isascii() and code.isalpha() else ANY

    def hear(self, samples: bytes, language: str, watch: Callable[[], None] = ask_nobody) -> list[HeardCue]:
        answer = Future[bytes]()
        threading.Thread(
            target=self._answer, args=(answer, samples, language), name="nexus-speech", daemon=True
        ).start()
        return _cues(_waited_for(answer, watch), len(samples) * 1000 // (RATE * WIDTH))

    def close(self) -> None:
        """Wait for nobody: each request ends by its deadline, or with the process."""

    def _answer(self, answer: Future[bytes], samples: bytes, language: str) -> None:
        try:
            answer.set_result(self._send(samples, language))
        except BaseException as error:
            answer.set_exception(error)

    def _send(self, samples: bytes, language: str) -> bytes:
        fields = {
            "model": self.model,
            "response_format": "verbose_json",
            "timestamp_granularities[]": "segment",
            **({"language": language} if language else {}),
        }
        sound = {"file": ("piece.wav", wav_of(samples), "audio/wav")}
        return self._server.post(self._seconds, data=fields, files=sound)


def wav_of(samples: bytes) -> bytes:
    """Return a piece as a WAV file."""
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(WIDTH)
        file.setframerate(RATE)
        file.writeframes(samples)
    return made.getvalue()


def _waited_for(answer: Future[bytes], watch: Callable[[], None]) -> bytes:
    """Wait only as long as somebody wants the answer: a server may think for minutes."""
    while True:
        with suppress(NotYet):
            return answer.result(LOOK_SECONDS)
        watch()


def _cues(body: bytes, length_ms: int) -> list[HeardCue]:
    """Raises TranscriptionUnusable for anything but a transcription."""
    try:
        found = msgspec.json.decode(body, type=_Transcription)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise TranscriptionUnusable(NOT_A_MODEL) from None
    if found.segments is None:
        if found.text is None:
            raise TranscriptionUnusable(NOT_A_MODEL)
        return _without_times(found.text, length_ms)
    if len(found.segments) > MOST_SEGMENTS:
        raise TranscriptionUnusable
    cues = [_cue(one, length_ms) for one in found.segments]
    return sorted((cue for cue in cues if cue is not None), key=lambda cue: cue.starts_ms)


def _cue(said: _Segment, length_ms: int) -> HeardCue | None:
    """Times beyond the piece are moved to its end; those that are not numbers are refused."""
    if not (math.isfinite(said.start) and math.isfinite(said.end)):
        raise TranscriptionUnusable
    starts, ends = (min(length_ms, max(0, int(1000 * at))) for at in (said.start, said.end))
    if ends < starts:
        return None
    given = (said.no_speech_prob, said.avg_logprob, said.compression_ratio)
    usual = HeardCue(starts, ends, said.text.strip())
    sure = (default if value is None else value for value, default in zip(given, usual[3:], strict=True))
    return HeardCue(*usual[:3], *sure)


def _without_times(text: str, length_ms: int) -> list[HeardCue]:
    paragraphs = [one.strip() for one in _PARAGRAPHS.split(text) if one.strip()]
    total, before = sum(map(len, paragraphs)), 0
    cues: list[HeardCue] = []
    for one in paragraphs:
        starts, before = before, before + len(one)
        cues.append(HeardCue(starts * length_ms // total, before * length_ms // total, one))
    return cues
