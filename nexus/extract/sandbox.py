"""Runs readers in processes of their own, with limits on time, memory and output.

A reader gets bytes that strangers made, so whatever happens in its process may cost this document and nothing else.
The process has no secrets, files, network or children (child/jail.py), reads this document and no other, and its answer
is checked (child/messages.py, safe_html.py). Processes are made ahead, while other documents are read, so that nobody
waits for one.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Generic, TypeVar

from nexus import logging
from nexus.errors import ExtractionFailed, ParserCrashed, ParserMemory, ParserOutput, ParserTimeout, tree
from nexus.extract import Extraction, Hints
from nexus.extract.child.frames import BadFrame, FrameTooLarge
from nexus.extract.child.handles import (
    NurseryGone,
    NurseryHandle,
    ParserEnd,
    ParserHandle,
    ParserInput,
    UnknownReader,
    class_name,
    used_up,
)
from nexus.extract.child.messages import ReadDone, ReadRefused, ReadRequest
from nexus.extract.reading_turns import Reader, ReadingTurns
from nexus.extract.results import P
from nexus.extract.safe_html import safe_extraction

log = logging.get_logger(__name__)
T = TypeVar("T")

LONGEST_MESSAGE = 500
#: How often a thread that waits for a process checks whether the read was cancelled.
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class ParserLimits:
    """What one document may take."""

    #: From the moment its bytes are sent; waiting for a process does not count.
    seconds: float = 30.0
    #: Address space beyond what Python and the readers' libraries have mapped.
    memory_bytes: int = 1024 * 1024 * 1024
    #: The whole answer: text, html and assets.
    output_bytes: int = 64 * 1024 * 1024


class SandboxClosed(RuntimeError):
    """The sandbox was closed before the document was read. Nothing is wrong with the document."""


class ReadCancelled(Exception):
    """The read was cancelled. Nothing is wrong with the document."""


class CancelToken:
    """Lets another thread cancel a read, before it starts or while it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parser: ParserHandle | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Make the read raise ReadCancelled. Its process ends too, since it may be deep in a document."""
        with self._lock:
            self.cancelled = True
            if self._parser is not None:
                with suppress(OSError):
                    self._parser.line.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Raises ReadCancelled once the read is cancelled."""
        if self.cancelled:
            raise ReadCancelled

    def attach(self, parser: ParserHandle) -> None:
        """Raises ReadCancelled if that came before the start."""
        with self._lock:
            self.check()
            self._parser = parser

    def detach(self) -> None:
        """The read is over."""
        with self._lock:
            self._parser = None


@dataclass(frozen=True)
class _Asked(Generic[T]):
    """One read: what a parser is sent, and how its answer is decoded."""

    request: ReadRequest
    document: ParserInput
    cancel: CancelToken
    unpack: Callable[[ReadDone], T]


class NoParser(Exception):
    """The process ended before it was given a document."""


