"""The process that decodes one file, as Nexus holds it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO, Self

from nexus import logging
from nexus.errors import SoundTooLong, SoundUnreadable, TranscriptionCrashed, TranscriptionMemory
from nexus.inference import frames
from nexus.inference.host import ENVIRONMENT, ChildProcess, ask_nobody, ending_of, start_code
from nexus.transcribe.sound import (
    MOST_HOURS,
    PIECE,
    RATE,
    TOO_LONG,
    WIDTH,
    PieceLengths,
    SoundOrder,
    SoundPiece,
)

log = logging.get_logger(__name__)

START = start_code("nexus.transcribe.sound.child:run_decoder")
MIB = 1024 * 1024
#: Left to itself, glibc soon takes pieces from its heap, and may keep as much again that is free. Large blocks that it
#: gives back at once keep the process as small after ten hours as after one.
SMALL = {**ENVIRONMENT, "GLIBC_TUNABLES": f"glibc.malloc.mmap_threshold={MIB}"}
#: How long starting the process and loading the decoders may take, and how long one piece may, apart from what is
#: skipped before it. Both are many times what is usual.
START_SECONDS, PIECE_SECONDS = 60.0, 60.0
#: How many seconds of sound are decoded in a second, at the very least.
SLOWEST = 30


@dataclass(frozen=True)
class SoundLimits:
    """What decoding one file may take."""

    #: Processor time for the whole file.
    cpu_seconds: float = 1800.0
    #: Beyond what Python and its libraries have mapped.
    memory_bytes: int = 512 * MIB
    longest_seconds: float = MOST_HOURS * 3600.0


@dataclass
class OpenSound:
    """A file of sound, decoded from a moment on. A context manager that ends the process.

    Methods raise SoundUnreadable, SoundTooLong, TranscriptionCrashed or TranscriptionMemory, and what `watch` raises.
    """

    file: BinaryIO
    lengths: PieceLengths
    starts_ms: int = 0
    watch: Callable[[], None] = ask_nobody
    limits: SoundLimits = SoundLimits()
    #: How long it is in all, if the file says so; it may be wrong.
    seconds: float | None = field(default=None, init=False)
    _child: ChildProcess | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        order = SoundOrder(
            self.starts_ms,
            *self.lengths,
            self.limits.longest_seconds,
            self.limits.cpu_seconds,
            self.limits.memory_bytes,
        )
        try:
            os.lseek(self.file.fileno(), 0, os.SEEK_SET)
            self._child = ChildProcess(START, self.file, SMALL)
        except OSError as error:
            raise TranscriptionCrashed from error
        try:
            found = json.loads(self._told(frames.encode_facts(order._asdict()), START_SECONDS))
            if "wrong" in found:
                raise SoundUnreadable
        except BaseException:
            self._end()
            raise
        self.seconds = found["seconds"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def process_id(self) -> int | None:
        """None outside of its with."""
        return None if self._child is None else self._child.process.pid

    def pieces(self) -> Iterator[SoundPiece]:
        """Yield the sound in order. Nothing is decoded before it is asked for."""
        seconds = PIECE_SECONDS + self.starts_ms / 1000 / SLOWEST
        while True:
            answer = self._told(b"", seconds)
            seconds = PIECE_SECONDS
            if len(answer) == TOO_LONG.size:
                raise SoundTooLong
            starts_ms, ends_ms = PIECE.unpack_from(answer)
            samples = answer[PIECE.size :]
            if not samples:
                self.seconds = ends_ms / 1000
                return
            yield SoundPiece(starts_ms, ends_ms, samples)

    def _told(self, body: bytes, seconds: float) -> bytes:
        child = self._child
        assert child is not None, "used outside of its with"  # noqa: S101
        most = PIECE.size + int(self.lengths.most + 1) * RATE * WIDTH
        try:
            return child.told(body, seconds, self.watch, most)
        except TimeoutError:
            raise SoundUnreadable("Decoding its sound took too long and was stopped.") from None
        except (OSError, EOFError, frames.GarbledFrame):
            raise self._explained(self._end()) from None

    def _explained(self, code: int) -> Exception:
        log.warning("decoding_process_lost", reason=ending_of(code))
        return TranscriptionMemory() if code == frames.OUT_OF_MEMORY else TranscriptionCrashed()

    def _end(self) -> int:
        child, self._child = self._child, None
        with suppress(OSError):
            return child.end() if child is not None else 0
        return 0
