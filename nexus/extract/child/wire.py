"""What goes between the processes: lists of values, each one bytes or nothing. Only data: nothing of it is ever run.

A frame is a tag, the number of values, how long they are together, how long each is, and then the values. The answer
to a request has the tag of the request.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from nexus.extract import Asset, Extraction, Facts, Fragment, Heading, Hints

TAG_LENGTH = 8
HEAD = struct.Struct(f"!{TAG_LENGTH}sQQ")
NOTHING = 2**64 - 1
#: Each value costs memory of its own where it is read, however short it is.
MOST_VALUES = 400_000
#: Any file's length, and no more than any database holds.
MOST_NUMBER = 2**53
#: A request without its data, an answer of the nursery.
SHORT = 1024 * 1024
_SURROGATES = re.compile("[\ud800-\udfff]")
_FACTS = tuple(field.name for field in fields(Facts))
_HINTS = tuple(field.name for field in fields(Hints))

Value = bytes | str | int | float | None


class BadFrame(Exception):
    """This is not what was agreed on."""


class TooLarge(BadFrame):
    """More than the other side may send."""


@dataclass(frozen=True)
class Request:
    """A document to read. Its bytes follow the frame, so that they need not be copied into one."""

    reader: str
    size: int
    seconds: float
    memory_bytes: int
    output_bytes: int
    hints: Hints


def left(until: float) -> float:
    """For a socket, to which 0 would mean not to wait at all."""
    return max(until - time.monotonic(), 1e-6)


def new_tag() -> bytes:
    return os.urandom(TAG_LENGTH)


def frame(values: Sequence[Value], tag: bytes = bytes(TAG_LENGTH), most: int = NOTHING) -> bytes:
    """Raises TooLarge as soon as it is clear that it will be."""
    _check_size(len(values), 0, most)
    parts: list[bytes] = []
    lengths: list[int] = []
    size = 0
    for value in values:
        part = _encode(value)
        lengths.append(NOTHING if part is None else len(part))
        parts.append(part or b"")
        size += len(parts[-1])
        _check_size(len(values), size, most)
    head = HEAD.pack(tag, len(values), size) + struct.pack(f"!{len(values)}Q", *lengths)
    return b"".join([head, *parts])


def receive(
    line: socket.socket, most: int = SHORT, until: float | None = None, tag: bytes | None = None
) -> tuple[bytes, Iterator[bytes | None]]:
    """The tag and the values. Raises BadFrame, TimeoutError, and EOFError when the other side is gone."""
    found, count, size = HEAD.unpack(_exactly(line, HEAD.size, until))
    if tag not in {None, found}:
        raise BadFrame
    _check_size(count, size, most)
    lengths = struct.unpack(f"!{count}Q", _exactly(line, 8 * count, until))
    if sum(length for length in lengths if length != NOTHING) != size:
        raise BadFrame
    return found, _cut(_exactly(line, size, until), lengths)


def values_of(framed: bytes) -> Iterator[bytes | None]:
    """Of a whole frame that was kept. Raises BadFrame."""
    try:
        _, count, size = HEAD.unpack_from(framed)
        lengths = struct.unpack_from(f"!{count}Q", framed, HEAD.size)
    except struct.error as error:
        raise BadFrame from error
    body = framed[HEAD.size + 8 * count :]
    if len(body) != size:
        raise BadFrame
    return _cut(bytearray(body), lengths)


def receive_data(line: socket.socket, size: int) -> bytes:
    """Straight into its place: a large document is not copied."""
    data = line.recv(size, socket.MSG_WAITALL) if size else b""
    if len(data) != size:
        raise EOFError
    return data


def request_values(request: Request) -> list[Value]:
    hints = [getattr(request.hints, name) for name in _HINTS]
    return [
        request.reader,
        request.size,
        request.seconds,
        request.memory_bytes,
        request.output_bytes,
        *hints,
    ]


def request_of(values: Iterator[bytes | None]) -> Request:
    reader, size, seconds = text(next(values)), number(next(values)), float(text(next(values)))
    memory, output = number(next(values)), number(next(values))
    return Request(reader, size, seconds, memory, output, Hints(*map(optional_text, values)))


def extraction_values(found: Extraction) -> list[Value]:
    values: list[Value] = [len(found.fragments), len(found.outline), len(found.assets), found.title]
    values += [getattr(found.facts, name) for name in _FACTS]
    for fragment in found.fragments:
        values += (fragment.text, fragment.html)
    for heading in found.outline:
        values += (heading.title, heading.level, heading.anchor)
    for asset in found.assets:
        values += (asset.name, asset.content_type, asset.data)
    return values


def extraction_of(values: Iterator[bytes | None]) -> Extraction:
    """Raises BadFrame for everything that is not an extraction, whole and nothing else."""
    try:
        found = _extraction_of(values)
    except (StopIteration, ValueError) as error:
        raise BadFrame from error
    if list(values):
        raise BadFrame
    return found


def _extraction_of(values: Iterator[bytes | None]) -> Extraction:
    fragments, headings, assets = [number(next(values)) for _ in range(3)]
    title = optional_text(next(values))
    facts = Facts(*[optional_text(next(values)) for _ in _FACTS])
    return Extraction(
        title,
        tuple([Fragment(text(next(values)), optional_text(next(values))) for _ in range(fragments)]),
        facts,
        tuple(
            [Heading(text(next(values)), number(next(values)), text(next(values))) for _ in range(headings)]
        ),
        tuple([Asset(text(next(values)), text(next(values)), blob(next(values))) for _ in range(assets)]),
    )


def blob(value: bytes | None) -> bytes:
    if value is None:
        raise BadFrame
    return value


def text(value: bytes | None) -> str:
    return blob(value).decode()


def optional_text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def number(value: bytes | None) -> int:
    found = int(blob(value)[:20])
    if not 0 <= found <= MOST_NUMBER:
        raise BadFrame
    return found


def _encode(value: Value) -> bytes | None:
    match value:
        case None | bytes():
            return value
        case str():
            return _utf8(value)
        case int() | float():
            return repr(value).encode()
    raise TypeError(type(value).__name__)


def _utf8(value: str) -> bytes:
    """A half of a surrogate pair has no place in UTF-8: each becomes one U+FFFD, so that offsets stay."""
    try:
        return value.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", value).encode()


def _check_size(count: int, size: int, most: int) -> None:
    if count > MOST_VALUES or HEAD.size + 8 * count + size > most:
        raise TooLarge


def _exactly(line: socket.socket, size: int, until: float | None) -> bytearray:
    found = bytearray(size)
    rest = memoryview(found)
    while rest:
        line.settimeout(None if until is None else left(until))
        length = line.recv_into(rest)
        if not length:
            raise EOFError
        rest = rest[length:]
    return found


def _cut(body: bytearray, lengths: Sequence[int]) -> Iterator[bytes | None]:
    start = 0
    for length in lengths:
        if length == NOTHING:
            yield None
        else:
            yield bytes(memoryview(body)[start : start + length])
            start += length
