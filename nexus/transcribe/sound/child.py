"""What runs in the process that decodes: its file is the standard input, which it reads from beginning to end.

Each frame that it is sent asks for the next piece. Like a parser, it may read nothing else, has no network, and is
limited in memory and time.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from typing import BinaryIO

import numpy

from nexus.extract.child import jail
from nexus.inference import frames
from nexus.transcribe.sound import PIECE, RATE, TOO_LONG, SoundOrder
from nexus.transcribe.sound.formats import NoSound, Samples, decode_sound, load_formats

#: Silence is looked for in steps of this many samples, a fiftieth of a second. SILENCE steps make one.
STEP, SILENCE = 320, 15
NICENESS = 10


def run_decoder() -> None:
    """Never returns."""
    line = socket.socket(fileno=int(sys.argv[1]))
    code = 0
    try:
        order = SoundOrder(**json.loads(frames.read_frame(line)))
        with open(0, "rb", buffering=0, closefd=False) as file:
            _confine(order)
            _serve_pieces(line, order, file)
    except (EOFError, OSError):
        pass  # Nexus is gone, or wants no more
    except MemoryError:
        code = frames.OUT_OF_MEMORY
    finally:
        os._exit(code)


def _confine(order: SoundOrder) -> None:
    """The same as for parsers."""
    load_formats()
    jail.be_first_to_go()
    os.nice(NICENESS)
    jail.leave_machine()
    made = jail.build_jail()
    made.enter(os.getpid())
    jail.set_limits(order.cpu_seconds, order.memory_bytes, made.mapped)
    made.lock()


def _serve_pieces(line: socket.socket, order: SoundOrder, file: BinaryIO) -> None:
    try:
        found = decode_sound(file)
    except NoSound:
        frames.write_frame(line, frames.encode_facts({"wrong": True}))
        return
    frames.write_frame(line, frames.encode_facts({"seconds": found.seconds}))
    for piece in cut_pieces(found.blocks, order):
        frames.read_frame(line)
        frames.write_frame(line, piece)


def cut_pieces(blocks: Iterator[Samples], order: SoundOrder) -> Iterator[bytes]:
    """Yield the answers: the pieces, and then the end, or that the recording is too long."""
    most, least = int(order.most_seconds * RATE), int(order.least_seconds * RATE)
    start, at, size = order.starts_ms * RATE // 1000, 0, 0
    held: list[Samples] = []
    for block in blocks:
        if at + len(block) > order.longest_seconds * RATE:
            yield TOO_LONG.pack(_milliseconds(at))
            return
        wanted = block[max(0, start - at) :] if at < start else block
        at += len(block)
        held.append(wanted)
        size += len(wanted)
        while size >= most:
            piece, rest = _cut(start, held, least, most)
            held = [rest]
            yield piece
            start, size = start + size - len(rest), len(rest)
    if size:
        yield _packed(start, numpy.concatenate(held))
    end = _milliseconds(start + size)
    yield PIECE.pack(end, end)


def _cut(start: int, held: list[Samples], least: int, most: int) -> tuple[bytes, Samples]:
    """Return the answer with the next piece, and what is left. Only the rest stays in memory."""
    whole = numpy.concatenate(held)
    held.clear()
    cut = _quietest(whole[:most], least)
    return _packed(start, whole[:cut]), whole[cut:].copy()


def _quietest(samples: Samples, least: int) -> int:
    """Return the middle of the quietest stretch after so many samples; the last, if several are equally quiet. So a
    piece is a whole number of steps long, and of milliseconds: a later process can begin exactly there."""
    tail = samples[least:]
    steps = tail[: len(tail) // STEP * STEP].reshape(-1, STEP)
    if len(steps) <= SILENCE:
        return len(samples) // STEP * STEP
    loud = numpy.convolve((steps * steps).sum(axis=1), numpy.ones(SILENCE), "valid")
    last = len(loud) - 1 - int(loud[::-1].argmin())
    return (least // STEP + last + SILENCE // 2) * STEP


def _packed(start: int, samples: Samples) -> bytes:
    scaled = numpy.nan_to_num(samples)
    scaled.clip(-1, 1, out=scaled)
    scaled *= 32767
    times = PIECE.pack(_milliseconds(start), _milliseconds(start + len(samples)))
    return times + scaled.astype("<i2").tobytes()


def _milliseconds(samples: int) -> int:
    return samples * 1000 // RATE
