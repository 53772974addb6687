# ruff: noqa: PLC0415 the libraries are those of the extra, and only this process loads them
"""What runs in the process of the local speech model: Whisper, one piece after the other.

Pieces without speech are not given to the model at all: a small detector hears them first. The text of one window
never helps to guess the next, because one mistake would be repeated for minutes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from nexus.inference.child import (
    ChildLimits,
    LoadedModel,
    Loading,
    is_about_memory,
    limit_memory,
    require_whole,
    serve_model,
)
from nexus.transcribe.sound import RATE


class SpeechOrder(NamedTuple):
    """Which model to load, and what it may take."""

    folder: str
    #: The SHA-256 of each file.
    digests: Mapping[str, str]
    language: str
    #: Beyond what Python and its libraries have mapped.
    memory_bytes: int
    niceness: int
    idle_seconds: float
    piece_seconds: float
    most_bytes: int


def run_speech() -> None:
    """Never returns."""
    serve_model(_understand)


def _understand(facts: dict[str, Any]) -> Loading:
    order = SpeechOrder(**facts)
    limits = ChildLimits(order.niceness, order.idle_seconds, order.piece_seconds, order.most_bytes)
    return Loading(limits, partial(_loaded, order))


def _loaded(order: SpeechOrder) -> LoadedModel:
    from faster_whisper import WhisperModel

    require_whole(Path(order.folder), order.digests)
    limit_memory(order.memory_bytes)
    model = WhisperModel(
        order.folder, device="cpu", compute_type="int8", cpu_threads=1, num_workers=1, local_files_only=True
    )
    return LoadedModel(partial(_answer, model, order.language), {})


def _answer(model: Any, language: str, samples: bytes) -> bytes:
    """Whatever a library raises becomes an answer, except MemoryError: after that the process is of no more use."""
    try:
        return json.dumps(_heard(model, language, samples)).encode()
    except Exception as error:
        if is_about_memory(error):
            raise MemoryError from error
        return json.dumps(None).encode()


def _heard(model: Any, language: str, samples: bytes) -> list[tuple[int, int, str, float, float, float]]:
    import numpy

    sound = numpy.frombuffer(samples, "<i2").astype("f4") / 32768
    segments, _ = model.transcribe(
        sound,
        language=language,
        beam_size=1,
        temperature=0.0,
        vad_filter=True,
        condition_on_previous_text=False,
    )
    last = len(sound) * 1000 // RATE
    return [
        (
            min(last, int(one.start * 1000)),
            min(last, int(one.end * 1000)),
            one.text.strip(),
            one.no_speech_prob,
            one.avg_logprob,
            one.compression_ratio,
        )
        for one in segments
    ]
