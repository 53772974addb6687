"""The worker's handles on its processes: the nursery, and the parsers that come from it.

A nursery may be killed at any time. The thread that notices gets NurseryGone and starts another.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO, TypeVar

from nexus.extract.child import frames, messages
from nexus.extract.child.frames import BadFrame
from nexus.extract.child.messages import Learned, ParserEnded, ReadDone, ReadRefused, ReadRequest
from nexus.extract.child.parser import OUT_OF_MEMORY

MIB = 1024 * 1024
#: How much of a file is sent at once.
PIECE = MIB
#: How long the nursery may take for one order before it is given up. The slowest is an import.
PATIENCE = 60.0
#: How long the nursery has to end its parsers and itself.
LAST_SECONDS = 5.0
#: The nursery imports from where the worker does.
START = "import sys; sys.path[:] = sys.argv[2:]; from nexus.extract.child.nursery import run_nursery; run_nursery()"
#: All that the nursery gets of the worker's environment: what Python may need to find its own libraries.
KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
#: How glibc takes memory in a parser: in large pages, which cost a fraction of as many small ones, without giving any
#: back, because the process soon ends, and without a list of small blocks that every large one has to tidy up.
_MEMORY = {"hugetlb": 1, "mmap_threshold": 32 * MIB, "trim_threshold": 1024 * MIB, "mxfast": 0}
#: The hash seed gives sets the same order in every parser, so that all workers read alike.
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "GLIBC_TUNABLES": ":".join(f"glibc.malloc.{name}={value}" for name, value in _MEMORY.items()),
}

LONGEST_NAME = 100
T = TypeVar("T")


class NurseryGone(Exception):
    """The nursery was killed, does not answer, or never started. Its parsers are gone with it."""


class UnknownReader(Exception):
    """There is no such reader. The argument is the name of the exception that its import raised."""


@dataclass(frozen=True)
class ParserEnd:
    """How a parser ended."""

    #: As in subprocess: a signal if below zero.
    code: int
    #: The most memory it took for its document, in bytes.
    grown: int

    @property
    def name(self) -> str:
        try:
            return signal.Signals(-self.code).name
        except ValueError:
            return str(self.code)

    @property
    def out_of_time(self) -> bool:
        return self.code == -signal.SIGXCPU

    def out_of_memory(self, limit: int) -> bool:
        return self.code == OUT_OF_MEMORY or (self.code < 0 and used_up(self.grown, limit))


class NurseryHandle:
    """A running nursery. Safe to share between threads."""

    def __init__(self) -> None:
        self.gone = False
        self._lock = threading.Lock()
        self._known: frozenset[str] = frozenset()
        self._numbers = count()
        self._line, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = start_nursery(theirs)
            except OSError as error:
                self._line.close()
                raise NurseryGone from error

    def learn(self, name: str) -> None:
        """Import a module, or a reader's module, for all parsers forked from now on. Raises UnknownReader."""
        if name in self._known:
            return
        learned = self._ask(messages.Learn(name, tuple(map(os.fsencode, import_path()))), Learned)
        if learned.error is not None:
            raise UnknownReader(class_name(learned.error))
        self._known |= {name}

    def fork(self) -> ParserHandle:
        """Order a parser that can run the readers learned so far. Doesn't wait until it is there."""
        modules = frozenset(map(module_of, self._known))
        number = next(self._numbers)
        mine, theirs = socket.socketpair()
        try:
            with theirs:
                self._tell(messages.Fork(number), pass_on=theirs)
        except BaseException:
            mine.close()
            raise
        return ParserHandle(self, number, mine, modules)

    def forget(self, number: int) -> None:
        """Kill a parser, if it is still alive. Doesn't wait for its end."""
        self._tell(messages.Forget(number))

    def end(self, number: int) -> ParserEnd:
        """Kill a parser, if it is still alive, and say how it ended."""
        ended = self._ask(messages.End(number), ParserEnded)
        return ParserEnd(ended.code, ended.grown)

    def close(self) -> None:
        """End the nursery and its parsers, and wake every thread that waits for one of them."""
        self.gone = True
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with self._lock:
            self._line.close()

    def _tell(self, order: messages.Order, pass_on: socket.socket | None = None) -> None:
        with self._order():
            self._send(order)
            if pass_on is not None:
                socket.send_fds(self._line, [b"+"], [pass_on.fileno()])

    def _ask(self, order: messages.Order, kind: type[T]) -> T:
        with self._order():
            self._send(order)
            return messages.decode(kind, frames.receive_frame(self._line, until=time.monotonic() + PATIENCE))

    def _send(self, order: messages.Order) -> None:
        self._line.settimeout(PATIENCE)
        self._line.sendall(frames.frame(messages.encode(order)))

    @contextmanager
    def _order(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except (OSError, EOFError, BadFrame) as error:
            self.close()
            raise NurseryGone from error


@dataclass(frozen=True)
class ParserInput:
    """What is to be read: bytes, or an open file, which is never in memory as a whole."""

    data: bytes | BinaryIO

    @property
    def size(self) -> int:
        return len(self.data) if isinstance(self.data, bytes) else os.fstat(self.data.fileno()).st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield the whole input. Each call starts at the beginning."""
        if isinstance(self.data, bytes):
            return filter(None, (self.data,))
        self.data.seek(0)
        return iter(partial(self.data.read, PIECE), b"")


@dataclass(eq=False)
class ParserHandle:
    """A parser process and the socket to it. It reads one document, for one thread."""

    nursery: NurseryHandle = field(repr=False)
    number: int
    line: socket.socket
    modules: frozenset[str]

    def can_read(self, reader: str) -> bool:
        return module_of(reader) in self.modules

    def is_ready(self) -> bool:
        """Wait until it is in its jail. False if it has ended, even if it was ready before. Raises NurseryGone."""
        try:
            ready = frames.receive_frame(self.line, until=time.monotonic() + PATIENCE) == messages.READY
        except TimeoutError as error:
            self.line.close()
            self.nursery.close()
            raise NurseryGone from error
        except (EOFError, OSError, BadFrame):
            return False
        poll = select.poll()
        poll.register(self.line, select.POLLIN)
        return ready and not poll.poll(0)

    def ask(self, request: ReadRequest, document: ParserInput) -> ReadDone | ReadRefused:
        """Have the document read. Raises BadFrame, TimeoutError, or EOFError if the parser ended."""
        until = time.monotonic() + request.seconds
        try:
            for part in chain([frames.frame(messages.encode(request))], document.pieces()):
                self.line.settimeout(frames.time_left(until))
                self.line.sendall(part)
            body = frames.receive_frame(self.line, request.output_bytes, until)
        except ConnectionError as error:
            raise EOFError from error
        return messages.decode_answer(body)

    def end(self) -> ParserEnd:
        """Kill the process, if it is still alive, and say how it ended. Raises NurseryGone."""
        try:
            return self.nursery.end(self.number)
        finally:
            self.line.close()

    def leave(self) -> None:
        """Kill the process, if it is still alive, without waiting for its end."""
        self.line.close()
        with suppress(NurseryGone):
            self.nursery.forget(self.number)


def start_nursery(line: socket.socket) -> subprocess.Popen[bytes]:
    """Start a nursery that has nothing but its socket, in a session of its own, so that Ctrl-C does not reach it."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", "-X", "utf8", "-c", START, str(line.fileno()), *import_path()],
        env=ENVIRONMENT | kept,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[line.fileno()],
        start_new_session=True,
    )


def used_up(grown: int, limit: int) -> bool:
    """Whether a process that failed for no stated reason ran out of memory: few libraries say that they did."""
    return grown > limit // 2


def module_of(reader: str) -> str:
    return reader.partition(":")[0]


def import_path() -> list[str]:
    """Where the worker imports from, as absolute paths: the nursery runs in another folder."""
    return [str(Path(entry).absolute()) if Path(entry).exists() else entry for entry in sys.path]


def class_name(name: str) -> str:
    """The name of a class as a parser sent it, fit for a log: anything that is not a name becomes a question mark."""
    return name if name.isidentifier() and len(name) <= LONGEST_NAME else "?"
