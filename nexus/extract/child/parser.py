"""A parser process: it reads one document after another until the worker closes its socket."""

from __future__ import annotations

import gc
import importlib
import os
import resource
import socket
from collections.abc import Sequence

from nexus.errors import ParserOutput, WorkError
from nexus.extract import Reader
from nexus.extract.child import frames, jail, messages
from nexus.extract.child.messages import ReadRefused, ReadRequest

#: The exit code of a parser that has no memory left, not even for an answer.
OUT_OF_MEMORY = 77
#: Nearly all objects live as long as the document is read, so looking for garbage among them is seldom worth it.
GARBAGE = 100_000


def load_reader(reader: str) -> Reader:
    """Import a reader, named as `module:function`."""
    module, _, function = reader.partition(":")
    found: Reader = getattr(importlib.import_module(module), function)
    return found


def serve(line: socket.socket, readable: Sequence[str]) -> None:
    """Never returns."""
    code = 1
    try:
        mapped, used = jail.memory_in_use()
        jail.enter_jail(readable)
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
    """The limits are set before the document arrives, because its bytes count too."""
    tag, body = frames.receive_frame(line)
    request = messages.decode(ReadRequest, body)
    jail.set_limits(request.seconds, request.memory_bytes, mapped)
    line.sendall(frames.frame(_answer(request, frames.receive_document(line, request.size), used), tag))


def _answer(request: ReadRequest, data: bytes, used: int) -> bytes:
    """Whatever a reader raises becomes an answer, except MemoryError: after that the process is good for nothing."""
    try:
        found = load_reader(request.reader)(data, request.hints)
        return messages.encode_done(_grown(used), found, request.output_bytes)
    except MemoryError:
        raise
    except frames.FrameTooLarge:
        refusal = (ParserOutput.code, "", "")
    except WorkError as error:
        refusal = (error.code, error.message, type(error).__name__)
    except BaseException as error:
        refusal = ("", "", type(error).__name__)
    return messages.encode(ReadRefused(_grown(used), *refusal))


def _grown(used: int) -> int:
    return max(0, jail.peak_memory(resource.getrusage(resource.RUSAGE_SELF)) - used)
