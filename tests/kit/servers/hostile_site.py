"""A loopback server that answers as it is told to, byte by byte: the worst sites that a fetch can meet.

An act gets a connection whose request has been read, and does what it likes with it; the connection is closed after
it. Acts that never end by themselves look at `talk.over`.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

PAGE = b"<!doctype html><title>A page</title><p>Some text."


@dataclass
class Talk:
    """One connection, after its request."""

    sock: socket.socket
    request: bytes
    over: threading.Event

    def say(self, data: bytes) -> None:
        self.sock.sendall(data)

    def forever(self, data: bytes) -> None:
        while not self.over.is_set():
            self.say(data)

    def drip(self, data: bytes) -> None:
        """A byte now and then, without end."""
        while not self.over.wait(0.01):
            self.say(data)

    def silence(self) -> None:
        self.over.wait()

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


Act = Callable[[Talk], None]


@dataclass
class Hostile:
    """The server's address, what it does at each path, and the requests it got."""

    port: int
    acts: dict[str, Act] = field(default_factory=dict)
    requests: list[bytes] = field(default_factory=list)
    scheme: str = "http"
    #: Acted at once, before any request.
    greeting: Act | None = None

    @property
    def pair(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"{self.scheme}://{self.pair}{path}"

    def on(self, act: Act | bytes, path: str = "/") -> str:
        """Act this way at a path; bytes are sent as they are. Returns the URL."""
        self.acts[path] = act if callable(act) else lambda talk: talk.say(act)
        return self.url(path)

    def asked(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [request.split(b" ", 2)[1].decode() for request in self.requests]


def answer(
    body: bytes = PAGE, *headers: str, status: str = "200 OK", content_type: str | None = "text/html"
) -> bytes:
    """A plain answer with a length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def chunked(body: bytes, size: int, *headers: str) -> bytes:
    """A page in chunks of a size."""
    lines = ["HTTP/1.1 200 OK", "Content-Type: text/html", "Transfer-Encoding: chunked", *headers]
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    framed = b"".join(b"%x;note=x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + framed + b"0\r\n\r\n"


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(b"", f"Location: {location}", status=status)


@contextmanager
def hostile(context: ssl.SSLContext | None = None) -> Iterator[Hostile]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Hostile(listener.getsockname()[1], scheme="https" if context else "http")
        over = threading.Event()
        talks: list[threading.Thread] = []
        door = threading.Thread(target=_listen, args=(listener, server, over, context, talks))
        door.start()
        try:
            yield server
        finally:
            over.set()
            with socket.create_connection(("127.0.0.1", server.port)):
                door.join()
            for talk in talks:
                talk.join()


def _listen(
    listener: socket.socket,
    server: Hostile,
    over: threading.Event,
    context: ssl.SSLContext | None,
    talks: list[threading.Thread],
) -> None:
    while True:
        sock, _ = listener.accept()
        if over.is_set():
            sock.close()
            return
        talks.append(threading.Thread(target=_talk, args=(sock, server, over, context)))
        talks[-1].start()


def _talk(
    sock: socket.socket, server: Hostile, over: threading.Event, context: ssl.SSLContext | None
) -> None:
    # The client hangs up in the middle, as these tests want it to.
    with suppress(OSError), sock:
        sock.settimeout(30)
        if server.greeting:
            server.greeting(Talk(sock, b"", over))
            return
        talking = context.wrap_socket(sock, server_side=True) if context else sock
        with talking:
            request = b""
            while b"\r\n\r\n" not in request and (data := talking.recv(65536)):
                request += data
            if request:
                server.requests.append(request)
                path = request.split(b" ", 2)[1].decode()
                server.acts.get(path, _unknown)(Talk(talking, request, over))


def _unknown(talk: Talk) -> None:
    talk.say(answer(b"", status="404 Not Found"))