class Sandbox:
    """Shared by all threads. At most `processes` documents are read at once; others wait for their user's turn.

    Readers are imported when first used, from wherever this process imports: few processes need them all.
    """

    def __init__(self, limits: ParserLimits = ParserLimits(), processes: int = 2) -> None:
        self.limits = limits
        self.processes = processes
        self._turns = ReadingTurns(processes)
        self._lock = threading.Lock()
        self._spares: list[ParserHandle] = []
        self._nursery: NurseryHandle | None = None
        self._closed = False

    def read(
        self,
        reader: str,
        data: bytes | BinaryIO,
        hints: Hints = Hints(),
        limits: ParserLimits | None = None,
        cancel: CancelToken | None = None,
        user: Reader = None,
    ) -> Extraction:
        """Run a reader, named as `module:function`, on bytes or on an open file, which is sent in pieces.

        It waits for the turn of the user. Raises ExtractionFailed or a kind of it, or ReadCancelled.
        """
        asked = self._asked(ReadDone.extraction, reader, data, hints, limits, cancel)
        return safe_extraction(self._run(asked, user))

    def read_as(
        self,
        kind: type[P],
        reader: str,
        data: bytes | BinaryIO,
        hints: Hints = Hints(),
        limits: ParserLimits | None = None,
        cancel: CancelToken | None = None,
        user: Reader = None,
    ) -> P:
        """Run a reader that gives back something else than a text. Any html in it still has to be cleaned.

        Raises as `read` does.
        """
        asked = self._asked(lambda answer: answer.result(kind), reader, data, hints, limits, cancel)
        return self._run(asked, user)

    def _asked(
        self,
        unpack: Callable[[ReadDone], T],
        reader: str,
        data: bytes | BinaryIO,
        hints: Hints,
        limits: ParserLimits | None,
        cancel: CancelToken | None,
    ) -> _Asked[T]:
        allowed = limits or self.limits
        document = ParserInput(data)
        request = ReadRequest(
            reader, document.size, allowed.seconds, allowed.memory_bytes, allowed.output_bytes, hints
        )
        return _Asked(request, document, cancel or CancelToken(), unpack)

    def _run(self, asked: _Asked[T], user: Reader) -> T:
        with self._turns.turn(user, asked.cancel.check, LOOK_SECONDS):
            try:
                return self._read(asked)
            except (NoParser, NurseryGone) as error:
                log.warning("parser_lost", reader=asked.request.reader, reason=type(error).__name__)
                return self._read_again(asked)

    def close(self) -> None:
        """End every process, even one that is reading a document."""
        with self._lock:
            self._closed = True
            spares, self._spares = self._spares, []
            nursery, self._nursery = self._nursery, None
        for parser in spares:
            parser.line.close()
        if nursery is not None:
            nursery.close()

    def _read_again(self, asked: _Asked[T]) -> T:
        try:
            return self._read(asked)
        except (NoParser, NurseryGone) as error:
            raise _stopped(asked.request, ParserCrashed(), type(error).__name__) from error

    def _read(self, asked: _Asked[T]) -> T:
        request, cancel = asked.request, asked.cancel
        parser = self._take(request.reader)
        try:
            cancel.attach(parser)
            answer = parser.ask(request, asked.document)
            if isinstance(answer, ReadRefused):
                raise _refusal(request, answer)
            found = asked.unpack(answer)
        except (EOFError, TimeoutError, BadFrame) as failure:
            cancel.detach()
            if cancel.cancelled:
                parser.leave()
                raise ReadCancelled from failure
            raise _explained(parser, request, failure) from failure
        except BaseException:
            cancel.detach()
            parser.leave()
            raise
        cancel.detach()
        parser.leave()
        return found

    def _take(self, reader: str) -> ParserHandle:
        """Return a process for one document, and order the one for the next."""
        nursery = self._open_nursery()
        try:
            nursery.learn(reader)
        except UnknownReader as error:
            log.error("reader_unknown", reader=reader, reason=str(error))  # noqa: TRY400
            raise ParserCrashed from error
        while True:
            spare = self._pop_spare(nursery, reader)
            parser = spare or nursery.fork()
            if parser.is_ready():
                self._order_spare(nursery)
                return parser
            parser.leave()
            if spare is None:
                raise NoParser

    def _pop_spare(self, nursery: NurseryHandle, reader: str) -> ParserHandle | None:
        with self._lock:
            fitting = [one for one in self._spares if one.nursery is nursery and one.can_read(reader)]
            unfit = [one for one in self._spares if one not in fitting]
            self._spares = fitting[1:]
        for parser in unfit:
            parser.leave()
        return fitting[0] if fitting else None

    def _order_spare(self, nursery: NurseryHandle) -> None:
        with self._lock:
            enough = len(self._spares) >= self.processes
        if enough:
            return
        with suppress(NurseryGone):
            spare = nursery.fork()
            with self._lock:
                kept = not self._closed
                self._spares += [spare] if kept else []
            if not kept:
                spare.leave()

    def _open_nursery(self) -> NurseryHandle:
        with self._lock:
            if self._closed:
                raise SandboxClosed
            if self._nursery is None or self._nursery.gone:
                self._nursery = NurseryHandle()
            return self._nursery


def _refusal(request: ReadRequest, answer: ReadRefused) -> ExtractionFailed:
    """Only errors that a reader may raise keep their message. Of any other just the name is logged: its text may be
    the document's."""
    known = {error.code: error for error in tree(ExtractionFailed)}
    if answer.code in known:
        return known[answer.code](answer.message[:LONGEST_MESSAGE])
    log.warning("reader_failed", reader=request.reader, reason=class_name(answer.kind))
    return ParserMemory() if used_up(answer.grown, request.memory_bytes) else ExtractionFailed()


def _explained(parser: ParserHandle, request: ReadRequest, failure: Exception) -> ExtractionFailed:
    """Find out why there is no answer, and end the process if it still runs."""
    if isinstance(failure, EOFError):
        return _explained_end(parser.end(), request)
    parser.leave()
    error: ExtractionFailed = ParserCrashed()
    if isinstance(failure, TimeoutError):
        error = ParserTimeout()
    elif isinstance(failure, FrameTooLarge):
        error = ParserOutput()
    return _stopped(request, error, type(failure).__name__)


def _explained_end(end: ParserEnd, request: ReadRequest) -> ExtractionFailed:
    error: ExtractionFailed = ParserCrashed()
    if end.out_of_time:
        error = ParserTimeout()
    elif end.out_of_memory(request.memory_bytes):
        error = ParserMemory()
    return _stopped(request, error, end.name)


def _stopped(request: ReadRequest, error: ExtractionFailed, reason: str) -> ExtractionFailed:
    log.warning("parser_stopped", reader=request.reader, error_code=error.code, reason=reason)
    return error
