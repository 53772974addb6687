"""What one connection may cost before anyone knows who is calling, and all connections of a server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol

Network = IPv4Network | IPv6Network
#: An IPv6 caller has a whole network, which this many bits name.
IPV6_NETWORK = 64


@dataclass(frozen=True)
class ConnectionLimits:
    """Tests set other times, so that nobody has to wait."""

    #: The request line and the header fields together.
    head_bytes: int = 32 * 1024
    head_fields: int = 100
    head_seconds: float = 10.0
    #: In each span of this many seconds, at least this many bytes of a body must arrive.
    body_seconds: float = 20.0
    body_bytes: int = 10_000
    #: In each span of this many seconds, the client must take at least this many bytes of an answer.
    answer_seconds: float = 30.0
    answer_bytes: int = 10_000
    #: How long the rest of a request that is answered already is read and thrown away, so that the client reads the
    #: answer. A connection that is closed before that is reset, and the answer lost.
    linger_seconds: float = 5.0
    #: How often all this is looked at.
    look_seconds: float = 1.0
    connections: int = 2000
    per_address: int = 256
    #: Proxies speak for many people, so they are not counted by address.
    proxies: tuple[Network, ...] = ()


class Connection(Protocol):
    def look(self, now: float) -> None:
        """End the connection if its client has had its time."""


class Door:
    """All connections of one server: how many there are, and from where."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._caller_of: dict[Connection, str] = {}
        self._open_by_caller: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, connection: Connection, address: str) -> bool:
        """Count a connection in, unless there are enough already. One look at all of them costs less than a timer for
        each."""
        if len(self._caller_of) >= self.limits.connections:
            return False
        caller = self._caller(address)
        if caller and self._open_by_caller[caller] >= self.limits.per_address:
            return False
        self._caller_of[connection] = caller
        self._open_by_caller[caller] += 1
        if self._timer is None:
            self._look()
        return True

    def leave(self, connection: Connection) -> None:
        """Does nothing for a connection that was not admitted."""
        caller = self._caller_of.pop(connection, None)
        if caller is None:
            return
        self._open_by_caller[caller] -= 1
        if not self._open_by_caller[caller]:
            del self._open_by_caller[caller]

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for connection in tuple(self._caller_of):
            connection.look(loop.time())
        self._timer = loop.call_later(self.limits.look_seconds, self._look) if self._caller_of else None

    def _caller(self, address: str) -> str:
        """Whom a connection is counted for, or nobody if a proxy sends it."""
        return caller_of(address, self.limits.proxies)


@lru_cache(maxsize=10_000)
def caller_of(address: str, proxies: tuple[Network, ...]) -> str:
    try:
        found = ip_address(address)
    except ValueError:  # a Unix socket has no address
        return ""
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if any(found in network for network in proxies):
        return ""
    if isinstance(found, IPv6Address):
        return str(ip_network((found, IPV6_NETWORK), strict=False))
    return str(found)


def networks(addresses: Iterable[str]) -> tuple[Network, ...]:
    """Raises ValueError for what is neither an address nor a network."""
    return tuple(ip_network(address, strict=False) for address in addresses)
