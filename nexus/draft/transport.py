"""The connection to a model. One deadline bounds every wait on it, over all calls that a draft takes.

A timeout of the HTTP client starts over with every byte, and some servers send a blank line every few seconds while
their model thinks.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2

from nexus.deadline import Deadline
from nexus.errors.draft import DraftUnusable

#: Many times the longest draft that is accepted.
MOST_BYTES = 4 * 1024 * 1024


class ModelTransport(httpx2.HTTPTransport):
    def __init__(self, deadline: Deadline, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.ConnectionPool(ssl_context=context, network_backend=_Network(deadline))


class _Network(httpcore2.NetworkBackend):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._sockets = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        stream = self._sockets.connect_tcp(host, port, self._deadline.left(), local_address, socket_options)
        return _Stream(stream, self._deadline)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline
        self._bytes_left = MOST_BYTES

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        data = self._stream.read(max_bytes, self._deadline.left())
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise DraftUnusable("The model's answer does not end. Generate again, or set another model.")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, self._deadline.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left())
        return _Stream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
