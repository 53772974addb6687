"""Sound for tests, a model that hears what is in it without listening, and an item that is heard."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy
import soundfile
from numpy.typing import NDArray
from sqlalchemy import bindparam, select

from nexus.app import App, kernel_for
from nexus.db.recordings import recordings, speech_pieces
from nexus.db.session import Statement
from nexus.db.tables import usage
from nexus.errors import TranscriptUnavailable
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Facts, Fragment, Source, TimeSpan
from nexus.extract.recording import Recording
from nexus.extract.transcript import Transcript
from nexus.libraries.quota import Operation
from nexus.media.lifecycle import EXTRACTION
from nexus.media.recordings.transcribing import Ears, SpeechLimits
from nexus.media.workbench import Tools
from nexus.queue import Work
from nexus.states.media import Kind
from nexus.transcribe.sound import RATE, WIDTH, PieceLengths
from nexus.transcribe.speech import HeardCue, MissingSpeech, SpeechModel
from tests.kit.media import new_media

SOUNDS = Path(__file__).with_name("sounds")
CLIP, CLIP_TEXT = SOUNDS / "lighthouse.opus", SOUNDS / "lighthouse.txt"
CLIP_SECONDS = 39.402
SHORT_PIECES = PieceLengths(2.0, 4.0)
MIB = 1024 * 1024
LIMITS = SpeechLimits(10 * MIB, 30.0, 600.0)
#: The files by which a test talks to the processes that load the plugin `gated_speech`. The plugin itself changes what
#: imports it.
HELD_AT, REACHED, HEARD, SOUND_URL = "held-at", "reached", "heard", "sound-url"

_PIECES = Statement(
    select(speech_pieces)
    .where(speech_pieces.c.media_id == bindparam("media_id"))
    .order_by(speech_pieces.c.number)
)
_RECORDING = Statement(select(recordings).where(recordings.c.media_id == bindparam("media_id")))
_USED = Statement(
    select(usage.c.user_id, usage.c.amount).where(
        usage.c.operation == Operation.TRANSCRIBE_SECONDS.value, usage.c.media_id == bindparam("media_id")
    )
)


def tone(seconds: float, *, pause_every: float = 1.0, rate: int = RATE) -> NDArray[numpy.float32]:
    """A tone with a pause of a fifth of a second again and again."""
    at = numpy.arange(int(seconds * rate)) / rate
    speaks = (at % pause_every) < pause_every - 0.2
    return (0.3 * numpy.sin(2 * numpy.pi * 220 * at) * speaks).astype("f4")


def file_of(samples: NDArray[Any], form: str = "FLAC", rate: int = RATE, subtype: str | None = None) -> bytes:
    made = io.BytesIO()
    soundfile.write(made, samples, rate, format=form, subtype=subtype)
    return made.getvalue()


class CountingEars:
    """A speech model whose words are how long its pieces are. It counts them, and can be made to fail."""

    source = "Transcribed by the tests"

    def __init__(self, lengths: PieceLengths = SHORT_PIECES, model: str = "counting/1") -> None:
        self.model = model
        self.lengths = lengths
        self.missing: MissingSpeech | None = None
        self.heard: list[int] = []
        #: Raised once each, before anything is heard.
        self.errors: list[Exception] = []
        #: Called in the middle of each piece.
        self.meanwhile: Callable[[], None] = lambda: None
        self.closed = False

    def language_of(self, language: str | None) -> str | None:
        return None if language == "tlh" else language or "en"

    def hear(self, samples: bytes, language: str, watch: Callable[[], None] = lambda: None) -> list[HeardCue]:
        if self.errors:
            raise self.errors.pop(0)
        watch()
        self.meanwhile()
        length = len(samples) * 1000 // (RATE * WIDTH)
        self.heard.append(length)
        return [HeardCue(0, length, f"{length} milliseconds")]

    def close(self) -> None:
        self.closed = True


def hearing_tools(app: App, model: SpeechModel | None, limits: SpeechLimits = LIMITS) -> Tools:
    return replace(app.tools, ears=Ears(model, limits))


def listens_to(url: str | None, **more: Any) -> None:
    """Register an extractor for videos whose text is what is heard at an address."""

    AVAILABLE_EXTRACTORS[Kind.VIDEO] = lambda source: hear_at(source, url, **more)


def hear_at(source: Source, url: str | None, **more: Any) -> Extraction:
    """Return what is heard at an address. What is known about the recording is kept first, as it should be."""
    recording = source.bench.recording()
    if recording is None:
        recording = Recording(title="A recording", audio_url=url, **more)
        source.bench.keep_recording(recording)
    found = source.bench.listen(recording)
    if found is None:
        raise TranscriptUnavailable
    return text_of(found)


def text_of(found: Transcript) -> Extraction:
    """One fragment, in which each cue is a line."""
    spans: list[TimeSpan] = []
    text = ""
    for cue in found.cues:
        start = len(text)
        text += cue.text + "\n"
        spans.append(TimeSpan(start, len(text) - 1, cue.starts_ms, cue.ends_ms))
    facts = Facts(source=found.source, language=found.language)
    return Extraction("A recording", (Fragment(text, None, tuple(spans)),), facts)


def new_video(app: App, user: UUID | None = None) -> UUID:
    return new_media(app, user, f"https://www.youtube.com/watch?v={uuid4().hex[:11]}", "video")


def run_item(tools: Tools, media_id: UUID) -> str | None:
    """How the attempt ended, or None if the item was not due."""
    return kernel_for(tools).run(Work(EXTRACTION, media_id))


def pieces_of(app: App, media_id: UUID) -> list[Any]:
    with app.sessions.read() as session:
        return session.all(_PIECES, media_id=media_id)


def recording_of(app: App, media_id: UUID) -> Any:
    with app.sessions.read() as session:
        return session.first(_RECORDING, media_id=media_id)


def seconds_used(app: App, media_id: UUID, user: UUID | None = None) -> int:
    """By this user, or by all."""
    with app.sessions.read() as session:
        rows = session.all(_USED, media_id=media_id)
        return sum(row.amount for row in rows if user in {None, row.user_id})


def sounds_in_store(app: App, media_id: UUID) -> list[str]:
    folder = f"{app.files.prefix}media/{media_id}/"
    return [one.path for one in app.files.storage.objects(folder)]
