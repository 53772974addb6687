"""Bytes on the sockets between worker, nursery and parsers.

A frame is the length of its body, and the body.
"""

from __future__ import annotations

import socket
import struct
import time

HEAD = struct.Struct("!Q")
#: The longest body without a document in it: a request, or anything the nursery says.
SHORT = 1024 * 1024


class BadFrame(Exception):
    """The other side sent something that is not part of the protocol."""


class FrameTooLarge(BadFrame):
    """The other side sent more than it may."""


def time_left(until: float) -> float:
    """The timeout for a socket; never 0, which would mean not to wait at all."""
    return max(until - time.monotonic(), 1e-6)


def frame(body: bytes) -> bytes:
    return HEAD.pack(len(body)) + body


def receive_frame(line: socket.socket, most: int = SHORT, until: float | None = None) -> bytearray:
    """Return the body of the next frame.

    Raises BadFrame, TimeoutError, or EOFError if the other side is gone. A body longer than `most` is refused before
    any memory is set aside for it.
    """
    (size,) = HEAD.unpack(_receive_exactly(line, HEAD.size, until))
    if size > most:
        raise FrameTooLarge
    return _receive_exactly(line, size, until)


def receive_document(line: socket.socket, size: int) -> bytes:
    """Return the bytes that follow a request, read straight into place: a large document is never copied."""
    data = line.recv(size, socket.MSG_WAITALL) if size else b""
    if len(data) != size:
        raise EOFError
    return data


def _receive_exactly(line: socket.socket, size: int, until: float | None) -> bytearray:
    found = bytearray(size)
    rest = memoryview(found)
    while rest:
        line.settimeout(None if until is None else time_left(until))
        length = line.recv_into(rest)
        if not length:
            raise EOFError
        rest = rest[length:]
    return found
