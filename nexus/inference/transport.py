"""The connection to a model's server. One deadline bounds every wait on it, and its answer has a longest size.

A timeout of the HTTP client starts over with every byte, and some servers send a blank line every few seconds while
their model thinks.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

from nexus.deadline import Deadline


@dataclass(frozen=True)
class AnswerLimits:
    """How long a server may take in all, how many bytes it may send, and what is raised if it sends more."""

    deadline: Deadline
    most_bytes: int
    endless: Callable[[], Exception]


class ModelTransport(httpx2.HTTPTransport):
    def __init__(self, limits: AnswerLimits, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.ConnectionPool(ssl_context=context, network_backend=_Network(limits))


class _Network(httpcore2.NetworkBackend):
    def __init__(self, limits: AnswerLimits) -> None:
        self._limits = limits
        self._sockets = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._limits.deadline.left()
        return _Stream(
            self._sockets.connect_tcp(host, port, left, local_address, socket_options), self._limits
        )


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, limits: AnswerLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._bytes_left = limits.most_bytes

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        data = self._stream.read(max_bytes, self._limits.deadline.left())
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise self._limits.endless()
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, self._limits.deadline.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._limits.deadline.left())
        return _Stream(stream, self._limits)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
