"""One attempt to hear a recording: its sound is fetched once, decoded and heard piece by piece, and each piece is kept.

Recordings are long, and models are slow. After a few minutes an attempt gives its item back, so that others have their
turn; the next one continues with the next piece. So does an attempt after a crash.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO
from uuid import UUID, uuid4

from nexus import logging
from nexus.db.session import Sessions
from nexus.errors import (
    FetchTooLarge,
    FileUnreachable,
    SoundTooLarge,
    TranscriptionBusy,
    TranscriptionStopped,
    TranscriptionTurn,
)
from nexus.extract.recording import Recording
from nexus.fetch import Fetcher
from nexus.libraries import quota
from nexus.libraries.quota import Allowances
from nexus.media.files import Files, temporary_file
from nexus.media.recordings import speech
from nexus.media.recordings.sound import ACCEPT_SOUND
from nexus.media.recordings.speech import Attempt, HeardPiece, SoundCopy
from nexus.storage import CHUNK, StorageError
from nexus.storage.names import sound_path
from nexus.transcribe import Cue, Transcript
from nexus.transcribe.sound import SoundPiece
from nexus.transcribe.sound.process import OpenSound
from nexus.transcribe.speech import SpeechModel, believable

log = logging.get_logger(__name__)

#: How often to check that the item is still there, and still this attempt's.
LOOK_SECONDS = 1.0
#: What the copy of the sound is called in the store. Nobody is ever shown it.
SOUND_TYPE = "application/octet-stream"
#: How many recordings a process listens to at once, and how many more it gets ready.
AT_ONCE, NEXT = 1, 1


@dataclass(frozen=True)
class SpeechLimits:
    """What transcribing may take."""

    #: Of a file with sound.
    most_bytes: int
    fetch_seconds: float
    #: After how long an attempt lets others have their turn.
    turn_seconds: float


class Ears:
    """The model of a process, for all its threads. One recording is heard at a time, and the next one is got ready;
    others come again later, because their threads have other work."""

    def __init__(self, model: SpeechModel | None, limits: SpeechLimits) -> None:
        self.model = model
        self.limits = limits
        self._places = threading.Semaphore(AT_ONCE + NEXT)
        self._turn = threading.Semaphore(AT_ONCE)
        self._stopping = threading.Event()

    def usable(self) -> SpeechModel | None:
        """Return the model if it can be used now: it is not off, and installed."""
        return self.model if self.model is not None and self.model.missing is None else None

    @contextmanager
    def place(self) -> Iterator[None]:
        """Raises TranscriptionBusy if there is none."""
        if not self._places.acquire(blocking=False):
            raise TranscriptionBusy
        try:
            yield
        finally:
            self._places.release()

    @contextmanager
    def turn(self, watch: Callable[[], None]) -> Iterator[None]:
        while not self._turn.acquire(timeout=LOOK_SECONDS):
            watch()
        try:
            yield
        finally:
            self._turn.release()

    def require_open(self) -> None:
        """Raises TranscriptionStopped once this process is ending."""
        if self._stopping.is_set():
            raise TranscriptionStopped

    def stop(self) -> None:
        """Have every attempt give its item back."""
        self._stopping.set()

    def close(self) -> None:
        self.stop()
        if self.model is not None:
            self.model.close()


class Watch:
    """Called again and again by whatever takes long. Raises TranscriptionStopped if it should end."""

    def __init__(self, sessions: Sessions, ears: Ears, attempt: Attempt) -> None:
        self._sessions = sessions
        self._ears = ears
        self._attempt = attempt
        self._next = time.monotonic()

    def __call__(self) -> None:
        self._ears.require_open()
        if time.monotonic() >= self._next:
            with self._sessions.read() as session:
                if not speech.is_held(session, self._attempt):
                    raise TranscriptionStopped
            self._next = time.monotonic() + LOOK_SECONDS


@dataclass
class Hearing:
    """One attempt. `copy` is the sound in the store, which its caller removes once nobody needs it.

    What is heard counts towards the allowance of `user_id`.
    """

    sessions: Sessions
    files: Files
    fetcher: Fetcher
    allowances: Allowances
    ears: Ears
    attempt: Attempt
    user_id: UUID
    copy: SoundCopy | None = field(default=None, init=False)
    _watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self._watch = Watch(self.sessions, self.ears, self.attempt)

    def hear(self, recording: Recording) -> Transcript | None:
        """Return what is said; None if there is no sound, no model that understands it, or nobody speaks.

        Raises TranscriptionFailed, FetchFailed or FileUnreachable, or a kind of them.
        """
        model = self.ears.usable()
        if model is None or recording.audio_url is None:
            return None
        language = model.language_of(recording.language)
        if language is None:
            return None
        with self.ears.place(), temporary_file(is_raw=True) as file:
            sha256 = self._get_sound(recording.audio_url, file)
            with self.ears.turn(self._watch):
                cues = self._hear_all(model, language, file, sha256, recording.seconds)
        return Transcript(tuple(cues), model.source, language or recording.language) if cues else None

    def _get_sound(self, url: str, file: BinaryIO) -> str:
        """Fill the file with the copy in the store, or from its address, and return its SHA-256."""
        with self.sessions.read() as session:
            self.copy = speech.kept_sound(session, self.attempt.media_id)
        if self.copy is not None and self._read_copy(self.copy, file):
            return self.copy.sha256
        old, self.copy = self.copy, None
        sha256 = fetch_sound(self.fetcher, self.ears.limits, url, file, self._watch)
        self._store(file, sha256)
        if old is not None:
            self.files.remove(old.path)
        return sha256

    def _read_copy(self, copy: SoundCopy, file: BinaryIO) -> bool:
        """Whether it is there, and as it was."""
        digest = hashlib.sha256()
        try:
            for piece in self.files.storage.stream(copy.path):
                self._watch()
                digest.update(piece)
                file.write(piece)
        except (StorageError, OSError) as error:
            log.warning("sound_copy_lost", reason=type(error).__name__)
            return False
        return digest.hexdigest() == copy.sha256

    def _store(self, file: BinaryIO, sha256: str) -> None:
        """Keep a copy for later attempts, unless there are many already. Without one, they fetch the sound again."""
        with self.sessions.read() as session:
            if not speech.may_keep_sound(session, self.attempt.media_id):
                return
        path = sound_path(self.attempt.media_id, uuid4().hex, self.files.prefix)
        file.seek(0)
        try:
            self.files.storage.put(path, iter(lambda: file.read(CHUNK), b""), SOUND_TYPE)
        except (StorageError, OSError) as error:
            log.warning("sound_not_kept", reason=type(error).__name__)
            return
        self.copy = SoundCopy(path, sha256)
        try:
            with self.sessions.begin() as session:
                speech.keep_sound(session, self.attempt, self.copy)
        except TranscriptionStopped:
            self.files.remove(path)
            raise

    def _hear_all(
        self, model: SpeechModel, language: str, file: BinaryIO, sha256: str, seconds: float | None
    ) -> list[Cue]:
        until = time.monotonic() + self.ears.limits.turn_seconds
        media_id = self.attempt.media_id
        with self.sessions.begin() as session:
            heard = speech.heard_pieces(session, media_id, sha256, model.model)
            if not heard:
                speech.forget_pieces(session, self.attempt)
        start, begun = heard[-1].ends_ms if heard else 0, len(heard)
        with OpenSound(file, model.lengths, start, self._watch) as sound:
            for place, piece in enumerate(sound.pieces(), begun):
                if place > begun and time.monotonic() >= until:
                    raise TranscriptionTurn
                quota.require_transcription(self.sessions, self.allowances, self.user_id, piece.seconds)
                cues = hear_piece(model, piece, language, self._watch)
                made = HeardPiece.of(place, (piece.starts_ms, piece.ends_ms), (sha256, model.model), cues)
                total_ms = int(1000 * (sound.seconds or seconds or 0))
                with self.sessions.begin() as session:
                    speech.add_piece(session, self.attempt, made, self.user_id, total_ms)
                heard.append(made)
            if sound.seconds:
                with self.sessions.begin() as session:
                    speech.keep_length(session, self.attempt, sound.seconds)
        return [cue for piece in heard for cue in piece.spoken]


def fetch_sound(
    fetcher: Fetcher, limits: SpeechLimits, url: str, file: BinaryIO, watch: Callable[[], None]
) -> str:
    """Fill a file with what is at an address, and return its SHA-256. Raises SoundTooLarge, FetchFailed,
    FileUnreachable, and what `watch` raises."""
    file.seek(0)
    file.truncate()
    digest = hashlib.sha256()
    try:
        with fetcher.stream(
            url, ACCEPT_SOUND, most_bytes=limits.most_bytes, most_seconds=limits.fetch_seconds
        ) as answer:
            for piece in answer.chunks:
                watch()
                digest.update(piece)
                file.write(piece)
    except FetchTooLarge:
        raise SoundTooLarge from None
    except OSError as error:
        raise FileUnreachable from error
    return digest.hexdigest()


def hear_piece(model: SpeechModel, piece: SoundPiece, language: str, watch: Callable[[], None]) -> list[Cue]:
    """Listen to a piece, and return what is said with its times in the whole recording."""
    heard = believable(model.hear(piece.samples, language, watch))
    return [Cue(piece.starts_ms + cue.starts_ms, piece.starts_ms + cue.ends_ms, cue.text) for cue in heard]
