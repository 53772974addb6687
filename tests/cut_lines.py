"""PostgreSQL at the end of a line on loopback that is cut in the middle of a COMMIT.

The COMMIT is that of the transaction that puts media into a library, whichever process makes it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto

from sqlalchemy import make_url

PATIENCE = 60.0
COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
FILLS_A_LIBRARY = b"INSERT INTO library_media"


class Cut(Enum):
    NEVER = auto()
    BEFORE = auto()  #: the server never hears of the COMMIT
    AFTER = auto()  #: the server has committed, and nobody hears of it
    DURING = auto()  #: the caller is cut off, and the COMMIT arrives when the test lets it


class Line:
    """Everything goes through until the COMMIT. Then, if it is `away`, nobody gets a new connection."""

    def __init__(self, url: str) -> None:
        target = make_url(url)
        self._target = (target.host or "127.0.0.1", target.port or 5432)
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = target.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        self.cut = Cut.NEVER
        self.away = False
        self.has_been_cut = threading.Event()
        #: Whether a COMMIT that is on its way arrives, once that is decided.
        self.arrives = True
        self.decided = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()
        self.decided.set()
        self._hang_up()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            if self.away and self.has_been_cut.is_set():
                caller.close()
                continue
            server = socket.create_connection(self._target)
            self._open += [caller, server]
            call = Call(self, caller, server)
            for pump in (call.to_server, call.to_caller):
                threading.Thread(target=pump, daemon=True).start()

    def is_cut(self, caller: socket.socket) -> None:
        """The caller is alone now. If the database is away, so is everybody."""
        self.cut = Cut.NEVER
        self.has_been_cut.set()
        _end(caller)
        if self.away:
            self._hang_up()

    def _hang_up(self) -> None:
        for end in self._open:
            _end(end)


class Call:
    """One connection."""

    def __init__(self, line: Line, caller: socket.socket, server: socket.socket) -> None:
        self._line, self._caller, self._server = line, caller, server
        self._fills_a_library = False
        self._answer_is_lost = False

    def to_server(self) -> None:
        with suppress(OSError):
            while data := self._caller.recv(1 << 16):
                self._fills_a_library |= FILLS_A_LIBRARY in data
                if data == COMMIT and self._fills_a_library and self._line.cut is not Cut.NEVER:
                    self._commit(data)
                    return
                self._server.sendall(data)
        _end(self._server)

    def _commit(self, data: bytes) -> None:
        match self._line.cut:
            case Cut.BEFORE:
                _end(self._server)
                self._line.is_cut(self._caller)
            case Cut.AFTER:
                self._answer_is_lost = True
                self._server.sendall(data)
            case _:
                self._line.is_cut(self._caller)
                self._line.decided.wait(PATIENCE)
                if self._line.arrives:
                    self._server.sendall(data)
                    self._server.recv(1 << 16)
                _end(self._server)

    def to_caller(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                if self._answer_is_lost:
                    self._line.is_cut(self._caller)
                    break
                self._caller.sendall(data)
        _end(self._caller)


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextmanager
def line_to(url: str) -> Iterator[Line]:
    line = Line(url)
    try:
        yield line
    finally:
        line.close()
