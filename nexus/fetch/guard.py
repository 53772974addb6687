"""Decides where a fetch may go: parses an address once and checks it. Opens nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

import can_ada

from nexus.errors import FetchBadAnswer, FetchBlockedAddress
from nexus.fetch.addresses import Address, is_public

DEFAULT_PORTS = {"http:": 80, "https:": 443}
#: A longer redirect is noise.
MAX_LOCATION = 8192

#: Port 0 is not a port.
HOST_PORT = re.compile(r"[^\s/?#@\\*]+:0*[1-9][0-9]*")

NOT_AN_ADDRESS = "Nexus can't open this address. Use one that starts with http:// or https://."
PRIVATE = "The address is in a private network, which Nexus does not fetch from. Add a public address."
CREDENTIALS = "The address contains a user name or password. Add it without them."


@dataclass(frozen=True)
class Target:
    """An address, parsed once. The host to connect to, the Host header and the path all come from here."""

    #: Complete, without a fragment.
    url: str
    scheme: str
    #: IPv6 addresses have no brackets.
    host: str
    port: int
    #: Host and port as in the Host header.
    authority: str
    #: Path and query.
    path: str

    @property
    def site(self) -> str:
        return self.host.rstrip(".")

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


@dataclass(frozen=True)
class Guard:
    ports: frozenset[int]
    allow: frozenset[tuple[str, int]]

    def target(self, url: str) -> Target:
        """Parse and check an address. Raises FetchBlockedAddress if no fetch may go there."""
        try:
            found = _read(can_ada.parse(url))
        except (ValueError, TypeError) as error:  # TypeError: half a surrogate pair
            raise FetchBlockedAddress(NOT_AN_ADDRESS) from error
        return self._checked(*found)

    def follow(self, target: Target, location: str) -> Target:
        """Return where a redirect leads. Raises FetchBadAnswer or FetchBlockedAddress."""
        if len(location) > MAX_LOCATION:
            raise FetchBadAnswer
        try:
            found = _read(can_ada.parse(target.url) + location)
        except (ValueError, TypeError) as error:
            raise FetchBadAnswer from error
        return self._checked(*found)

    def check(self, host: str, port: int, addresses: Iterable[Address]) -> None:
        """Check every address that a name resolves to. Raises FetchBlockedAddress."""
        if (host, port) not in self.allow and not all(map(is_public, addresses)):
            raise FetchBlockedAddress(PRIVATE)

    def _checked(self, target: Target | None, has_credentials: bool) -> Target:
        if target is None:
            raise FetchBlockedAddress(NOT_AN_ADDRESS)
        if has_credentials:
            raise FetchBlockedAddress(CREDENTIALS)
        if target.port not in self.ports and (target.host, target.port) not in self.allow:
            raise FetchBlockedAddress(
                f"Nexus does not connect to port {target.port}. Add an address without it."
            )
        if (address := parse_ip(target.host)) is not None:
            self.check(target.host, target.port, [address])
        return target


def parse_ip(host: str) -> Address | None:
    """Return the address if the host is one, or None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def parse_host_ports(entries: Iterable[str]) -> frozenset[tuple[str, int]]:
    """Parse an allow-list of host:port entries. Raises ValueError."""
    return frozenset(map(_host_port, entries))


def _host_port(entry: str) -> tuple[str, int]:
    try:
        if not HOST_PORT.fullmatch(entry):
            raise ValueError
        target = _target(can_ada.parse(f"http://{entry}/"))
    except ValueError as error:
        raise ValueError(f"{entry} is not a host:port pair") from error
    return target.host, target.port


def _read(parsed: can_ada.URL) -> tuple[Target | None, bool]:
    """Return where an address leads, if there can be such a place, and whether it holds a user name or a password.

    Raises nothing: an error would keep the parser's object until the process ends, and the parser complains then.
    """
    leads = parsed.protocol in DEFAULT_PORTS and bool(parsed.hostname)
    return _target(parsed) if leads else None, parsed.has_credentials()


def _target(parsed: can_ada.URL) -> Target:
    path = parsed.pathname + parsed.search
    return Target(
        url=parsed.origin + path,
        scheme=parsed.protocol.removesuffix(":"),
        host=parsed.hostname.removeprefix("[").removesuffix("]"),
        port=int(parsed.port) if parsed.port else DEFAULT_PORTS[parsed.protocol],
        authority=parsed.host,
        path=path,
    )
