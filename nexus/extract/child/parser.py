"""A parser process: it reads one document, answers, and ends."""

from __future__ import annotations

import importlib
import os
import resource
import socket

from nexus.errors import ParserOutput, WorkError
from nexus.extract import Reader
from nexus.extract.child import frames, jail, messages
from nexus.extract.child.messages import ReadRefused, ReadRequest

#: The exit code of a parser that has no memory left, not even for an answer.
OUT_OF_MEMORY = 77


def load_reader(reader: str) -> Reader:
    """Import a reader, named as `module:function`."""
    module, _, function = reader.partition(":")
    found: Reader = getattr(importlib.import_module(module), function)
    return found


def serve_one_document(line: socket.socket, mapped: int, used: int) -> None:
    """Never returns. `mapped` and `used` say how much memory the process had when it began."""
    code = 1
    try:
        line.sendall(frames.frame(messages.READY))
        _read_document(line, mapped, used)
        code = 0
    except EOFError:
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY
    finally:
        os._exit(code)


def _read_document(line: socket.socket, mapped: int, used: int) -> None:
    """The limits are set before the document arrives, because its bytes count too."""
    request = messages.decode(ReadRequest, frames.receive_frame(line))
    jail.set_limits(request.seconds, request.memory_bytes, mapped)
    line.sendall(frames.frame(_answer(request, frames.receive_document(line, request.size), used)))


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
