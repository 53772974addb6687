"""How a file of sound becomes pieces that a model can listen to: mono, 16 kHz, 16 bit, cut where it is quiet.

The file is decoded in a process of its own, like any document of strangers, and piece by piece: of a recording of ten
hours, one piece is in memory.

    process.py   holds that process, and explains its failures   in the worker
    child.py     decodes and cuts                                 in the process
    formats.py   what reads which format                          in the process
"""

from __future__ import annotations

import struct
from typing import NamedTuple

#: Samples per second, and bytes per sample.
RATE, WIDTH = 16_000, 2
#: Longer recordings are refused: a small file can decode to weeks of silence.
MOST_HOURS = 24


#: What the process answers: when a piece begins and ends, in milliseconds, and its samples. One without samples is the
#: end; an answer of this form alone says how long a recording is that is too long.
PIECE, TOO_LONG = struct.Struct("<qq"), struct.Struct("<q")


class PieceLengths(NamedTuple):
    """A piece ends at the quietest moment between these, in seconds."""

    least: float
    most: float


class SoundPiece(NamedTuple):
    starts_ms: int
    ends_ms: int
    #: Little-endian 16-bit samples.
    samples: bytes

    @property
    def seconds(self) -> float:
        return (self.ends_ms - self.starts_ms) / 1000


class SoundOrder(NamedTuple):
    """From where on a file is cut into pieces, and what that may take."""

    starts_ms: int
    least_seconds: float
    most_seconds: float
    longest_seconds: float
    cpu_seconds: float
    memory_bytes: int
