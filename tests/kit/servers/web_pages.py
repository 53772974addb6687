"""A small site over loopback: what each path answers is set by the test."""

from __future__ import annotations

import ssl
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.kit.servers.threads import running


@dataclass(frozen=True)
class Answer:
    body: bytes
    content_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Pages(dict[str, Answer]):
    """Paths and their answers; other paths are 404. Every request is remembered.

    Below /held/ nothing is answered before the gate is open.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._scheme = "http" if tls is None else "https"
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.gate = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._running = ExitStack()

    @property
    def place(self) -> str:
        """Its host and port, as NEXUS_FETCH_ALLOW takes them."""
        return f"127.0.0.1:{self._server.server_port}"

    def url(self, path: str) -> str:
        return f"{self._scheme}://{self.place}{path}"

    def __enter__(self) -> Self:
        self._running.enter_context(running(self._server))
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._running.close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 64


def _handler(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pages.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            if self.path.startswith("/held/"):
                pages.gate.wait()
            answer = pages.get(self.path, Answer(b"nothing here", "text/plain", 404))
            known = answer.headers.get("ETag")
            if known is not None and self.headers.get("If-None-Match") == known:
                answer = Answer(b"", "text/html", 304, answer.headers)
            self._send(answer)

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            with suppress(ConnectionError):  # the client may be gone by now
                self.end_headers()
                self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
