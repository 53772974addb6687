"""The workbench of `nexus extract`: for something that is in no library, and with no database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from nexus import urls
from nexus.errors import InvalidRequest, TranscriptUnavailable
from nexus.extract import DEFAULT_LANGUAGES, Extraction, Fetched, Hints, StoredFile
from nexus.extract.recording import Recording
from nexus.extract.results import P
from nexus.extract.sandbox import Sandbox
from nexus.fetch import NO_HEADERS, Fetcher
from nexus.media.files import temporary_file
from nexus.media.recordings.transcribing import Ears, fetch_sound, hear_piece
from nexus.media.workbench import as_fetched
from nexus.transcribe import Cue, Transcript
from nexus.transcribe.named_transcripts import TRANSCRIPT_READER
from nexus.transcribe.paragraphs import transcript_extraction
from nexus.transcribe.sound.process import OpenSound
from nexus.transcribe.speech import missing_speech

PAGES = {".htm": "text/html", ".html": "text/html", ".xhtml": "application/xhtml+xml"}
TRANSCRIPTS = (".vtt", ".srt", ".ttml")


@dataclass
class Loose:
    """For a file on disk, or for an address."""

    fetcher: Fetcher
    sandbox: Sandbox
    ears: Ears
    path: Path | None
    languages: Sequence[str] = DEFAULT_LANGUAGES
    #: What was found out about a video.
    found: Recording | None = field(default=None, init=False)

    def fetch(self, url: str) -> Fetched:
        if self.path is not None:
            with self.file() as file:
                kind = PAGES.get(self.path.suffix.lower(), "text/html")
                return Fetched("", 200, kind, None, file.stream.read())
        return as_fetched(self.fetcher.get(url))

    def fetch_data(self, url: str, accept: str, headers: Mapping[str, str] = NO_HEADERS) -> Fetched:
        return as_fetched(self.fetcher.get_data(url, accept, headers=headers))

    def post_data(
        self, url: str, body: bytes, accept: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> Fetched:
        return as_fetched(self.fetcher.post_data(url, body, accept, headers=headers))

    def asking(self, provider: str) -> AbstractContextManager[None]:
        return self.fetcher.asking(provider)

    @contextmanager
    def file(self) -> Iterator[StoredFile]:
        if self.path is None:
            raise InvalidRequest("File not found.")
        try:
            stream = self.path.open("rb")
        except OSError as error:
            raise InvalidRequest(f"This file can't be read: {error.strerror}.") from error
        with stream:
            yield StoredFile(stream, self.path.name)

    def read(self, reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> Extraction:
        named = hints if self.path is None else Hints(hints.url, hints.content_type, None, self.path.name)
        return self.sandbox.read(reader, data, named)

    def read_as(self, kind: type[P], reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> P:
        return self.sandbox.read_as(kind, reader, data, hints)

    def recording(self) -> None:
        """Nothing is known: there is no database."""

    def keep_recording(self, found: Recording) -> None:
        self.found = found

    def know_as(self, provider: str, provider_id: str) -> None:
        """Keep nothing."""

    def listen(self, recording: Recording) -> Transcript | None:
        if self.ears.usable() is None or recording.audio_url is None:
            return None
        with temporary_file(is_raw=True) as file:
            fetch_sound(self.fetcher, self.ears.limits, recording.audio_url, file, self.ears.require_open)
            return self._hear(file, recording.language)

    def require_transcription(self, seconds: float) -> None:
        """Count nothing: there is no account."""

    def record_transcription(self, seconds: float) -> None:
        """Count nothing."""

    def keep(self, fetched: Fetched) -> None:
        """Keep nothing."""

    def is_recording(self) -> bool:
        """Whether the file is a transcript, or has sound."""
        suffix = "" if self.path is None else self.path.suffix.lower()
        return suffix in TRANSCRIPTS or suffix in urls.RECORDING_TYPES

    def read_recording(self, file: StoredFile) -> Extraction:
        """Return the text of a transcript, or of what is said in a file. Raises TranscriptUnavailable if there is none,
        ExtractionFailed and TranscriptionFailed."""
        name = Path(file.name)
        if name.suffix.lower() in TRANSCRIPTS:
            found = self.read_as(Transcript, TRANSCRIPT_READER, file.stream.read(), Hints(filename=file.name))
            found = msgspec.structs.replace(found, source="Transcript in the file")
            return transcript_extraction(name.stem, found, None)
        missing = missing_speech(self.ears.model)
        if missing is not None:
            raise TranscriptUnavailable(" ".join(filter(None, (missing.why, missing.command))))
        heard = self._hear(file.stream, None)
        if heard is None:
            raise TranscriptUnavailable(
                "Nobody speaks in this file, or in a language that the model does not know."
            )
        return transcript_extraction(name.stem, heard, self.found)

    def _hear(self, file: BinaryIO, language: str | None) -> Transcript | None:
        """Return what is said; None if nobody speaks, or no model that is here knows the language."""
        model = self.ears.usable()
        spoken = None if model is None else model.language_of(language)
        if model is None or spoken is None:
            return None
        watch, cues = self.ears.require_open, list[Cue]()
        with self.ears.turn(watch), OpenSound(file, model.lengths, watch=watch) as sound:
            for piece in sound.pieces():
                cues += hear_piece(model, piece, spoken, watch)
            self.found = msgspec.structs.replace(self.found or Recording(), seconds=sound.seconds)
        return Transcript(tuple(cues), model.source, spoken or language) if cues else None
