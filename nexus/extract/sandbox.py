"""Where readers run: processes of their own, with limits on time, memory and output.

A reader gets bytes that strangers made, so whatever happens in its process costs this document and nothing else. The
process has no secrets, files, network or children (child/jail.py), and what it gives back is data that is checked. It
is kept for the documents that follow, since a new one costs as much as a short document: until it has read
`documents` of them, or has grown, or was ended.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

from nexus import logging
from nexus.errors import ExtractionFailed, ParserCrashed, ParserMemory, ParserOutput, ParserTimeout, tree
from nexus.extract import Extraction, Hints
from nexus.extract.child import wire
from nexus.extract.child.outside import Document, Nursery, NurseryGone, Parser, Unknown, identifier, used_up
from nexus.extract.child.parser import READ
from nexus.extract.child.wire import BadFrame, Request, TooLarge

log = logging.get(__name__)

#: A process that took more than this part of its memory for a document does not get another.
GROWN = 4
LONGEST_MESSAGE = 500
#: How often who waits for a process looks whether he still should.
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Limits:
    """What one document may take."""

    #: On the clock, from when its bytes are handed over; waiting for a process does not count.
    seconds: float = 30.0
    #: Address space beyond what Python and the readers' libraries have mapped.
    memory_bytes: int = 1024 * 1024 * 1024
    #: The whole answer: text, html and assets.
    output_bytes: int = 64 * 1024 * 1024


class SandboxClosed(RuntimeError):
    """Nothing is wrong with the document: it was not read to the end because everything ends."""


class ReadingEnded(Exception):
    """Nothing is wrong with the document: nobody wants to know any more what is in it."""


class Reading:
    """A document that is being read, for who may want to end that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parser: Parser | None = None
        self.ended = False

    def begin(self, parser: Parser) -> None:
        """Raises ReadingEnded where it is over before it began."""
        with self._lock:
            if self.ended:
                raise ReadingEnded
            self._parser = parser

    def end(self) -> None:
        """The process ends with it: it may be deep in a document."""
        with self._lock:
            self.ended = True
            if self._parser is not None:
                with suppress(OSError):
                    self._parser.line.shutdown(socket.SHUT_RDWR)

    def settle(self) -> None:
        """Its process is free for another document."""
        with self._lock:
            self._parser = None


class Blameless(Exception):
    """The process ended, and the document need not be the reason."""


