"""The worker's hold on its parsers: the nursery they come from, and a line to each.

A nursery may be killed at any time. Whoever notices it gets NurseryGone, and makes another.
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
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from nexus.extract.child import wire
from nexus.extract.child.parser import OUT_OF_MEMORY
from nexus.extract.child.wire import BadFrame, Request, Value

#: How long the nursery may take for one thing, an import above all, before it is given up.
PATIENCE = 60.0
#: How long it has to end its parsers and itself.
LAST_SECONDS = 5.0
#: Imports what the worker can import, from wherever it is.
START = "import sys; sys.path[:] = sys.argv[2:]; from nexus.extract.child.nursery import main; main()"
#: Nothing of the worker's environment, but what a Python may need to find its own libraries.
KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
#: Sets have the same order in every parser, so that all workers read alike.
ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC"}

LONGEST_NAME = 100
#: Of a file on its way to a parser.
PIECE = 1024 * 1024


class NurseryGone(Exception):
    """It was killed, does not answer, or never came up. Its parsers are gone with it."""


class Unknown(Exception):
    """There is no such reader. Its argument is the kind of error."""


@dataclass(frozen=True)
class Death:
    """How a parser ended."""

    #: As of subprocess: below zero it is the signal.
    code: int
    #: How much memory it took for its documents, at most.
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


class Nursery:
    """Safe to share between threads."""

    def __init__(self) -> None:
        self.gone = False
        self._lock = threading.Lock()
        self._known: frozenset[str] = frozenset()
        self._line, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = start(theirs)
            except OSError as error:
                self._line.close()
                raise NurseryGone from error

    def learn(self, name: str) -> None:
        """Import a module, or a reader's, so that the parsers to come have it. Raises Unknown."""
        if name in self._known:
            return
        (trouble,) = self._ask("learn", name, *map(os.fsencode, import_path()))
        if trouble is not None:
            raise Unknown(identifier(wire.text(trouble)))
        self._known |= {name}

    def fork(self) -> Parser:
        """It has what was learned before."""
        modules = frozenset(map(module_of, self._known))
        mine, theirs = socket.socketpair()
        try:
            with theirs:
                (pid,) = self._ask("fork", pass_on=theirs)
        except BaseException:
            mine.close()
            raise
        return Parser(self, wire.number(pid), mine, modules)

    def end(self, pid: int) -> Death:
        """Kill it, if it still lives."""
        code, grown = self._ask("end", pid)
        return Death(int(wire.text(code)), wire.number(grown))

    def close(self) -> None:
        """Ends its parsers and itself, and wakes whoever waits for it."""
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

    def _ask(self, *values: Value, pass_on: socket.socket | None = None) -> list[bytes | None]:
        try:
            with self._lock:
                self._line.settimeout(PATIENCE)
                self._line.sendall(wire.frame(values))
                if pass_on is not None:
                    socket.send_fds(self._line, [b"+"], [pass_on.fileno()])
                _, answer = wire.receive(self._line, until=time.monotonic() + PATIENCE)
                return list(answer)
        except (OSError, EOFError, BadFrame) as error:
            self.close()
            raise NurseryGone from error


@dataclass(frozen=True)
class Document:
    """What is to be read: bytes, or an open file, which never is in memory as a whole."""

    data: bytes | BinaryIO

    @property
    def size(self) -> int:
        return len(self.data) if isinstance(self.data, bytes) else os.fstat(self.data.fileno()).st_size

    def pieces(self) -> Iterator[bytes]:
        """From the beginning, however often."""
        if isinstance(self.data, bytes):
            return filter(None, (self.data,))
        self.data.seek(0)
        return iter(partial(self.data.read, PIECE), b"")


@dataclass
class Parser:
    """One process, and the line to it. One thread at a time has it."""

    nursery: Nursery = field(repr=False)
    pid: int
    line: socket.socket
    modules: frozenset[str]
    documents: int = 0

    def fits(self, reader: str) -> bool:
        """It has the reader and waits: it has neither ended nor anything left to say."""
        poll = select.poll()
        poll.register(self.line, select.POLLIN)
        return module_of(reader) in self.modules and not poll.poll(0)

    def ask(self, request: Request, document: Document) -> Iterator[bytes | None]:
        """The values of its answer. Raises BadFrame, TimeoutError, and EOFError when it has ended."""
        self.documents += 1
        tag = wire.new_tag()
        until = time.monotonic() + request.seconds
        try:
            for part in chain([wire.frame(wire.request_values(request), tag)], document.pieces()):
                self.line.settimeout(wire.left(until))
                self.line.sendall(part)
            return wire.receive(self.line, request.output_bytes, until, tag)[1]
        except ConnectionError as error:
            raise EOFError from error

    def end(self) -> Death:
        """Raises NurseryGone."""
        try:
            return self.nursery.end(self.pid)
        finally:
            self.line.close()


def start(line: socket.socket) -> subprocess.Popen[bytes]:
    """With nothing but its line, in a session of its own: what a terminal sends is not for it."""
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
    """Whether a failure without a name is one of memory: few libraries say so when they are refused more of it."""
    return grown > limit // 2


def module_of(reader: str) -> str:
    return reader.partition(":")[0]


def import_path() -> list[str]:
    """What the worker imports from, in words that hold in another folder."""
    return [str(Path(entry).absolute()) if Path(entry).exists() else entry for entry in sys.path]


def identifier(name: str) -> str:
    """The name of a class, as a parser gives it: nothing else may get into a log by this way."""
    return name if name.isidentifier() and len(name) <= LONGEST_NAME else "?"
