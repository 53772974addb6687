"""What a fetch may cost, and what it takes from the machine it runs on."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nexus import __version__
from nexus.fetch.addresses import Address

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    #: For the whole fetch: looking up names, connecting, all redirects, the last byte.
    seconds: float = 30.0
    #: On top of that, for waiting until a busy site has a place. Short: who waits keeps others from their work.
    wait_seconds: float = 5.0
    #: Of a body, as it comes over the wire and once it is decoded.
    most_bytes: int = 10 * MIB
    redirects: int = 5
    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})
    #: Host and port that may be reached wherever they lead; see `guard.pairs`.
    allow: frozenset[tuple[str, int]] = frozenset()
    #: Requests that one site gets at the same time.
    at_once: int = 2
    #: Seconds from the start of one request to the start of the next at one site.
    delay: float = 0.25
    user_agent: str = f"Nexus/{__version__}"


def connect(address: Address, port: int, seconds: float) -> socket.socket:
    """A socket to an address; no name is looked up. Raises OSError."""
    sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.settimeout(seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect((str(address), port))
    except BaseException:
        sock.close()
        raise
    return sock


def wall_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class System:
    """What tests replace."""

    #: As `socket.getaddrinfo`; the host is given as bytes, so that it is taken as it stands.
    resolve: Callable[..., list[Any]] = socket.getaddrinfo
    connect: Callable[[Address, int, float], socket.socket] = connect
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = wall_clock
