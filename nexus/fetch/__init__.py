"""How bytes arrive: the guarded GET, and for a site's API a guarded POST of a few bytes.

Every hop is checked: its scheme, its port, and each address that its name resolves to, against IANA's registries. The
connection goes to a checked address, and the peer is compared with it. Time and bytes are counted at the socket. A
host and port on the allow-list skip the checks of port and address, but no others.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from nexus.deadline import Deadline
from nexus.errors import FetchBadAnswer, FetchFailed, FetchRedirects, FetchTooLarge
from nexus.fetch.addresses import Address
from nexus.fetch.answers import (
    ACCEPT,
    ACCEPT_PICTURE,
    NOT_MODIFIED,
    PARTIAL,
    PERMANENT,
    REDIRECTS,
    SNIFFED,
    ResponseHead,
    body_type,
    page_type,
    require_success,
    sendable,
)
from nexus.fetch.blocks import ProviderBlocks
from nexus.fetch.encodings import OFFERED, Decoder, make_decoder
from nexus.fetch.guard import Guard, Target, parse_host_ports, parse_ip
from nexus.fetch.limits import FetchDeadline, FetchLimits, System
from nexus.fetch.lookups import Lookups
from nexus.fetch.pace import SiteBook, SitePace
from nexus.fetch.ranges import ByteRange
from nexus.fetch.streams import UNSATISFIABLE, Stream, StreamDeadline, begin_stream

__all__ = [
    "ByteRange",
    "Download",
    "FetchLimits",
    "Fetcher",
    "NotModified",
    "Stream",
    "System",
    "page_type",
    "parse_host_ports",
]

Headers = list[tuple[bytes, bytes]]

#: Questions to an API are short. Nothing else is sent to a site.
MOST_POSTED = 64 * 1024
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Download:
    """What an address answered, complete and decoded."""

    #: Where the redirects ended.
    url: str
    status: int
    #: One of the accepted types. If the site did not say, what the bytes look like. Empty for what is not a page.
    content_type: str
    #: From the Content-Type header.
    charset: str | None
    body: bytes
    etag: str | None = None
    last_modified: str | None = None
    #: The complete header as the site sent it; None if it sent none.
    content_type_header: str | None = None
    #: Where it has moved for good: the end of the permanent redirects that came before any other.
    moved_to: str | None = None


@dataclass(frozen=True)
class NotModified:
    """What was fetched before is still current, if it came from this address, where the redirects ended."""

    url: str
    moved_to: str | None = None


class _Redirect(NamedTuple):
    target: Target
    is_permanent: bool


@dataclass(frozen=True)
class _Wanted:
    """What a request asks for, and how much of it may come."""

    accept: str
    most_bytes: int
    #: Of a page, the type has to be one that Nexus reads. What anything else is, its bytes tell.
    is_page: bool
    validators: Headers
    #: For the site that is asked, and for none that it redirects to: one of them may be a cookie.
    private: Headers = field(default_factory=list)
    #: What is posted; None for a GET.
    body: bytes | None = None

    def headers(self) -> Headers:
        return [(b"Accept", self.accept.encode("ascii")), *self.validators, *self.private]


class Fetcher:
    """Fetches addresses. A process has one, shared by its threads. Processes that share a book keep one pace."""

    def __init__(
        self, limits: FetchLimits = FetchLimits(), system: System = System(), book: SiteBook | None = None
    ) -> None:
        self._limits = limits
        self._system = system
        self._guard = Guard(limits.ports, limits.allow)
        self._lookups = Lookups(system.resolve)
        self._pace = SitePace(limits.at_once, limits.delay, system, book)
        self._blocks = ProviderBlocks(self._pace.book)
        # Its debug lines contain the headers of answers, and so complete addresses.
        logging.getLogger("httpcore2").setLevel(logging.WARNING)

    def get(
        self, url: str, *, etag: str | None = None, last_modified: str | None = None
    ) -> Download | NotModified:
        """Return the page or PDF at an address, or NotModified if a validator was given and still holds.

        Raises FetchFailed or a kind of it; it is transient if the same may succeed a little later.
        """
        validators = _validators(etag, last_modified)
        return self._get(
            url, _Wanted(ACCEPT, self._limits.most_bytes, True, validators), self._limits.seconds
        )

    def get_data(
        self,
        url: str,
        accept: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> Download | NotModified:
        """Return what is at an address, of any type: a feed, say, or captions. Only its header says what it is.

        Of more headers, those that can't be sent are left out. Raises as `get` does.
        """
        validators = _validators(etag, last_modified)
        wanted = _Wanted(accept, self._limits.most_bytes, False, validators, _sendable(headers))
        return self._get(url, wanted, self._limits.seconds)

    def post_data(
        self, url: str, body: bytes, accept: str, *, headers: Mapping[str, str] = NO_HEADERS
    ) -> Download:
        """Post a short question to a site's API; return the answer, of any type. No redirect is followed.

        Raises as `get` does, and ValueError if the question is too long.
        """
        if len(body) > MOST_POSTED:
            raise ValueError(f"{len(body)} bytes are too many to post")
        wanted = _Wanted(accept, self._limits.most_bytes, False, [], _sendable(headers), body)
        found = self._get(url, wanted, self._limits.seconds)
        if isinstance(found, NotModified):
            raise FetchBadAnswer
        return found

    def get_picture(self, url: str, seconds: float, most_bytes: int) -> bytes:
        """Return what is at the address of a picture, of any type: the caller has to look at the bytes.

        Raises as `get` does.
        """
        found = self._get(url, _Wanted(ACCEPT_PICTURE, most_bytes, False, []), seconds)
        if isinstance(found, NotModified):
            raise FetchBadAnswer
        return found.body

    @contextmanager
    def stream(
        self,
        url: str,
        accept: str,
        *,
        most_bytes: int,
        most_seconds: float | None = None,
        part: ByteRange | None = None,
    ) -> Iterator[Stream]:
        """Yield what is at an address, or a part of it, as it arrives. Nothing of it is held in memory.

        The site has the time of a fetch for its head and for each piece. A place of the site is taken for the head
        alone: somebody who listens for an hour must not keep others from it. Raises as `get` does, also while the
        pieces are read.
        """
        limits = self._limits
        deadline = StreamDeadline(limits.seconds, limits.wait_seconds, self._system.clock, most_seconds)
        wanted = [(b"Accept", accept.encode("ascii"))]
        if part is not None:
            wanted.append((b"Range", part.header.encode("ascii")))
        target = self._guard.target(url)
        for _ in range(limits.redirects + 1):
            with ExitStack() as opened:
                head, chunks = self._open(target, wanted, deadline, opened)
                if head.status not in REDIRECTS:
                    yield begin_stream(target.url, head, part, chunks, most_bytes, deadline)
                    return
                target = self._guard.follow(target, head.location())
        raise FetchRedirects

    def asking(self, provider: str) -> AbstractContextManager[None]:
        """Ask a provider that may block this address; see `ProviderBlocks.asking`."""
        return self._blocks.asking(provider)

    def close(self) -> None:
        """Start no more fetches, and fail those that wait for their turn. The others run to their end."""
        self._pace.close()

    def _get(self, url: str, wanted: _Wanted, seconds: float) -> Download | NotModified:
        deadline = FetchDeadline(seconds, self._limits.wait_seconds, self._system.clock)
        target = self._guard.target(url)
        moved_to, is_permanent = None, True
        for _ in range(self._limits.redirects + 1):
            found = self._visit(target, wanted, deadline)
            if not isinstance(found, _Redirect):
                return found if moved_to is None else replace(found, moved_to=moved_to)
            if found.target.origin != target.origin:
                wanted = replace(wanted, private=[])
            target, is_permanent = found.target, is_permanent and found.is_permanent
            moved_to = target.url if is_permanent else moved_to
        raise FetchRedirects

    def _visit(
        self, target: Target, wanted: _Wanted, deadline: FetchDeadline
    ) -> Download | NotModified | _Redirect:
        """Send one request."""
        with self._pace.place(target, deadline):
            try:
                return self._ask(target, wanted, deadline)
            except FetchFailed as error:
                if error.retry_after:
                    self._pace.rest(target, error.retry_after)
                raise

    def _open(
        self, target: Target, wanted: Headers, deadline: StreamDeadline, opened: ExitStack
    ) -> tuple[ResponseHead, Iterator[bytes]]:
        """Send the request for a stream; its connection stays open as long as `opened`."""
        with self._pace.place(target, deadline):
            try:
                exchange = self._send(target, self._headers(target, "identity") + wanted, deadline)
                head, chunks = opened.enter_context(exchange)
                if head.status not in {*REDIRECTS, PARTIAL, UNSATISFIABLE}:
                    require_success(head, self._system.now())
            except FetchFailed as error:
                if error.retry_after:
                    self._pace.rest(target, error.retry_after)
                raise
            return head, chunks

    def _send(
        self, target: Target, headers: Headers, deadline: Deadline, body: bytes | None = None
    ) -> AbstractContextManager[tuple[ResponseHead, Iterator[bytes]]]:
        from nexus.fetch.exchange import send_request  # noqa: PLC0415 its HTTP client is slow to load
        from nexus.fetch.sockets import Dialer  # noqa: PLC0415 the same

        dialer = Dialer(self._addresses, self._system.connect, deadline)
        tls = self._tls if target.scheme == "https" else None
        return send_request(target, headers, body, dialer, tls)

    def _ask(self, target: Target, wanted: _Wanted, deadline: Deadline) -> Download | NotModified | _Redirect:
        headers = self._headers(target) + wanted.headers()
        with self._send(target, headers, deadline, wanted.body) as (head, chunks):
            if head.status in REDIRECTS and wanted.body is None:
                return _Redirect(self._guard.follow(target, head.location()), head.status in PERMANENT)
            if head.status == NOT_MODIFIED and wanted.validators:
                return NotModified(target.url)
            require_success(head, self._system.now())
            return _response(target, wanted, head, chunks, deadline)

    def _headers(self, target: Target, encodings: str = OFFERED) -> Headers:
        headers = {
            "Host": target.authority,
            "User-Agent": self._limits.user_agent,
            "Accept-Encoding": encodings,
            "Connection": "close",
        }
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]

    def _addresses(self, host: str, port: int, deadline: Deadline) -> list[Address]:
        """Return the addresses to connect to: looked up once, and all checked."""
        address = parse_ip(host)
        found = self._lookups.addresses(host, port, deadline) if address is None else [address]
        self._guard.check(host, port, found)
        return found

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        from nexus.fetch.exchange import make_tls_context  # noqa: PLC0415 the same

        return make_tls_context()


def _validators(etag: str | None, last_modified: str | None) -> Headers:
    return _sendable({"If-None-Match": etag, "If-Modified-Since": last_modified})


def _sendable(given: Mapping[str, str | None] | Mapping[str, str]) -> Headers:
    values = ((name, sendable(value)) for name, value in given.items())
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in values if value]


def _response(
    target: Target, wanted: _Wanted, head: ResponseHead, chunks: Iterator[bytes], deadline: Deadline
) -> Download:
    """Read the body, but only once its type, encoding and stated size are accepted."""
    said = head.media_type() if wanted.is_page else None
    engine = make_decoder(head.encoding())
    head.require_size(wanted.most_bytes)
    pieces = _decoded(_bounded(chunks, wanted.most_bytes), engine, deadline)
    body = bytearray()
    _fill(body, pieces, SNIFFED)
    media_type = body_type(said, bytes(body[:SNIFFED])) if wanted.is_page else ""
    _fill(body, pieces, wanted.most_bytes + 1)
    if len(body) > wanted.most_bytes:
        raise FetchTooLarge
    return Download(
        url=target.url,
        status=head.status,
        content_type=media_type,
        charset=head.charset(),
        body=bytes(body),
        etag=head.validator("etag"),
        last_modified=head.validator("last-modified"),
        content_type_header=head.content_type(),
    )


def _bounded(chunks: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Yield the body as it arrives. Raises FetchTooLarge once it is longer than it may be."""
    left = most
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise FetchTooLarge
        yield chunk


def _decoded(chunks: Iterator[bytes], engine: Decoder, deadline: Deadline) -> Iterator[bytes]:
    for chunk in chunks:
        for piece in engine.feed(chunk):
            deadline.left()
            yield piece
    yield from engine.end()


def _fill(body: bytearray, pieces: Iterator[bytes], enough: int) -> None:
    """Add pieces until there is enough, or no more."""
    while len(body) < enough and (piece := next(pieces, None)) is not None:
        body += piece
