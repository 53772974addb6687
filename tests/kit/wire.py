"""HTTP byte by byte, for callers who don't keep to it."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.kit.http import PATIENCE, Site

_ENDED = select.POLLRDHUP | select.POLLHUP | select.POLLERR


class Raw(NamedTuple):
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """A connection to a site."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._got = b""

    def send(self, data: bytes) -> None:
        self.line.sendall(data)

    def answer(self) -> Raw:
        """The next answer with a length. Raises ConnectionError if the site ends the connection before."""
        head = self._until(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        size = int(headers.get("content-length", 0))
        while len(self._got) < size:
            self._more()
        body, self._got = self._got[:size], self._got[size:]
        return Raw(int(first.split()[1]), headers, body)

    def ends(self) -> bool:
        """Wait until the site ends the connection, whole or cut; what it still sends is thrown away."""
        try:
            while True:
                self._more()
        except ConnectionError:
            return True

    def is_cut(self) -> bool:
        """Wait until the site ends the connection, and read nothing meanwhile."""
        watch = select.poll()
        watch.register(self.line, select.POLLRDHUP)
        return bool(watch.poll(PATIENCE * 1000)[0][1] & _ENDED)

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._got:
            self._more()
        found, _, self._got = self._got.partition(mark)
        return found

    def _more(self) -> None:
        piece = self.line.recv(65536)
        if not piece:
            raise ConnectionError("the site has ended the connection")
        self._got += piece


@contextmanager
def wire(site: Site) -> Iterator[Wire]:
    host, _, port = site.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        yield Wire(line)


def request(line: str, *fields: str, host: str = "127.0.0.1") -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{line} HTTP/1.1", f"Host: {host}", *fields, "", ""]).encode("latin-1")
