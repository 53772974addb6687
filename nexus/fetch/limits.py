"""What a fetch may cost, and what it needs from the machine it runs on."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from nexus import __version__
from nexus.deadline import Deadline
from nexus.errors import FetchTimeout
from nexus.fetch.addresses import Address

MIB = 1024 * 1024
BROKE_OFF = "The connection to the site broke off. Check that it opens in a browser, then retry."


@dataclass(frozen=True)
class FetchLimits:
    #: For the whole fetch: looking up names, connecting, all redirects, up to the last byte.
    seconds: float = 30.0
    #: In addition, for waiting for a turn at a busy site. Short, because a waiting worker does no other work.
    wait_seconds: float = 5.0
    #: For a body, both as it is sent and decoded.
    most_bytes: int = 10 * MIB
    redirects: int = 5
    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})
    #: Hosts and ports that may be reached at any address; see `guard.parse_host_ports`.
    allow: frozenset[tuple[str, int]] = frozenset()
    #: How many requests one site gets at the same time.
    at_once: int = 2
    #: Seconds from the start of one request to the start of the next at one site.
    delay: float = 0.25
    user_agent: str = f"Nexus/{__version__}"


def open_socket(address: Address, port: int, seconds: float) -> socket.socket:
    """Connect to an address. No name is looked up. Raises OSError."""
    sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.settimeout(seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect((str(address), port))
    except BaseException:
        sock.close()
        raise
    return sock


class FetchDeadline(Deadline):
    """When a fetch must end. Waiting for a turn at a busy site has a budget of its own."""

    def __init__(self, seconds: float, wait_seconds: float, clock: Callable[[], float]) -> None:
        super().__init__(seconds, clock, FetchTimeout)
        self._patience = wait_seconds

    def patience(self) -> float:
        """Return the seconds that may still be spent on waiting for a turn."""
        return max(self._patience, 0.0)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Charge the time spent in here to the patience, not to the fetch."""
        began = self._clock()
        try:
            yield
        finally:
            waited = self._clock() - began
            self._end += waited
            self._patience -= waited


@dataclass(frozen=True)
class System:
    """What a fetch needs from the machine. Tests replace it."""

    #: Like `socket.getaddrinfo`. The host is given as bytes, so that it is used as it is.
    resolve: Callable[..., list[Any]] = socket.getaddrinfo
    connect: Callable[[Address, int, float], socket.socket] = open_socket
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = field(default=partial(datetime.now, UTC))
