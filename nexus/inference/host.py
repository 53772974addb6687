"""A model's process, as Nexus holds it: started with the first frame, used by one thread at a time, started again if it
ended.

A process that was idle may have ended itself, and one that worked may have been killed: a frame gets a second process
before that counts as a failure. Each frame is sent on its own, so one that ends the process harms no other.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from nexus import logging
from nexus.inference import frames

log = logging.get_logger(__name__)

#: How long loading libraries and a model may take.
START_SECONDS = 60.0
#: How often a thread that waits for an answer looks whether it still should.
LOOK_SECONDS = 0.5
#: All that a process gets of the environment: what Python may need to find its own libraries.
KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
#: Libraries are told to use one thread, because most machines that run Nexus have other work, and no network.
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}


class UnfitModel(Exception):
    """The process says that the model can't be used. The text continues the sentence "The model …"."""


class LostProcess(Exception):
    """There is no answer, because the process ended for no known reason."""


class SlowProcess(LostProcess):
    """The process took too long, and was ended."""


class FullProcess(LostProcess):
    """The process had not enough memory."""


class ClosedProcess(LostProcess):
    """The process was ended, because Nexus is ending."""


def ask_nobody() -> None:
    """Nothing ends the wait but its time."""


def start_code(function: str) -> str:
    """Return a program for a process: it imports from where Nexus does, and runs a function named `module:function`."""
    module, _, name = function.partition(":")
    return f"import sys; sys.path[:] = sys.argv[2:]; from {module} import {name}; {name}()"


@dataclass(frozen=True)
class HostedModel:
    """How a process is started, and what it may take."""

    #: What logs call it.
    name: str
    #: The program that it runs.
    program: str
    #: What it is told first.
    order: dict[str, object]
    answer_seconds: float
    most_bytes: int = frames.MOST_BYTES


class ModelHost:
    """Safe to share between threads: they take turns."""

    def __init__(self, hosted: Callable[[], HostedModel]) -> None:
        self._hosted = hosted
        self._turns = TurnQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._child: ChildProcess | None = None

    @property
    def process_id(self) -> int | None:
        """None if there is no process at the moment."""
        child = self._child
        return child.process.pid if child is not None else None

    def ask(self, body: bytes, watch: Callable[[], None] = ask_nobody) -> bytes:
        """Return the answer to one frame. `watch` is called while it waits: what that raises ends the process.

        Raises UnfitModel, or LostProcess or a kind of it.
        """
        hosted = self._hosted()
        with self._turns.turn():
            if self._child is not None:
                with suppress(EOFError):
                    return self._told(self._child, hosted, body, hosted.answer_seconds, watch)
            try:
                return self._told(self._start(hosted), hosted, body, hosted.answer_seconds, watch)
            except EOFError:
                self._drop(hosted)
                raise LostProcess from None

    def close(self) -> None:
        """End the process, and wake the thread that waits for it."""
        with self._lock:
            self._closed = True
            child, self._child = self._child, None
        if child is not None:
            child.end()

    def _start(self, hosted: HostedModel) -> ChildProcess:
        self._drop(hosted)
        try:
            child = ChildProcess(hosted.program)
        except OSError as error:
            log.warning(f"{hosted.name}_process_lost", reason=type(error).__name__)
            raise LostProcess from None
        with self._lock:
            self._child = child
            closed = self._closed
        if closed:
            self._drop(hosted)
            raise ClosedProcess
        order = frames.encode_facts(hosted.order)
        found = json.loads(self._told(child, hosted, order, START_SECONDS, ask_nobody))
        if "wrong" in found:
            self._drop(hosted)
            raise UnfitModel(found["wrong"])
        return child

    def _told(
        self,
        child: ChildProcess,
        hosted: HostedModel,
        body: bytes,
        seconds: float,
        watch: Callable[[], None],
    ) -> bytes:
        """Send a frame and wait for the answer. Raises EOFError if the process ended for no known reason."""
        try:
            return child.told(body, seconds, watch, hosted.most_bytes)
        except TimeoutError:
            self._drop(hosted)
            raise SlowProcess from None
        except (OSError, EOFError, frames.GarbledFrame):
            code = self._drop(hosted)
            if self._closed:
                raise ClosedProcess from None
            if code == frames.OUT_OF_MEMORY:
                raise FullProcess from None
            raise EOFError from None
        except BaseException:
            self._drop(hosted)
            raise

    def _drop(self, hosted: HostedModel) -> int | None:
        """End the process, if there is one, and return how it ended."""
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return None
        code = child.end()
        if code:
            log.warning(f"{hosted.name}_process_lost", reason=ending_of(code))
        return code


class ChildProcess:
    """A process that has nothing but its socket, in a session of its own, so that Ctrl-C does not reach it."""

    def __init__(
        self, program: str, document: IO[bytes] | None = None, environment: Mapping[str, str] = ENVIRONMENT
    ) -> None:
        self.line, theirs = socket.socketpair()
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        places = [str(Path(entry).absolute()) if Path(entry).exists() else entry for entry in sys.path]
        with theirs:
            try:
                self.process = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-P", "-X", "utf8", "-c", program, str(theirs.fileno()), *places],
                    env={**environment, **kept},
                    cwd="/",
                    stdin=document or subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except BaseException:
                self.line.close()
                raise

    def told(self, body: bytes, seconds: float, watch: Callable[[], None], most: int) -> bytes:
        """Send a frame and wait for the answer.

        Raises TimeoutError, OSError, EOFError or GarbledFrame, or what `watch` raises while it waits.
        """
        until = time.monotonic() + seconds
        left = memoryview(frames.whole_frame(body))
        self.line.settimeout(0)
        while left:
            self._wait(select.POLLOUT, until, watch)
            left = left[self.line.send(left) :]
        self._wait(select.POLLIN, until, watch)
        return frames.read_frame(self.line, until, most)

    def _wait(self, event: int, until: float, watch: Callable[[], None]) -> None:
        ready = select.poll()
        ready.register(self.line, event)
        while not ready.poll(1000 * min(LOOK_SECONDS, max(until - time.monotonic(), 0.0))):
            watch()
            if time.monotonic() >= until:
                raise TimeoutError

    def end(self) -> int:
        """End it, if it is still alive. Returns how it ended on its own, as subprocess does; 0 if it did not."""
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for an answer
        ended = self._ended_by_itself()
        self.process.kill()
        self.process.wait()
        self.line.close()
        return ended

    def _ended_by_itself(self) -> int:
        """The socket closes a moment before the process has an exit code."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(0.5)
        return 0


class TurnQueue:
    """Lets one thread in at a time, in the order of asking: a long book holds up a short article by one text only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._waiting: deque[threading.Lock] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        self._wait()
        try:
            yield
        finally:
            self._pass_on()

    def _wait(self) -> None:
        ticket = threading.Lock()
        with self._lock:
            if not self._busy:
                self._busy = True
                return
            ticket.acquire()
            self._waiting.append(ticket)
        try:
            ticket.acquire()
        except BaseException:
            self._give_up(ticket)
            raise

    def _give_up(self, ticket: threading.Lock) -> None:
        """Ctrl-C may come after the turn did."""
        with self._lock:
            left = ticket in self._waiting
            if left:
                self._waiting.remove(ticket)
        if not left:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._busy = False


def ending_of(code: int) -> str:
    """Say how a process ended: the name of a signal, or its exit code."""
    try:
        return signal.Signals(-code).name
    except ValueError:
        return str(code)
