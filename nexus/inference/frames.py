"""Bytes on the socket between Nexus and a model's process: the length of a body, and the body.

Nexus speaks first, and says which model to load. It hears whether that worked. Then each frame is answered by another.
"""

from __future__ import annotations

import json
import socket
import struct
import time

_HEAD = struct.Struct("<I")
#: The exit code of a process that has no memory left, not even for an answer.
OUT_OF_MEMORY = 2
#: The longest body, unless both sides know better: many times the longest text, and the longest vector.
MOST_BYTES = 4 * 1024 * 1024


class GarbledFrame(Exception):
    """The other side sent something that is not part of the protocol."""


def encode_facts(facts: dict[str, object]) -> bytes:
    return json.dumps(facts).encode()


def whole_frame(body: bytes) -> bytes:
    return _HEAD.pack(len(body)) + body


def write_frame(line: socket.socket, body: bytes) -> None:
    line.settimeout(None)
    line.sendall(whole_frame(body))


def read_frame(line: socket.socket, until: float | None = None, most: int = MOST_BYTES) -> bytes:
    """Raises GarbledFrame, TimeoutError, or EOFError if the other side is gone."""
    (size,) = _HEAD.unpack(_receive(line, _HEAD.size, until))
    if size > most:
        raise GarbledFrame
    return _receive(line, size, until)


def _receive(line: socket.socket, size: int, until: float | None) -> bytes:
    found = bytearray()
    while len(found) < size:
        _wait_until(line, until)
        piece = line.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _wait_until(line: socket.socket, until: float | None) -> None:
    """A timeout of 0 would mean not to wait at all."""
    line.settimeout(None if until is None else max(until - time.monotonic(), 1e-6))
