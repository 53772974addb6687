"""Recordings that are heard by counting, with a gate at each step: NEXUS_PLUGINS=tests.kit.plugins.gated_speech.

The file `sound-url` in the folder of the installation says where the sound of every video is. While the file
`held-at` names a step, every process that reaches it waits. Every step that is reached, and every piece that was
heard, is noted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nexus.transcribe.speech
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.media.recordings import transcribing
from nexus.settings import Settings
from nexus.states.media import Kind
from nexus.transcribe.sound import SoundPiece
from nexus.transcribe.sound.process import OpenSound
from nexus.transcribe.speech import HeardCue
from tests.kit.plugins.extract_by_url import FOLDER, GLANCE, _note
from tests.kit.speech import HEARD, HELD_AT, REACHED, SOUND_URL, CountingEars, hear_at


def reach(step: str) -> None:
    folder = Path(os.environ[FOLDER])
    _note(folder / REACHED, f"{step}\n")
    while (folder / HELD_AT).exists() and (folder / HELD_AT).read_text() == step:
        time.sleep(GLANCE)


class GatedEars(CountingEars):
    def hear(self, samples: bytes, language: str, watch: Callable[[], None] = lambda: None) -> list[HeardCue]:
        reach("hear")
        found = super().hear(samples, language, watch)
        _note(Path(os.environ[FOLDER], HEARD), f"{self.heard[-1]}\n")
        return found


class GatedSound(OpenSound):
    def pieces(self) -> Iterator[SoundPiece]:
        for piece in super().pieces():
            reach("decode")
            yield piece


def hear_gated(source: Source) -> Extraction:
    found = hear_at(source, Path(os.environ[FOLDER], SOUND_URL).read_text())
    reach("settle")
    return found


def make(settings: Settings) -> GatedEars:
    return GatedEars()


nexus.transcribe.speech.make_speech_model = make
transcribing.OpenSound = GatedSound  # type: ignore[misc]
AVAILABLE_EXTRACTORS.clear()
AVAILABLE_EXTRACTORS[Kind.VIDEO] = hear_gated
