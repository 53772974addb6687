"""How bytes arrive: the guarded GET.

Every hop is checked anew: its scheme, its port, and each address that its name answers with, against the registries
of IANA. The checked address is what is dialled, and who answers is compared with it. Time and bytes are counted at
the socket. A host and port on the allow-list pass the checks of port and address, and no other.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from nexus.errors import FetchFailed, FetchRedirects, FetchTooLarge
from nexus.fetch.addresses import Address
from nexus.fetch.answers import (
    ACCEPT,
    NOT_MODIFIED,
    REDIRECTS,
    SNIFFED,
    Head,
    body_type,
    page_type,
    require_page,
    sendable,
)
from nexus.fetch.deadline import Deadline
from nexus.fetch.encodings import OFFERED, Decoder, decoder
from nexus.fetch.guard import Guard, Target, literal, pairs
from nexus.fetch.limits import Limits, System
from nexus.fetch.names import Lookups
from nexus.fetch.pace import Pace

__all__ = ["Fetcher", "Limits", "NotModified", "Response", "System", "page_type", "pairs"]

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Response:
    """What an address answered, whole and decoded."""

    #: Where the redirects ended.
    url: str
    status: int
    #: One of those that are accepted; where the site did not say, what the bytes look like.
    content_type: str
    #: From the Content-Type header.
    charset: str | None
    body: bytes
    etag: str | None = None
    last_modified: str | None = None
    #: Whole, as the site sent it; None if it sent none.
    content_type_header: str | None = None


@dataclass(frozen=True)
class NotModified:
    """What was got before from this address still stands: from this one, where the redirects ended, and no other."""

    url: str


class Fetcher:
    """One for a process, shared by its threads."""

    def __init__(self, limits: Limits = Limits(), system: System = System()) -> None:
        self._limits = limits
        self._system = system
        self._guard = Guard(limits.ports, limits.allow)
        self._lookups = Lookups(system.resolve)
        self._pace = Pace(limits.at_once, limits.delay, system)
        # Its debug lines hold the headers of answers, and with them addresses whole.
        logging.getLogger("httpcore2").setLevel(logging.WARNING)

    def get(
        self, url: str, *, etag: str | None = None, last_modified: str | None = None
    ) -> Response | NotModified:
        """The page or PDF at an address; NotModified only where a validator was given. Raises FetchFailed or a kind
        of it: transient where the same may succeed a little later."""
        deadline = Deadline(self._limits.seconds, self._limits.wait_seconds, self._system.clock)
        validators = _validators(etag, last_modified)
        target = self._guard.target(url)
        for _ in range(self._limits.redirects + 1):
            found = self._visit(target, validators, deadline)
            if not isinstance(found, Target):
                return found
            target = found
        raise FetchRedirects

    def close(self) -> None:
        """No fetch begins after this, and none goes on waiting for its turn. Those under way end in their own time."""
        self._pace.close()

    def _visit(
        self, target: Target, validators: Headers, deadline: Deadline
    ) -> Response | NotModified | Target:
        """One request on a connection of its own; a target is where to go on."""
        with self._pace.place(target, deadline):
            try:
                return self._ask(target, validators, deadline)
            except FetchFailed as error:
                if error.retry_after:
                    self._pace.rest(target, error.retry_after)
                raise

    def _ask(
        self, target: Target, validators: Headers, deadline: Deadline
    ) -> Response | NotModified | Target:
        from nexus.fetch.exchange import exchanged  # noqa: PLC0415 its HTTP client is slow to load
        from nexus.fetch.wire import Dialer  # noqa: PLC0415 the same

        dialer = Dialer(self._addresses, self._system.connect, deadline)
        tls = self._tls if target.scheme == "https" else None
        with exchanged(target, self._headers(target) + validators, dialer, tls) as (head, chunks):
            if head.status in REDIRECTS:
                return self._guard.follow(target, head.location())
            if head.status == NOT_MODIFIED and validators:
                return NotModified(target.url)
            require_page(head, self._system.now())
            return self._response(target, head, chunks, deadline)

    def _response(self, target: Target, head: Head, chunks: Iterator[bytes], deadline: Deadline) -> Response:
        """Nothing of the body is read before its type, its encoding and what it says of its size are accepted."""
        said = head.media_type()
        engine = decoder(head.encoding())
        head.require_size(self._limits.most_bytes)
        pieces = _decoded(self._bounded(chunks), engine, deadline)
        body = bytearray()
        _fill(body, pieces, SNIFFED)
        media_type = body_type(said, bytes(body[:SNIFFED]))
        _fill(body, pieces, self._limits.most_bytes + 1)
        if len(body) > self._limits.most_bytes:
            raise FetchTooLarge
        return Response(
            url=target.url,
            status=head.status,
            content_type=media_type,
            charset=head.charset(),
            body=bytes(body),
            etag=head.validator("etag"),
            last_modified=head.validator("last-modified"),
            content_type_header=head.content_type(),
        )

    def _bounded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The body as it comes, no longer than it may be."""
        left = self._limits.most_bytes
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise FetchTooLarge
            yield chunk

    def _headers(self, target: Target) -> Headers:
        headers = {
            "Host": target.authority,
            "User-Agent": self._limits.user_agent,
            "Accept": ACCEPT,
            "Accept-Encoding": OFFERED,
            "Connection": "close",
        }
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]

    def _addresses(self, host: str, port: int, deadline: Deadline) -> list[Address]:
        """Where a host may be dialled: asked once, and every answer checked."""
        address = literal(host)
        found = self._lookups.addresses(host, port, deadline) if address is None else [address]
        self._guard.check(host, port, found)
        return found

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        from nexus.fetch.exchange import make_tls_context  # noqa: PLC0415 the same

        return make_tls_context()


def _validators(etag: str | None, last_modified: str | None) -> Headers:
    given = {"If-None-Match": sendable(etag), "If-Modified-Since": sendable(last_modified)}
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in given.items() if value]


def _decoded(chunks: Iterator[bytes], engine: Decoder, deadline: Deadline) -> Iterator[bytes]:
    for chunk in chunks:
        for piece in engine.feed(chunk):
            deadline.left()
            yield piece
    yield from engine.end()


def _fill(body: bytearray, pieces: Iterator[bytes], enough: int) -> None:
    """Take pieces until there is enough, or no more."""
    while len(body) < enough and (piece := next(pieces, None)) is not None:
        body += piece
