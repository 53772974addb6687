"""HTTP as uvicorn speaks it, with limits on what a connection may cost, and without copies of large bodies."""

from __future__ import annotations

import socket
import struct
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nexus.errors import ApiError, InvalidRequest, NotReady
from nexus.web.http.connections import Door
from nexus.web.http.envelope import JSON, Problem, Refusal
from nexus.web.http.safety import Headers

_WHY: dict[int, ApiError] = {
    400: InvalidRequest("This is not an HTTP request that Nexus understands."),
    408: InvalidRequest("The request took too long to arrive. Send it again."),
    431: InvalidRequest(
        "The address and headers of this request are too large. Clear the cookies of this site."
    ),
    503: NotReady("There are too many connections. Close some, or try again in a moment."),
}

#: For SO_LINGER: don't wait until everything is sent.
_AT_ONCE = struct.pack("ii", 1, 0)


class _TooLarge(Exception):
    """The parser passes it on as an error of its own."""


class Protocol(HttpToolsProtocol):
    """httptools sets no limits of its own: an endless header would take it quadratic time.

    Receiving 512 MiB takes 1.24 s of CPU with `on_body` and 1.37 s without; with neither that nor the kept memory of
    cli/server.py it takes 2.30 s.
    """

    def __init__(self, *given: Any, door: Door, headers: Headers, **options: Any) -> None:
        super().__init__(*given, **options)
        self._door = door
        self._limits = door.limits
        self._headers = headers
        #: Since when the client has been expected to send something.
        self._since = self.loop.time()
        #: How much of a body has come since then.
        self._arrived = 0
        #: How much was parsed without a result: part of a head, or of what may follow a chunked body.
        self._unfinished = 0
        self._is_whole = True
        self._answering: Any = None
        self._refusal = 400
        self._refused = False
        #: How much of the answer the client had not taken at the last look, and when that was.
        self._unsent: tuple[int, float] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if not self._door.admit(self, self.client[0] if self.client else ""):
            # At once: a connection that lingers would count after all.
            transport.write(self._answer(503))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.leave(self)
        if self._answering is not None and not self._answering.response_complete:
            # If several requests were sent at once, uvicorn tells only the latest one.
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        self._unfinished += len(data)
        super().data_received(data)
        if self._unfinished > self._limits.head_bytes and not self._refused:
            self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._since = self.loop.time()

    def on_headers_complete(self) -> None:
        fields, limits = self.headers, self._limits
        size = len(self.url) + sum([len(name) + len(value) + 4 for name, value in fields])
        if size > limits.head_bytes or len(fields) > limits.head_fields:
            self._refusal = 431
            raise _TooLarge
        self._unfinished = self._arrived = 0
        self._is_whole = False
        self._since = self.loop.time()
        super().on_headers_complete()
        # What follows a chunked body is not a header of the request: whoever checked the headers did not see it.
        self.headers = []

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """Add the first piece to an empty `bytes`, which keeps it as it is; copy only if more pieces are waiting."""
        self._unfinished = 0
        self._arrived += len(body)
        cycle: Any = self.cycle
        cycle.body = (
            bytearray(cycle.body) if isinstance(cycle.body, bytes) and cycle.body else cycle.body or b""
        )
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished = 0
        self._is_whole = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Called by uvicorn for whatever its parser refuses."""
        self._refuse(self._refusal)

    def look(self, now: float) -> None:
        if self._takes_too_long(now):
            self._reset()
        elif not self.transport.is_closing():
            self._end_if_late(now)

    def _takes_too_long(self, now: float) -> bool:
        """Whether the client does not read its answer. While the transport is full or closing, nothing is added."""
        size = self.transport.get_write_buffer_size()
        if not size or not (self.flow.write_paused or self.transport.is_closing()):
            self._unsent = None
        elif self._unsent is None or size <= self._unsent[0] - self._limits.answer_bytes:
            self._unsent = size, now
        return self._unsent is not None and now - self._unsent[1] > self._limits.answer_seconds

    def _end_if_late(self, now: float) -> None:
        waited, limits, cycle = now - self._since, self._limits, self.cycle
        if self._refused:
            if waited > limits.linger_seconds:
                self._reset()
        elif cycle is not None and not cycle.response_complete:
            self._end_slow_body(now)
        elif not self._is_whole:
            if waited > limits.linger_seconds:
                self.transport.close()
        # While uvicorn's own timer runs, the client may be idle.
        elif self.timeout_keep_alive_task is None and waited > limits.head_seconds:
            if self._unfinished:
                self._refuse(408)
            else:
                self.transport.close()

    def _end_slow_body(self, now: float) -> None:
        cycle, limits = self.cycle, self._limits
        if self._is_whole or self.flow.read_paused or cycle.body:
            self._since, self._arrived = now, 0  # it is our turn, not the client's
        elif now - self._since <= limits.body_seconds:
            return
        elif self._arrived >= limits.body_bytes:
            self._since, self._arrived = now, 0
        elif cycle.response_started:
            self.transport.close()
        else:
            # The endpoint reads on, finds that its caller is gone, and can't answer any more.
            cycle.disconnected = True
            cycle.message_event.set()
            self._refuse(408)

    def _reset(self) -> None:
        """End the connection and have the kernel forget what it still had to send."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()

    def _refuse(self, status: int) -> None:
        self._refused = True
        self._since = self.loop.time()
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
            return
        self.transport.write(self._answer(status))
        self.transport.write_eof()

    def _answer(self, status: int) -> bytes:
        """An answer in the envelope of the API, from before there is an application that could give one."""
        error, request_id = _WHY[status], uuid4().hex
        problem = Problem(code=error.code, message=error.message, request_id=request_id)
        body = Refusal(error=problem).model_dump_json().encode()
        fields = [
            *self._headers,
            (b"content-type", JSON.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
        lines += [name + b": " + value for name, value in fields]
        return b"\r\n".join([*lines, b"", body])
