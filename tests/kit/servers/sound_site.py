"""A loopback site that publishes recordings, and answers with the parts of them that are asked for."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from nexus.fetch.ranges import parse_range
from tests.kit.servers.threads import running


@dataclass(frozen=True)
class Published:
    body: bytes
    content_type: str = "audio/wav"
    #: Whether the site answers with parts.
    takes_ranges: bool = True


class SoundSite(dict[str, Published]):
    """Paths and their recordings; other paths are 404. The ranges that were asked for are remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str | None]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._running = ExitStack()

    @property
    def place(self) -> str:
        """Its host and port, as NEXUS_FETCH_ALLOW takes them."""
        return f"127.0.0.1:{self._server.server_port}"

    def url(self, path: str) -> str:
        return f"http://{self.place}{path}"

    def __enter__(self) -> Self:
        self._running.enter_context(running(self._server))
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


def _handler(site: SoundSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            site.asked.append((self.path, asked))
            found = site.get(self.path)
            if found is None:
                self._send(404, b"", "text/plain")
                return
            wanted = parse_range(asked) if found.takes_ranges else None
            part = None if wanted is None else wanted.within(len(found.body))
            if wanted is not None and part is None:
                self._send(416, b"", "text/plain", f"bytes */{len(found.body)}")
            elif part is not None:
                self._send(206, found.body[part.first : part.last + 1], found.content_type, part.header)
            else:
                self._send(200, found.body, found.content_type)

        def _send(self, status: int, body: bytes, content_type: str, content_range: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            if content_range:
                self.send_header("Content-Range", content_range)
            with suppress(ConnectionError):  # who listens may be gone by now
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
