"""How a file of sound becomes pieces that a model can listen to: mono, 16 kHz, 16 bit, cut where it is quiet.

The file is decoded in a process of its own, like any document from strangers, and piece by piece: even of a recording
of ten hours, only one piece is in memory.

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


#: The two kinds of answers. A piece: when it begins and ends, in milliseconds, and then its samples; a piece without
#: samples marks the end. Or, for a recording that is too long, only how far it got, in milliseconds.
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
    """Where in a file to begin cutting pieces, and what that may take."""

    starts_ms: int
    least_seconds: float
    most_seconds: float
    longest_seconds: float
    cpu_seconds: float
    memory_bytes: int
