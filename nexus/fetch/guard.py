"""Where a fetch may go: one parse of an address, and the checks on it. Opens nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

import can_ada

from nexus.errors import FetchBadAnswer, FetchBlockedAddress
from nexus.fetch.addresses import Address, is_public

DEFAULT_PORTS = {"http:": 80, "https:": 443}
#: Longer places to go on to are noise.
MAX_LOCATION = 8192

#: Port 0 is none.
PAIR = re.compile(r"[^\s/?#@\\*]+:0*[1-9][0-9]*")

NOT_AN_ADDRESS = (
    "This is not a web address that Nexus can go to. Give one that begins with http:// or https://."
)
CREDENTIALS = "The address holds a user name or password. Add it without them."


@dataclass(frozen=True)
class Target:
    """An address, parsed once: what is dialled, named to the site and asked for all come from here."""

    #: Whole, without a fragment.
    url: str
    scheme: str
    #: IPv6 stands without brackets.
    host: str
    port: int
    #: Host and port as the Host header says them.
    authority: str
    #: Path and query.
    path: str

    @property
    def site(self) -> str:
        return self.host.rstrip(".")


@dataclass(frozen=True)
class Guard:
    ports: frozenset[int]
    allow: frozenset[tuple[str, int]]

    def target(self, url: str) -> Target:
        """Raises FetchBlockedAddress when no fetch may go there."""
        try:
            return self._checked(can_ada.parse(url))
        except (ValueError, TypeError) as error:  # TypeError: half a surrogate pair
            raise FetchBlockedAddress(NOT_AN_ADDRESS) from error

    def follow(self, target: Target, location: str) -> Target:
        """Where a redirect leads. Raises FetchBadAnswer or FetchBlockedAddress."""
        if len(location) > MAX_LOCATION:
            raise FetchBadAnswer
        try:
            return self._checked(can_ada.parse(target.url) + location)
        except (ValueError, TypeError) as error:
            raise FetchBadAnswer from error

    def check(self, host: str, port: int, addresses: Iterable[Address]) -> None:
        """Every address that a name answers with. Raises FetchBlockedAddress."""
        if (host, port) not in self.allow and not all(map(is_public, addresses)):
            raise FetchBlockedAddress

    def _checked(self, parsed: can_ada.URL) -> Target:
        if parsed.protocol not in DEFAULT_PORTS or not parsed.hostname:
            raise FetchBlockedAddress(NOT_AN_ADDRESS)
        if parsed.has_credentials():
            raise FetchBlockedAddress(CREDENTIALS)
        target = _target(parsed)
        if target.port not in self.ports and (target.host, target.port) not in self.allow:
            raise FetchBlockedAddress(f"Nexus does not go to port {target.port}. Add an address without it.")
        if (address := literal(target.host)) is not None:
            self.check(target.host, target.port, [address])
        return target


def literal(host: str) -> Address | None:
    """The address that a host is, unless it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def pairs(entries: Iterable[str]) -> frozenset[tuple[str, int]]:
    """The pairs of an allow-list, each written as host:port. Raises ValueError."""
    return frozenset(map(_pair, entries))


def _pair(entry: str) -> tuple[str, int]:
    try:
        if not PAIR.fullmatch(entry):
            raise ValueError
        target = _target(can_ada.parse(f"http://{entry}/"))
    except ValueError as error:
        raise ValueError(f"{entry} is not a host:port pair") from error
    return target.host, target.port


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
