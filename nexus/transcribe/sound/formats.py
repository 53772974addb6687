# ruff: noqa: PLC0415 only some installations have PyAV
"""What reads which format. libsndfile reads WAV, FLAC, MP3, Vorbis and Opus. PyAV, which comes with the extra `speech`,
reads whatever else recordings come in: AAC, M4A, and the sound of videos."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import numpy
import soundfile
import soxr
from numpy.typing import NDArray

from nexus.transcribe.sound import RATE

Samples = NDArray[numpy.float32]

#: How many samples are decoded at once, over all channels.
BLOCK = 65_536
MOST_CHANNELS = 32
RATES = range(1_000, 768_001)


class NoSound(Exception):
    """Nothing here can read the file, or it has no sound."""


class Decoded(NamedTuple):
    """The sound of a file as it is decoded, and its length in seconds as the file says it, which may be wrong."""

    blocks: Iterator[Samples]
    seconds: float | None


def decode_sound(file: BinaryIO) -> Decoded:
    """Read the beginning, and return the rest as mono blocks of 16 kHz. Raises NoSound."""
    for read in (_with_sndfile, _with_av):
        file.seek(0)
        with suppress(NoSound):
            return read(file)
    raise NoSound


def load_formats() -> None:
    """Import what decodes, while the process may still open files."""
    if importlib.util.find_spec("av") is not None:
        import av  # noqa: F401


def _with_sndfile(file: BinaryIO) -> Decoded:
    try:
        sound = soundfile.SoundFile(os.dup(file.fileno()))
    except (soundfile.SoundFileError, OSError, ValueError, TypeError) as error:
        raise NoSound from error
    if sound.samplerate not in RATES or sound.channels > MOST_CHANNELS:
        raise NoSound
    seconds = sound.frames / sound.samplerate
    return Decoded(_resampled(_blocks(sound), sound.samplerate), seconds if seconds > 0 else None)


def _blocks(sound: soundfile.SoundFile) -> Iterator[Samples]:
    """Damage after a good beginning ends the sound there."""
    most = max(1, BLOCK // sound.channels)
    while True:
        try:
            block = sound.read(most, dtype="float32", always_2d=True)
        except soundfile.SoundFileError:
            return
        if not len(block):
            return
        yield block.mean(axis=1, dtype=numpy.float32)


def _resampled(blocks: Iterator[Samples], rate: int) -> Iterator[Samples]:
    if rate == RATE:
        yield from blocks
        return
    stream = soxr.ResampleStream(rate, RATE, 1, dtype="float32")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(numpy.zeros(0, numpy.float32), last=True)


def _with_av(file: BinaryIO) -> Decoded:
    try:
        import av
    except ImportError as error:
        raise NoSound from error
    try:
        box = av.open(file, mode="r", metadata_errors="ignore")
        stream = box.streams.audio[0]
        stream.codec_context.thread_count = 1  # the process may not have more
        blocks = _av_blocks(av, box, stream)
        first = next(blocks)
    except (av.error.FFmpegError, IndexError, StopIteration, ValueError, OSError) as error:
        raise NoSound from error
    seconds = box.duration / av.time_base if box.duration and box.duration > 0 else None
    return Decoded(chain([first], blocks), seconds)


def _av_blocks(av: Any, box: Any, stream: Any) -> Iterator[Samples]:
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    with suppress(av.error.FFmpegError):  # damage after a good beginning ends the sound there
        for frame in box.decode(stream):
            yield from (each.to_ndarray().reshape(-1) for each in resampler.resample(frame))
    with suppress(av.error.FFmpegError):
        yield from (each.to_ndarray().reshape(-1) for each in resampler.resample(None))
