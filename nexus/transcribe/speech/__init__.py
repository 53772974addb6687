# ruff: noqa: PLC0415 a backend is imported when it is chosen: few commands listen to anything
"""Models that listen: what they are asked for, what they answer, and which of it is believed.

A model is given a piece of a recording at a time, mono and 16 kHz. Pieces that two models heard don't fit together, so
its name is kept with each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus.inference.host import ask_nobody
from nexus.transcribe.sound import PieceLengths

if TYPE_CHECKING:
    from nexus.settings import Settings

#: Above these, nobody speaks, or the model repeats itself: Whisper is known to invent text in silence and in music.
MOST_SILENCE, MOST_REPETITION = 0.8, 2.4
#: Above this one, a text that the model itself finds unlikely is not believed either.
SILENCE, LEAST_LIKELY = 0.6, -1.0


class HeardCue(NamedTuple):
    """What a model heard from one moment of a piece to another, in milliseconds, and how sure it is."""

    starts_ms: int
    ends_ms: int
    text: str
    #: How likely it is that nobody speaks there.
    no_speech: float = 0.0
    #: The mean logarithm of the likelihood of its words, and how far its text can be compressed.
    likely: float = 0.0
    repetition: float = 1.0


class MissingSpeech(NamedTuple):
    """Why nothing can be transcribed at the moment, for a person."""

    #: One sentence.
    why: str
    #: What to type to change that; None if there is nothing to type.
    command: str | None


class SpeechModel(Protocol):
    """Safe to share between threads. Nothing is loaded or started before the first piece."""

    @property
    def model(self) -> str:
        """Its name and version, kept with what it heard."""
        ...

    @property
    def source(self) -> str:
        """What people are told about where its transcripts come from."""
        ...

    @property
    def lengths(self) -> PieceLengths:
        """How long its pieces should be."""
        ...

    @property
    def missing(self) -> MissingSpeech | None:
        """What has to be installed first, or None. Cheap, and looked up each time."""
        ...

    def language_of(self, language: str | None) -> str | None:
        """Return the language in which to transcribe a recording of this language; None if the model does not know it.
        If nobody named a language, any will do."""
        ...

    def hear(self, samples: bytes, language: str, watch: Callable[[], None] = ask_nobody) -> list[HeardCue]:
        """Listen to a piece. `watch` is called now and then, and ends it by raising.

        Raises TranscriptionFailed or a kind of it; it is transient if the same may succeed later.
        """
        ...

    def close(self) -> None:
        """End its processes. Callers that wait for an answer get TranscriptionStopped."""
        ...


#: The language of a recording whose language the model finds out itself.
ANY = ""


def make_speech_model(settings: Settings) -> SpeechModel | None:
    """Return what the settings ask for, or None if nothing is transcribed. Look at `missing` before using it."""
    if settings.speech == "openai":
        from nexus.transcribe.speech.openai import OpenAiSpeech

        return OpenAiSpeech(
            settings.speech_base_url, settings.speech_api_key, settings.speech_model, settings.speech_seconds
        )
    if settings.speech == "off":
        return None
    from nexus.transcribe.speech.local import LocalSpeech

    return LocalSpeech(settings.speech_seconds, wanted=settings.speech == "local")


def missing_speech(model: SpeechModel | None) -> MissingSpeech | None:
    """Say why nothing can be transcribed at the moment, whatever the reason; None if it can."""
    if model is None:
        return MissingSpeech("Transcription is turned off: NEXUS_SPEECH is off.", None)
    return model.missing


def believable(cues: Iterable[HeardCue]) -> list[HeardCue]:
    """Return what somebody probably said, and leave out what the model made up."""
    return [cue for cue in cues if cue.text.strip() and not _is_made_up(cue)]


def _is_made_up(cue: HeardCue) -> bool:
    unlikely = cue.no_speech > SILENCE and cue.likely < LEAST_LIKELY
    return unlikely or cue.no_speech > MOST_SILENCE or cue.repetition > MOST_REPETITION
