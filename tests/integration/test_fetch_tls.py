"""Secure sites: certificates are checked, and all limits apply to them too."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from nexus.errors import (
    FetchBadAnswer,
    FetchBlockedAddress,
    FetchFailed,
    FetchInsecure,
    FetchTimeout,
    FetchTooLarge,
)
from nexus.fetch import Download, Fetcher, FetchLimits, System, parse_host_ports
from tests.kit.certificates import NOW, Authority
from tests.kit.servers.hostile_site import PAGE, Hostile, Talk, answer, hostile, redirect


@pytest.fixture
def trusted_by_fetchers(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "authority.pem"
    path.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


NAMES = (x509.DNSName("site.test"), x509.IPAddress(ip_address("127.0.0.1")))


@pytest.fixture
def secure_site(authority: Authority, tmp_path: Path) -> Iterator[Hostile]:
    with hostile(authority.context(tmp_path, *NAMES, until=NOW + timedelta(days=1))) as server:
        server.on(answer())
        yield server


def make(site: Hostile, **limits: float) -> Fetcher:
    def resolve(host: bytes, port: int, **_: object) -> list[object]:
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    hosts = ("127.0.0.1", "site.test", "site.test.", "other.test", ".site.test")
    allow = parse_host_ports([f"{host}:{site.port}" for host in hosts])
    return Fetcher(FetchLimits(allow=allow, delay=0, **limits), System(resolve=resolve))  # type: ignore[arg-type]


@pytest.mark.usefixtures("trusted_by_fetchers")
@pytest.mark.parametrize("host", ["127.0.0.1", "site.test", "SITE.test", "site.test."])
def test_a_site_with_a_valid_certificate_is_read(secure_site: Hostile, host: str) -> None:
    found = make(secure_site).get(f"https://{host}:{secure_site.port}/")
    assert isinstance(found, Download)
    assert found.body == PAGE


@pytest.mark.usefixtures("trusted_by_fetchers")
@pytest.mark.parametrize("host", ["other.test", ".site.test"])
def test_a_site_with_a_certificate_for_another_name_gets_no_request(secure_site: Hostile, host: str) -> None:
    with pytest.raises(FetchInsecure):
        make(secure_site).get(f"https://{host}:{secure_site.port}/")
    assert secure_site.requests == []


def test_a_site_with_an_untrusted_certificate_gets_no_request(secure_site: Hostile) -> None:
    with pytest.raises(FetchInsecure, match="certificate is not valid") as failed:
        make(secure_site).get(secure_site.url())
    assert not failed.value.transient
    assert secure_site.requests == []


@pytest.mark.usefixtures("trusted_by_fetchers")
def test_an_expired_certificate_is_refused(authority: Authority, tmp_path: Path) -> None:
    with hostile(authority.context(tmp_path, *NAMES, until=NOW - timedelta(days=1))) as site:
        with pytest.raises(FetchInsecure):
            make(site).get(site.url())
        assert site.requests == []


@pytest.mark.usefixtures("trusted_by_fetchers")
def test_a_long_page_and_a_long_request_pass_through_tls_whole(secure_site: Hostile) -> None:
    body = bytes(range(32, 127)) * 20_000
    path = "/?" + "q" * 40_000
    secure_site.on(answer(body), path)
    found = make(secure_site).get(secure_site.url(path))
    assert isinstance(found, Download)
    assert found.body == body


@pytest.mark.usefixtures("trusted_by_fetchers")
def test_a_redirect_to_a_plain_address_is_followed_and_checked(secure_site: Hostile) -> None:
    with hostile() as plain:
        plain.on(answer())
        secure_site.on(redirect(plain.url()), "/plain")
        secure_site.on(redirect("http://127.0.0.1/"), "/private")
        allow = parse_host_ports([secure_site.pair, plain.pair])
        fetcher = Fetcher(FetchLimits(allow=allow, delay=0))
        found = fetcher.get(secure_site.url("/plain"))
        assert isinstance(found, Download)
        assert found.url == plain.url()
        with pytest.raises(FetchBlockedAddress):
            fetcher.get(secure_site.url("/private"))


# hostile, behind the handshake


def endless(talk: Talk) -> None:
    talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    talk.forever(b"x" * 16_000)


def dripping(talk: Talk) -> None:
    talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    talk.drip(b"x")


@pytest.mark.usefixtures("trusted_by_fetchers")
def test_an_endless_secure_page_is_not_read_to_its_end(secure_site: Hostile) -> None:
    with pytest.raises(FetchTooLarge):
        make(secure_site, most_bytes=100_000).get(secure_site.on(endless))


@pytest.mark.usefixtures("trusted_by_fetchers")
def test_a_dripping_secure_page_ends_with_the_deadline(secure_site: Hostile) -> None:
    with pytest.raises(FetchTimeout):
        make(secure_site, seconds=0.3).get(secure_site.on(dripping))


@pytest.mark.usefixtures("trusted_by_fetchers")
def test_endless_interim_answers_over_tls_are_cut_off(secure_site: Hostile) -> None:
    with pytest.raises(FetchBadAnswer):
        make(secure_site).get(
            secure_site.on(lambda talk: talk.forever(b"HTTP/1.1 100 Continue\r\n\r\n" * 100))
        )


@pytest.mark.usefixtures("trusted_by_fetchers")
@pytest.mark.parametrize("end", [Talk.reset, lambda talk: None])
def test_a_secure_page_that_breaks_off_is_a_transient_failure(
    secure_site: Hostile, end: Callable[[Talk], None]
) -> None:
    def broken(talk: Talk) -> None:
        talk.say(answer()[:-10])
        end(talk)

    with pytest.raises(FetchFailed) as failed:
        make(secure_site).get(secure_site.on(broken))
    assert type(failed.value) is FetchFailed


# hostile, within the handshake

HELLO = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03"


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda talk: talk.silence(), FetchTimeout),
        (lambda talk: (talk.say(HELLO[:5]), talk.drip(HELLO[5:6])), FetchTimeout),
        (lambda talk: (talk.say(HELLO), talk.drip(b"\0")), FetchTimeout),
        (lambda talk: None, FetchFailed),
        (lambda talk: talk.sock.recv(65536), FetchFailed),
        (lambda talk: talk.reset(), FetchFailed),
        (lambda talk: (talk.say(HELLO), talk.reset()), FetchFailed),
    ],
)
def test_an_unfinished_handshake_is_a_transient_failure(
    act: Callable[[Talk], None], error: type[FetchFailed]
) -> None:
    seconds = 0.3 if error is FetchTimeout else 30
    with hostile() as site:
        site.greeting = act
        with pytest.raises(FetchFailed) as failed:
            make(site, seconds=seconds).get(f"https://{site.pair}/")
    assert type(failed.value) is error


@pytest.mark.parametrize(
    "greeting",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\x15\x03\x03\x00\x02\x02\x46",
        b"\x16\x03\x03\x00\x04\x02\x00\x00\x00",
        b"\x17\x03\x03\x00\x01x",
        b"\xff" * 1000,
    ],
)
def test_an_answer_without_tls_is_insecure(greeting: bytes) -> None:
    with hostile() as site:
        site.greeting = lambda talk: (talk.say(greeting), talk.silence())
        with pytest.raises(FetchInsecure, match="no secure connection") as failed:
            make(site).get(f"https://{site.pair}/")
    assert not failed.value.transient


@pytest.mark.parametrize(
    "flood", [b"\x15\x03\x03\x00\x02\x01\x5a", b"\x14\x03\x03\x00\x01\x01", HELLO, b"\0" * 1000]
)
def test_a_flood_within_the_handshake_is_cut_off(flood: bytes) -> None:
    with hostile() as site:
        site.greeting = lambda talk: talk.forever(flood * 100)
        with pytest.raises((FetchInsecure, FetchBadAnswer)):
            make(site).get(f"https://{site.pair}/")
