"""Decodes content encodings in steps of bounded size: a small body may decode to a very large one."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import brotli  # type: ignore[import-untyped]

from nexus.errors import FetchBadAnswer, FetchFailed

#: About how much one step returns.
STEP = 64 * 1024
GZIP_MAGIC = b"\x1f"
#: Each member costs a decoder and may be empty.
MOST_GZIP_MEMBERS = 1000

CUT_SHORT = "The site's answer was cut short. Check that it opens in a browser, then retry."


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode bytes step by step. A step may be empty. Raises FetchBadAnswer."""
        ...

    def end(self) -> Iterator[bytes]:
        """Return what is left after the last bytes. Raises FetchFailed if some are missing."""
        ...


class Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def end(self) -> Iterator[bytes]:
        yield b""


class Gzip:
    """Decodes one member after another. What follows the last one is ignored, as browsers do."""

    def __init__(self) -> None:
        self._engine: zlib._Decompress | None = None
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._engine is None or self._engine.eof:
                if self._engine and not data.startswith(GZIP_MAGIC):
                    return
                self._engine = self._next_member()
            yield from _inflate(self._engine, data)
            data = self._engine.unused_data

    def end(self) -> Iterator[bytes]:
        if self._engine and not self._engine.eof:
            raise FetchFailed(CUT_SHORT)
        yield b""

    def _next_member(self) -> zlib._Decompress:
        self._members += 1
        if self._members > MOST_GZIP_MEMBERS:
            raise FetchBadAnswer
        return zlib.decompressobj(31)


class Deflate:
    """Decodes deflate with the zlib wrapper, or without it, as many servers send it."""

    def __init__(self) -> None:
        self._engine: zlib._Decompress | None = None
        self._start = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._engine is None:
            data = self._start = self._start + data
            if len(data) < 2:
                return
            self._engine = zlib.decompressobj(15 if _is_wrapped(data) else -15)
        if not self._engine.eof:
            yield from _inflate(self._engine, data)

    def end(self) -> Iterator[bytes]:
        if self._start and not (self._engine and self._engine.eof):
            raise FetchFailed(CUT_SHORT)
        yield b""


class Brotli:
    def __init__(self) -> None:
        self._engine = brotli.Decompressor()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = True
        yield self._step(data)
        while not self._engine.can_accept_more_data():
            yield self._step(b"")

    def end(self) -> Iterator[bytes]:
        """The engine accepts more input while it still holds output, which comes out here."""
        while self._begun and not self._engine.is_finished():
            if not (piece := self._step(b"")):
                raise FetchFailed(CUT_SHORT)
            yield piece

    def _step(self, data: bytes) -> bytes:
        try:
            piece: bytes = self._engine.process(data, output_buffer_limit=STEP)
        except brotli.error as error:
            raise FetchBadAnswer from error
        return piece


DECODERS: dict[str, Callable[[], Decoder]] = {
    "": Identity,
    "identity": Identity,
    "gzip": Gzip,
    "x-gzip": Gzip,
    "deflate": Deflate,
    "br": Brotli,
}
OFFERED = "gzip, deflate, br"


def make_decoder(encoding: str) -> Decoder:
    """Return a decoder. Raises FetchBadAnswer for several encodings, or one that was not offered."""
    make = DECODERS.get(encoding.strip().lower())
    if make is None:
        raise FetchBadAnswer
    return make()


def _is_wrapped(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0


def _inflate(engine: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Inflate until the data is used up. After a full piece more may follow, even if all input is read."""
    try:
        while True:
            piece = engine.decompress(data, STEP)
            yield piece
            data = engine.unconsumed_tail
            if engine.eof or (not data and len(piece) < STEP):
                return
    except zlib.error as error:
        raise FetchBadAnswer from error
