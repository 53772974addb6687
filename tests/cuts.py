"""A way to PostgreSQL over loopback that is cut where a test says: in BEGIN, in COMMIT, or in any statement."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from sqlalchemy import make_url

PIECE = 65536
PATIENCE = 60.0


@dataclass(frozen=True)
class Cut:
    """The connection that sends this next ends there: before the server has it, or before its answer is back."""

    command: str  #: BEGIN or COMMIT; empty means any
    answered: bool  #: whether the server does it, and only its answer is lost

    def __str__(self) -> str:
        return f"{self.command or 'statement'}-{'answer' if self.answered else 'question'}"

    def is_in(self, sent: bytes) -> bool:
        """A simple query is a Q, its length and its text; others go as several messages in one piece."""
        if not self.command:
            return True
        text = self.command.encode() + b"\0"
        return b"Q" + (len(text) + 4).to_bytes(4) + text in sent


CUTS = [Cut(command, answered) for command in ("BEGIN", "COMMIT") for answered in (False, True)]


@dataclass
class _Pair:
    """One connection: the client's end and the server's."""

    client: socket.socket
    server: socket.socket
    #: From now on the server's answer is swallowed; and it has come.
    deaf: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        for one in (self.client, self.server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Way:
    """Every connection to the database goes through here."""

    def __init__(self, url: str) -> None:
        target = make_url(url)
        self._target = (target.host, target.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = target.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        self._lock = threading.Lock()
        self._planned: list[Cut] = []
        self._pairs: list[_Pair] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def cut(self, cut: Cut) -> None:
        """Once, wherever it is sent next."""
        with self._lock:
            self._planned.append(cut)

    @property
    def is_whole(self) -> bool:
        """Whether every cut that was planned has happened."""
        with self._lock:
            return not self._planned

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for pair in self._pairs:
            pair.end()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, name="cuts", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                pair = _Pair(client, socket.create_connection(self._target))
                self._pairs.append(pair)
                self._start(self._forth, pair)
                self._start(self._back, pair)

    def _forth(self, pair: _Pair) -> None:
        with suppress(OSError):
            while sent := pair.client.recv(PIECE):
                cut = self._due(sent)
                if cut is None:
                    pair.server.sendall(sent)
                    continue
                if cut.answered:
                    pair.deaf.set()
                    pair.server.sendall(sent)
                    pair.answered.wait(PATIENCE)
                break
        pair.end()

    def _back(self, pair: _Pair) -> None:
        with suppress(OSError):
            while said := pair.server.recv(PIECE):
                if pair.deaf.is_set():
                    pair.answered.set()
                    return
                pair.client.sendall(said)
        pair.answered.set()
        pair.end()

    def _due(self, sent: bytes) -> Cut | None:
        with self._lock:
            found = next((cut for cut in self._planned if cut.is_in(sent)), None)
            if found is not None:
                self._planned.remove(found)
        return found


@contextmanager
def way_to(url: str) -> Iterator[Way]:
    way = Way(url)
    try:
        yield way
    finally:
        way.close()
