"""What every request is checked for, and what every answer carries, whatever the route."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from nexus.settings import Settings

Headers = tuple[tuple[bytes, bytes], ...]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
#: Listening on these means listening on every address, so they name none.
EVERYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104
ANY_HOST = "*"
#: How many spellings of the allowed hosts, with their ports, are remembered.
REMEMBERED = 1000
#: A year, in seconds.
HTTPS_FOR = 365 * 24 * 60 * 60
_ALWAYS: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (b"cache-control", b"no-store"),
)


#: A name or an address, and maybe a port: nothing may stand behind what is compared.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s\[\]:@/\\?#]+)(:[0-9]{0,5})?", re.ASCII)


def safe_headers(settings: Settings) -> Headers:
    """The headers of an answer that says nothing else about them. Pages and files have their own."""
    if urlsplit(settings.public_url).scheme != "https":
        return _ALWAYS
    return (*_ALWAYS, (b"strict-transport-security", f"max-age={HTTPS_FOR}; includeSubDomains".encode()))


class Hosts:
    """The names by which this Nexus may be called.

    A page of another site whose name resolves to this machine sends that name, so it reaches nothing.
    """

    def __init__(self, settings: Settings) -> None:
        chosen = settings.hosts or _usual(settings)
        self._any = ANY_HOST in chosen
        self._names = {_bare(name) for name in chosen if not name.startswith("*.")}
        self._endings = tuple(_bare(name[1:]) for name in chosen if name.startswith("*."))
        self._known: set[bytes] = set()

    def allow(self, given: bytes | None) -> bool:
        """Whether a Host header names this Nexus."""
        if given is None:
            return False
        if given in self._known:
            return True
        host = given.decode("latin-1").strip()
        name = _bare(host)
        is_ours = self._any or name in self._names or bool(self._endings and name.endswith(self._endings))
        allowed = is_ours and _HOST.fullmatch(host) is not None
        if allowed and len(self._known) < REMEMBERED:
            self._known.add(given)
        return allowed


def _usual(settings: Settings) -> tuple[str, ...]:
    public = urlsplit(settings.public_url).netloc.rpartition("@")[2]
    listens = () if settings.host in EVERYWHERE else (settings.host,)
    return (*LOOPBACK, *((public,) if public else ()), *listens)


def _bare(host: str) -> str:
    """Without its port, and in one spelling. An IPv6 address has colons of its own."""
    name = host.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0][1:]
    return (name if name.count(":") > 1 else name.partition(":")[0]).rstrip(".")
