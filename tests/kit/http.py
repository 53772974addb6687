"""Nexus over real HTTP on loopback: a server in a thread, and callers of it."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx2
import structlog
import uvicorn
import uvicorn.server

from nexus.app import App
from nexus.settings import Settings
from nexus.web import application
from nexus.web.http.bearer import issue_token
from nexus.web.http.connections import ConnectionLimits
from nexus.web.http.serving import server_config

#: Longer than anything here takes: a test that waits in vain fails, and does not hang.
PATIENCE = 60.0
#: structlog's own tracebacks draw every local variable, which takes seconds, and the server waits for it.
PLAIN = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.format_exc_info,
    structlog.processors.JSONRenderer(),
]
PROBLEM = {"code", "message", "request_id"}
#: A client without one makes its own and loads every certificate of the machine, which takes 40 ms.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
GLANCE = 0.005


def _in_a_hurry() -> types.ModuleType:
    """asyncio for uvicorn, which looks ten times a second whether it should stop, and then waits as long again.

    Two thousand tests stop a server.
    """
    hurried = types.ModuleType("asyncio")
    vars(hurried).update(vars(asyncio), sleep=lambda _seconds: asyncio.sleep(GLANCE))
    return hurried


uvicorn.server.asyncio = _in_a_hurry()  # type: ignore[attr-defined]


def headers_of(settings: Settings, user: UUID) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {issue_token(settings, user)}",
        "X-Nexus-Internal": settings.internal_secret,
    }


class Caller(httpx2.Client):
    """A client that is signed in as one user."""

    def __init__(self, url: str, settings: Settings, user: UUID) -> None:
        headers = headers_of(settings, user)
        super().__init__(base_url=url, headers=headers, timeout=PATIENCE, verify=NO_CERTIFICATES)
        self.user = user
        self._settings = settings

    def add(self, url: str | None = None, kind: str = "web_article") -> UUID:
        given = {"kind": kind, "url": url or f"https://example.com/{uuid4().hex}"}
        return UUID(data(self.post("/media/url", json=given))["media_id"])

    def library(self, name: str = "Shared") -> str:
        return str(data(self.post("/libraries", json={"name": name}))["id"])

    def let_in(self, library: str, user: UUID, role: str = "member") -> httpx2.Response:
        """Invite them, and accept in their name; or change the role of a member."""
        said = self.post(f"/libraries/{library}/members", json={"user_id": str(user), "role": role})
        if invitation := said.json().get("data", {}).get("invitation"):
            theirs = headers_of(self._settings, user)
            data(self.post(f"/invitations/{invitation['id']}/accept", headers=theirs))
        return said

    def default_library(self) -> str:
        return str(data(self.get("/libraries"))["items"][0]["id"])


@dataclass
class Site:
    """A running server."""

    app: App
    url: str
    server: uvicorn.Server
    thread: threading.Thread
    clients: ExitStack = field(default_factory=ExitStack)

    def caller(self, user: UUID | None = None) -> Caller:
        """Signed in as this user, or as somebody new."""
        return self.clients.enter_context(Caller(self.url, self.app.settings, user or uuid4()))

    def anyone(self, **headers: str) -> httpx2.Client:
        """Not signed in."""
        client = httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENCE, verify=NO_CERTIFICATES)
        return self.clients.enter_context(client)

    def stop(self) -> None:
        """Raises AssertionError if the server does not stop."""
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@contextmanager
def serve(app: App, limits: ConnectionLimits | None = None) -> Iterator[Site]:
    """Serve as `nexus serve` does. The socket listens first, so nobody needs to wait for the server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = server_config(application.create_application(app), app.settings, limits, lifespan="on")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), name="server")
        before = structlog.get_config()
        structlog.configure(processors=PLAIN)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        site = Site(app, url, server, thread)
        try:
            yield site
        finally:
            site.clients.close()
            site.stop()
            structlog.configure(**before)


def data(response: httpx2.Response) -> Any:
    """The data of a successful answer."""
    assert response.status_code == 200, response.text
    assert response.headers["x-request-id"]
    body = response.json()
    assert set(body) == {"data"}
    return body["data"]


def problem(response: httpx2.Response) -> tuple[int, str]:
    """The status and code of a failure; checks that it is in the envelope."""
    body = response.json()
    assert set(body) == {"error"}, body
    assert set(body["error"]) == PROBLEM
    assert body["error"]["message"]
    assert body["error"]["request_id"] == response.headers["x-request-id"]
    assert response.headers["content-type"] == "application/json"
    return response.status_code, body["error"]["code"]


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    name: str
    id: str
    data: dict[str, Any]


class Stream:
    """The events of an open stream, one by one."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.iter_lines()

    def block(self) -> list[str]:
        """The lines up to the next empty one; none at the end of the stream."""
        lines: list[str] = []
        for line in self._lines:
            if line:
                lines.append(line)
            elif lines:
                return lines
        return lines

    def next(self) -> Event:
        """The next event, skipping heartbeats."""
        while True:
            fields = dict(line.split(": ", 1) for line in self.block() if not line.startswith(":"))
            if "event" in fields:
                return Event(fields["event"], fields["id"], json.loads(fields["data"]))

    def take(self, count: int) -> list[Event]:
        return [self.next() for _ in range(count)]

    def heartbeat(self) -> None:
        """Wait for a heartbeat."""
        while not self.block()[0].startswith(":"):
            pass


@contextmanager
def follow(client: httpx2.Client, last: str | None = None, **headers: str) -> Iterator[Stream]:
    """The stream after its greeting: it holds everything that happens from now on."""
    if last is not None:
        headers["Last-Event-ID"] = last
    with client.stream("GET", "/events", headers=headers) as response:
        assert response.status_code == 200, response.read()
        stream = Stream(response)
        assert stream.next().name == "hello"
        yield stream


def job_problem(response: httpx2.Response) -> tuple[int, str]:
    """The status and code of a failure in the shape of editorial jobs."""
    body = response.json()
    assert set(body) == {"success", "error", "message", "requestId"}, body
    assert body["success"] is False
    assert body["message"]
    assert body["requestId"] == response.headers["x-request-id"]
    return response.status_code, body["error"]
