"""What a connection may cost before anyone knows who is calling: attacks over real sockets."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from nexus.app import App
from nexus.web.http.connections import ConnectionLimits, Door, networks
from tests.kit.http import Site, data, serve
from tests.kit.wire import Raw, Wire, request, wire

#: Looks often, and ends nothing. Each test shortens the one time that it is about.
PATIENT = ConnectionLimits(
    head_seconds=60, body_seconds=60, answer_seconds=60, linger_seconds=60, look_seconds=0.02
)


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """One is enough: nothing here reaches a database."""
    return sqlite_url


@contextmanager
def served(app: App, limits: ConnectionLimits) -> Iterator[tuple[Site, Wire]]:
    with serve(app, limits) as site, wire(site) as line:
        yield site, line


def code(answer: Raw) -> tuple[int, str]:
    """Checks that a refusal by the protocol itself has the shape and the headers of any other."""
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["connection"] == "close"
    error = json.loads(answer.body)["error"]
    assert error["request_id"] == answer.headers["x-request-id"]
    return answer.status, error["code"]


TOO_LARGE = (431, "E_INVALID_REQUEST")
TOO_LATE = (408, "E_INVALID_REQUEST")


def test_an_endless_header_is_refused_after_32_kib(app: App) -> None:
    """It cost the whole server time by the square of its length."""
    with served(app, PATIENT) as (site, line):
        line.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Endless: ")
        for _ in range(9):
            line.send(b"x" * 4096)
        assert code(line.answer()) == TOO_LARGE
        assert data(site.anyone().get("/healthz")) == {"status": "ok"}


@pytest.mark.parametrize(
    "head",
    [
        request("GET /healthz", f"X-Long: {'x' * 33_000}"),
        request(f"GET /healthz?{'x' * 33_000}"),
        request("GET /healthz", *(f"X-{number}: 1" for number in range(100))),
        b"GET /" + b"x" * 33_000,
        b"\r\n" * 17_000,
    ],
    ids=["a long field", "a long line", "101 fields", "an endless line", "empty lines without end"],
)
def test_a_head_that_is_too_large_is_refused(app: App, head: bytes) -> None:
    with served(app, PATIENT) as (_, line):
        line.send(head)
        assert code(line.answer()) == TOO_LARGE


def test_what_follows_a_chunked_body_is_limited_too(app: App) -> None:
    with served(app, PATIENT) as (_, line):
        line.send(request("GET /events", "Transfer-Encoding: chunked"))
        assert line.answer().status == 401
        # More than the server reads at once, which may begin with the end of the body.
        line.send(b"1\r\nx\r\n0\r\nX-Endless: " + b"x" * 2**20)
        assert code(line.answer()) == TOO_LARGE


def test_trailers_are_not_headers(site: Site, app: App) -> None:
    """A proxy that removes a header from requests does not look for it behind the body."""
    with wire(site) as line:
        token = site.caller().headers["authorization"]
        line.send(request("POST /media/url", "Transfer-Encoding: chunked", f"Authorization: {token}"))
        line.send(f"2\r\n{{}}\r\n0\r\nX-Nexus-Internal: {app.settings.internal_secret}\r\n\r\n".encode())
        assert line.answer().status == 401


def test_a_head_of_100_fields_and_nearly_32_kib_is_taken(app: App) -> None:
    fields = [f"X-{number}: {'x' * 300}" for number in range(99)]
    with served(app, PATIENT) as (_, line):
        for _ in range(3):  # each request has the whole allowance
            line.send(request("GET /healthz", *fields))
            assert line.answer().status == 200


def test_requests_sent_at_once_are_all_answered(app: App) -> None:
    """The limit is for each of them, not for what arrives together."""
    one = request("GET /healthz", f"X-Long: {'x' * 10_000}")
    with served(app, PATIENT) as (_, line):
        line.send(one * 20)
        assert [line.answer().status for _ in range(20)] == [200] * 20


def test_a_half_sent_head_ends_on_time(app: App) -> None:
    with served(app, replace(PATIENT, head_seconds=0.2)) as (_, line):
        line.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0")
        assert code(line.answer()) == TOO_LATE
        assert line.ends()


def test_the_next_head_of_a_connection_ends_on_time_too(app: App) -> None:
    with served(app, replace(PATIENT, head_seconds=0.2)) as (_, line):
        line.send(request("GET /healthz"))
        assert line.answer().status == 200
        line.send(b"GET /healthz HTTP/1.1\r\n")
        assert code(line.answer()) == TOO_LATE


def test_a_connection_without_a_word_ends_on_time(app: App) -> None:
    with served(app, replace(PATIENT, head_seconds=0.2)) as (_, line):
        assert line.ends()


def test_a_body_that_stands_still_ends_on_time(app: App) -> None:
    with served(app, replace(PATIENT, body_seconds=0.2)) as (site, line):
        me = site.caller().headers
        fields = [f"{name}: {me[name]}" for name in ("authorization", "x-nexus-internal")]
        line.send(request("POST /media/url", "Content-Length: 100", *fields) + b"{")
        assert code(line.answer()) == TOO_LATE


def test_a_body_that_trickles_ends_on_time(app: App) -> None:
    with served(app, replace(PATIENT, body_seconds=0.2, body_bytes=1000)) as (site, line):
        me = site.caller().headers
        fields = [f"{name}: {me[name]}" for name in ("authorization", "x-nexus-internal")]
        line.send(request("POST /media/url", "Content-Length: 100000", *fields))
        line.line.settimeout(0.01)
        for _ in range(10_000):
            try:
                line.send(b" ")
                answer = line.answer()
            except TimeoutError:
                continue
            break
        assert code(answer) == TOO_LATE


def test_an_answer_that_nobody_reads_ends_on_time(app: App) -> None:
    with served(app, replace(PATIENT, answer_seconds=0.2)) as (_, line):
        line.line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # Many times what the buffers of two sockets hold.
        line.send(request("GET /openapi.json") * 200)
        assert line.is_cut()


def test_the_rest_of_a_refused_body_ends_on_time(app: App) -> None:
    with served(app, replace(PATIENT, linger_seconds=0.2)) as (_, line):
        line.send(request("POST /media/url", "Content-Length: 1000000") + b"{")
        assert line.answer().status == 401
        assert line.ends()


def test_a_refusal_is_read_by_a_client_that_sends_its_body_first(app: App) -> None:
    """And the connection can be used again."""
    with served(app, PATIENT) as (_, line):
        size = 20 * 2**20
        line.send(request("POST /media/url", f"Content-Length: {size}"))
        for _ in range(20):
            line.send(b"x" * 2**20)
        assert line.answer().status == 401
        line.send(request("GET /healthz"))
        assert line.answer().status == 200


def test_there_are_no_more_connections_than_allowed(app: App) -> None:
    with serve(app, replace(PATIENT, connections=3)) as site, ExitStack() as others:
        lines = [others.enter_context(wire(site)) for _ in range(3)]
        for line in lines:
            line.send(request("GET /healthz"))
            assert line.answer().status == 200
        with wire(site) as one_more:
            assert code(one_more.answer()) == (503, "E_NOT_READY")
            assert one_more.ends()
        lines[0].send(request("GET /healthz", "Connection: close"))
        assert lines[0].ends()
        with wire(site) as next_one:
            next_one.send(request("GET /healthz"))
            assert next_one.answer().status == 200


def test_one_address_has_no_more_connections_than_allowed(app: App) -> None:
    with serve(app, replace(PATIENT, per_address=2)) as site, ExitStack() as others:
        for line in [others.enter_context(wire(site)) for _ in range(2)]:
            line.send(request("GET /healthz"))
            assert line.answer().status == 200
        with wire(site) as one_more:
            assert code(one_more.answer()) == (503, "E_NOT_READY")


class Held:
    def look(self, now: float) -> None:
        """Never late."""


async def _admitted(door: Door, addresses: list[str]) -> list[bool]:
    return [door.admit(Held(), address) for address in addresses]


@pytest.mark.parametrize(
    ("addresses", "admitted"),
    [
        (["192.0.2.1", "192.0.2.1", "192.0.2.2"], [True, False, True]),
        (["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"], [True, False, True]),
        (["192.0.2.1", "::ffff:192.0.2.1"], [True, False]),
        (["127.0.0.1", "127.0.0.1", "::1", "::1"], [True] * 4),
        (["10.1.2.3", "10.1.2.3", "10.9.9.9"], [True] * 3),
        (["", ""], [True] * 2),
    ],
    ids=["IPv4", "one IPv6 network", "two spellings", "proxies here", "a network of proxies", "no address"],
)
def test_proxies_are_not_counted_by_address(addresses: list[str], admitted: list[bool]) -> None:
    door = Door(ConnectionLimits(per_address=1, proxies=networks(["127.0.0.1", "::1", "10.0.0.0/8"])))
    assert asyncio.run(_admitted(door, addresses)) == admitted
