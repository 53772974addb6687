"""A loopback server that speaks OpenAI's chat completions as clients see them on the wire, failures included."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps, loads
from typing import Any

from tests.kit.servers.threads import running


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def format(self) -> str | None:
        given = self.body.get("response_format")
        return given["type"] if given else None

    @property
    def messages(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.body["messages"]
        return found


Step = Callable[["_Handler", Asked], None]


@dataclass
class Model:
    """The server's address, what it does with each request in turn, and what it was asked."""

    url: str = ""
    steps: list[Step] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    #: Formats that it answers 400 to, before any step.
    refused: frozenset[str] = frozenset()
    #: Set at the end of the test, to release what waits.
    over: threading.Event = field(default_factory=threading.Event)

    def will(self, *steps: Step) -> None:
        self.steps += steps


@contextmanager
def model(context: ssl.SSLContext | None = None) -> Iterator[Model]:
    """With a context, behind TLS."""
    state = Model()

    class Handler(_Handler):
        model = state

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with running(server) as port:
        state.url = f"{'https' if context else 'http'}://127.0.0.1:{port}/v1"
        try:
            yield state
        finally:
            state.over.set()


def says(content: object, *, finish: str = "stop", tokens: int | None = 100, **message: object) -> Step:
    """Answers with this text, or with this object as JSON."""
    text = content if isinstance(content, str) else dumps(content)
    body: dict[str, object] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish,
            }
        ],
    }
    if tokens is not None:
        body["usage"] = {"prompt_tokens": 0, "completion_tokens": tokens, "total_tokens": tokens}
    return answers(200, body)


def answers(status: int, body: object, **headers: str) -> Step:
    def step(handler: _Handler, asked: Asked) -> None:
        raw = body.encode() if isinstance(body, str) else dumps(body).encode()
        handler.answer(status, raw, {name.replace("_", "-"): value for name, value in headers.items()})

    return step


def fails(status: int, code: str | None = None, message: str = "no", **headers: str) -> Step:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return answers(status, {"error": error}, **headers)


def hangs(handler: _Handler, asked: Asked) -> None:
    """Says nothing until the test is over."""
    handler.model.over.wait()
    handler.close_connection = True


def drips(handler: _Handler, asked: Asked) -> None:
    """Sends a blank line again and again, as some servers do while their model thinks, and never an answer."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    with suppress(OSError):
        while not handler.model.over.wait(0.01):
            handler.wfile.write(b"1\r\n\n\r\n")
    handler.close_connection = True


def drops(handler: _Handler, asked: Asked) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Clients that go away in the middle are part of some tests."""


class _Handler(BaseHTTPRequestHandler):
    model: Model
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_form = headers.get("content-type", "").startswith("multipart/form-data")
        asked = Asked(self.path, headers, {"form": raw} if is_form else loads(raw))
        self.model.asked.append(asked)
        if asked.format in self.model.refused:
            fails(400, message="This response_format type is unavailable now")(self, asked)
        else:
            self.model.steps.pop(0)(self, asked)

    def answer(self, status: int, raw: bytes, headers: dict[str, str]) -> None:
        """A client may disconnect before its end."""
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(raw)
