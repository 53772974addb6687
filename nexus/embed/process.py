"""A model's process, as Nexus holds it: started with the first text, used by one thread at a time, started again if it
ended.

A process that was idle may have ended itself, and one that worked may have been killed: a text gets a second process
before that counts as a failure. Each text is sent on its own, so a text that ends the process harms no other.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from nexus import logging
from nexus.embed import frames
from nexus.embed.child import ModelOrder, encode_facts
from nexus.errors import (
    EmbeddingCrashed,
    EmbeddingFailed,
    EmbeddingMemory,
    EmbeddingSlow,
    EmbeddingStopped,
    EmbeddingUnusable,
)

log = logging.get_logger(__name__)

#: How long loading libraries and a model may take.
START_SECONDS = 60.0
#: The process imports from where Nexus does.
START = "import sys; sys.path[:] = sys.argv[2:]; from nexus.embed.child import run_child; run_child()"
#: All that it gets of the environment: what Python may need to find its own libraries.
KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
#: Libraries are told to use one thread, because most machines that run Nexus have other work.
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
#: A text has fewer characters than this per token; what is longer is cut before it is sent.
CHARACTERS_PER_TOKEN = 32


class TextVector(NamedTuple):
    vector: bytes
    tokens: int


class UnfitModel(Exception):
    """The process says that the model can't be used. The text continues the sentence "The model …"."""


class ModelProcess:
    """Safe to share between threads: they take turns."""

    def __init__(self, order: ModelOrder) -> None:
        self.order = order
        self._turns = TurnQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._child: _Child | None = None

    @property
    def process_id(self) -> int | None:
        """None if there is no process at the moment."""
        child = self._child
        return child.process.pid if child is not None else None

    def vector(self, text: str) -> TextVector:
        """Embed one text. Raises UnfitModel, or EmbeddingFailed or a kind of it."""
        body = text[: self.order.most_tokens * CHARACTERS_PER_TOKEN].encode("utf-8", "replace")
        with self._turns.turn():
            if self._child is not None:
                with suppress(EOFError):
                    return self._ask(self._child, body)
            try:
                return self._ask(self._start(), body)
            except EOFError:
                raise self._end(EmbeddingCrashed()) from None

    def dimension(self) -> int:
        """Ask the model. Raises as `vector` does."""
        return len(self.vector("x").vector) // 4

    def close(self) -> None:
        """End the process, and wake the thread that waits for it."""
        with self._lock:
            self._closed = True
            child, self._child = self._child, None
        if child is not None:
            child.end()

    def _start(self) -> _Child:
        self._drop()
        try:
            child = _Child()
        except OSError as error:
            log.warning("embedding_process_lost", reason=type(error).__name__)
            raise EmbeddingCrashed from None
        with self._lock:
            self._child = child
            closed = self._closed
        if closed:
            raise self._end(EmbeddingStopped())
        answer = self._told(child, encode_facts(self.order._asdict()), START_SECONDS)
        found = json.loads(answer)
        if "wrong" in found:
            self._drop()
            raise UnfitModel(found["wrong"])
        return child

    def _ask(self, child: _Child, body: bytes) -> TextVector:
        answer = self._told(child, body, self.order.text_seconds)
        outcome, tokens = frames.ANSWER.unpack_from(answer)
        if outcome == frames.DONE:
            return TextVector(answer[frames.ANSWER.size :], tokens)
        raise EmbeddingUnusable if outcome == frames.NOT_FINITE else EmbeddingFailed

    def _told(self, child: _Child, body: bytes, seconds: float) -> bytes:
        """Send a frame and wait for the answer. Raises EOFError if the process ended for no known reason."""
        until = time.monotonic() + seconds
        try:
            frames.write_frame(child.line, body, until)
            return frames.read_frame(child.line, until)
        except TimeoutError:
            raise self._end(EmbeddingSlow()) from None
        except (OSError, EOFError, frames.GarbledFrame):
            code = self._drop()
            if self._closed:
                raise EmbeddingStopped from None
            if code == frames.OUT_OF_MEMORY:
                raise EmbeddingMemory from None
            raise EOFError from None

    def _end(self, error: EmbeddingFailed) -> EmbeddingFailed:
        self._drop()
        return error

    def _drop(self) -> int | None:
        """End the process, if there is one, and return how it ended."""
        with self._lock:
            child, self._child = self._child, None
        if child is None:
            return None
        code = child.end()
        if code:
            log.warning("embedding_process_lost", reason=_name(code))
        return code


class _Child:
    """A process that has nothing but its socket, in a session of its own, so that Ctrl-C does not reach it."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        places = [str(Path(entry).absolute()) if Path(entry).exists() else entry for entry in sys.path]
        with theirs:
            try:
                self.process = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-P", "-X", "utf8", "-c", START, str(theirs.fileno()), *places],
                    env=ENVIRONMENT | kept,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except BaseException:
                self.line.close()
                raise

    def end(self) -> int:
        """End it, if it is still alive. Returns how it ended by itself, as subprocess does; 0 if it did not."""
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


def _name(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return str(code)
