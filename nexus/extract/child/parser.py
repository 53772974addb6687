"""The life of a parser: it reads one document after the other, until its line to the worker ends."""

from __future__ import annotations

import gc
import importlib
import os
import resource
import socket
from collections.abc import Sequence

from nexus.errors import ParserOutput, WorkError
from nexus.extract import Reader
from nexus.extract.child import jail, wire
from nexus.extract.child.wire import Request, Value

#: The exit code of a parser that has no memory left, not even for an answer.
OUT_OF_MEMORY = 77
#: A document makes many objects that live as long as its reading: to look among them for garbage is seldom worth it.
GARBAGE = 100_000
READ, REFUSED = "read", "refused"


def find(reader: str) -> Reader:
    """A reader is named as `module:function`."""
    module, _, function = reader.partition(":")
    found: Reader = getattr(importlib.import_module(module), function)
    return found


def live(line: socket.socket, readable: Sequence[str]) -> None:
    """Never returns."""
    code = 1
    try:
        mapped, used = jail.memory()
        jail.enter(readable)
        gc.set_threshold(GARBAGE)
        while True:
            _read_next(line, mapped, used)
    except EOFError:
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY
    finally:
        os._exit(code)


def _read_next(line: socket.socket, mapped: int, used: int) -> None:
    """The limits are set before the document is taken in: it counts, too."""
    tag, values = wire.receive(line)
    request = wire.request_of(values)
    jail.limit(request.seconds, request.memory_bytes, mapped)
    line.sendall(_answer(tag, request, wire.receive_data(line, request.size), used))


def _answer(tag: bytes, request: Request, data: bytes, used: int) -> bytes:
    """Whatever a reader raises is an answer, but for the end of memory: after that the process is good for nothing."""
    refusal: list[Value]
    try:
        found = find(request.reader)(data, request.hints)
        return wire.frame(
            [_grown(used), READ, *wire.extraction_values(found)], tag, most=request.output_bytes
        )
    except MemoryError:
        raise
    except wire.TooLarge:
        refusal = [ParserOutput.code, "", ""]
    except WorkError as error:
        refusal = [error.code, error.message, type(error).__name__]
    except BaseException as error:
        refusal = ["", "", type(error).__name__]
    return wire.frame([_grown(used), REFUSED, *refusal], tag)


def _grown(used: int) -> int:
    return max(0, jail.peak(resource.getrusage(resource.RUSAGE_SELF)) - used)