class Sandbox:
    """Shared by all threads. At most `processes` documents are read at once; the others wait for their turn.

    `preload` names the modules to import before the first document. Other readers are imported when they are asked
    for, from wherever this process imports.
    """

    def __init__(
        self,
        limits: Limits = Limits(),
        processes: int = 2,
        preload: tuple[str, ...] = (),
        documents: int = 200,
    ) -> None:
        self.limits = limits
        self.processes = processes
        self._preload = preload
        self._documents = documents
        self._turn = threading.Semaphore(processes)
        self._lock = threading.Lock()
        self._idle: list[Parser] = []
        self._nursery: Nursery | None = None
        self._closed = False

    def read(
        self,
        reader: str,
        data: bytes | BinaryIO,
        hints: Hints = Hints(),
        limits: Limits | None = None,
        reading: Reading | None = None,
    ) -> Extraction:
        """Raises ExtractionFailed or a kind of it, and ReadingEnded where somebody ended it. An open file goes over in
        pieces."""
        allowed = limits or self.limits
        document = Document(data)
        request = Request(
            reader, document.size, allowed.seconds, allowed.memory_bytes, allowed.output_bytes, hints
        )
        reading = reading or Reading()
        with self._one_of_them(reading):
            try:
                return self._read(request, document, reading)
            except (Blameless, NurseryGone) as error:
                log.warning("parser_lost", reader=reader, reason=type(error).__name__)
                return self._read_again(request, document, reading)

    @contextmanager
    def _one_of_them(self, reading: Reading) -> Iterator[None]:
        while not self._turn.acquire(timeout=LOOK_SECONDS):
            if reading.ended:
                raise ReadingEnded
        try:
            yield
        finally:
            self._turn.release()

    def close(self) -> None:
        """Ends every process, also of documents that are being read."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            nursery, self._nursery = self._nursery, None
        for parser in idle:
            parser.line.close()
        if nursery is not None:
            nursery.close()

    def _read_again(self, request: Request, document: Document, reading: Reading) -> Extraction:
        """In a new process, where nothing but the document can be the reason."""
        try:
            return self._read(request, document, reading, new=True)
        except (Blameless, NurseryGone) as error:
            raise _stopped(request, ParserCrashed(), type(error).__name__) from error

    def _read(
        self, request: Request, document: Document, reading: Reading, *, new: bool = False
    ) -> Extraction:
        parser = self._take(request.reader, new=new)
        try:
            reading.begin(parser)
            grown, found = _understand(parser.ask(request, document))
            reading.settle()
        except (EOFError, TimeoutError, BadFrame) as trouble:
            reading.settle()
            if reading.ended:
                _end(parser)
                raise ReadingEnded from trouble
            raise _verdict(parser, request, trouble) from trouble
        except BaseException:
            _end(parser)
            raise
        self._give_back(parser, grown > request.memory_bytes // GROWN)
        if isinstance(found, Extraction):
            return found
        raise _refusal(request, grown, *found)

    def _take(self, reader: str, *, new: bool) -> Parser:
        nursery = self._open_nursery()
        try:
            nursery.learn(reader)
        except Unknown as error:
            log.error("reader_unknown", reader=reader, reason=str(error))  # noqa: TRY400
            raise ParserCrashed from error
        while not new and (parser := self._pop()):
            if parser.fits(reader):
                return parser
            _end(parser)
        return nursery.fork()

    def _give_back(self, parser: Parser, grown: bool) -> None:
        with self._lock:
            keep = not self._closed and not grown and parser.documents < self._documents
            if keep:
                self._idle.append(parser)
        if not keep:
            _end(parser)

    def _pop(self) -> Parser | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _open_nursery(self) -> Nursery:
        with self._lock:
            if self._closed:
                raise SandboxClosed
            if self._nursery is None or self._nursery.gone:
                self._nursery = self._new_nursery()
            return self._nursery

    def _new_nursery(self) -> Nursery:
        nursery = Nursery()
        for module in self._preload:
            try:
                nursery.learn(module)
            except Unknown as error:
                log.error("reader_unknown", reader=module, reason=str(error))  # noqa: TRY400
        return nursery


def _understand(values: Iterator[bytes | None]) -> tuple[int, Extraction | tuple[str, str, str]]:
    """How much the process has grown, and what was found; or the code, message and kind of an error."""
    try:
        grown, verdict = wire.number(next(values)), wire.text(next(values))
        if verdict == READ:
            return grown, wire.extraction_of(values)
        code, message, kind = map(wire.text, values)
    except (StopIteration, ValueError) as error:
        raise BadFrame from error
    return grown, (code, message, identifier(kind))


def _refusal(request: Request, grown: int, code: str, message: str, kind: str) -> ExtractionFailed:
    """Only what a reader may raise; of anything else no more than its name, since its text may be the document's."""
    known = {error.code: error for error in tree(ExtractionFailed)}
    if code in known:
        return known[code](message[:LONGEST_MESSAGE])
    log.warning("reader_failed", reader=request.reader, reason=kind)
    return ParserMemory() if used_up(grown, request.memory_bytes) else ExtractionFailed()


def _verdict(parser: Parser, request: Request, trouble: Exception) -> Exception:
    """What it means that there is no answer. The process ends, if it has not ended yet."""
    if isinstance(trouble, EOFError):
        return _cause_of_death(parser, request)
    _end(parser)
    error: ExtractionFailed = ParserCrashed()
    if isinstance(trouble, TimeoutError):
        error = ParserTimeout()
    elif isinstance(trouble, TooLarge):
        error = ParserOutput()
    return _stopped(request, error, type(trouble).__name__)


def _cause_of_death(parser: Parser, request: Request) -> Exception:
    death = parser.end()
    if death.out_of_time:
        return _stopped(request, ParserTimeout(), death.name)
    if death.out_of_memory(request.memory_bytes):
        return _stopped(request, ParserMemory(), death.name)
    if parser.documents > 1:
        # An earlier document may have left the process broken.
        return Blameless()
    return _stopped(request, ParserCrashed(), death.name)


def _stopped(request: Request, error: ExtractionFailed, reason: str) -> ExtractionFailed:
    log.warning("parser_stopped", reader=request.reader, error_code=error.code, reason=reason)
    return error


def _end(parser: Parser) -> None:
    with suppress(NurseryGone):
        parser.end()
