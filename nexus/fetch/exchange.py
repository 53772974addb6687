"""Sends one request and receives its answer, on a connection of its own."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpcore2

from nexus.errors import FetchBadAnswer, FetchFailed
from nexus.fetch.answers import ResponseHead
from nexus.fetch.guard import Target
from nexus.fetch.limits import BROKE_OFF
from nexus.fetch.sockets import Dialer

Headers = list[tuple[bytes, bytes]]
make_tls_context = httpcore2.default_ssl_context


@contextmanager
def send_request(
    target: Target, headers: Headers, body: bytes | None, dialer: Dialer, tls: ssl.SSLContext | None
) -> Iterator[tuple[ResponseHead, Iterator[bytes]]]:
    """Yield the head of the answer, and its body as it arrives. With a body of its own it is a POST.

    Raises FetchFailed or a kind of it.
    """
    request = _request(target, headers, body)
    with (
        httpcore2.HTTPConnection(request.url.origin, tls, network_backend=dialer) as line,
        _explained(dialer),
    ):
        answer = line.handle_request(request)
        head = ResponseHead.of(answer.status, answer.headers)
        with _answered(head), _explained(dialer):
            yield head, _chunks(answer, dialer)


def _request(target: Target, headers: Headers, body: bytes | None = None) -> httpcore2.Request:
    url = httpcore2.URL(
        scheme=target.scheme.encode("ascii"),
        host=target.host.encode("ascii"),
        port=target.port,
        target=target.path.encode("ascii"),
    )
    # Names in certificates have no final dot.
    extensions = {"sni_hostname": target.site}
    if body is None:
        return httpcore2.Request("GET", url, headers=headers, extensions=extensions)
    headers = [*headers, (b"Content-Length", str(len(body)).encode("ascii"))]
    return httpcore2.Request("POST", url, headers=headers, content=body, extensions=extensions)


def _chunks(answer: httpcore2.Response, dialer: Dialer) -> Iterator[bytes]:
    for chunk in answer.iter_stream():
        dialer.wire.pay(chunk)
        yield chunk


@contextmanager
def _explained(dialer: Dialer) -> Iterator[None]:
    """An answer that ends too early is the network's fault. Any other that can't be read is the site's."""
    try:
        yield
    except httpcore2.ProtocolError as error:
        raise FetchFailed(BROKE_OFF) if dialer.wire.ended else FetchBadAnswer from error
    except httpcore2.NetworkError as error:
        raise FetchFailed(BROKE_OFF) from error


@contextmanager
def _answered(head: ResponseHead) -> Iterator[None]:
    """Add the status and type of the answer to whatever fails from here on."""
    try:
        yield
    except FetchFailed as error:
        error.http_status, error.content_type = head.status, head.content_type()
        raise
