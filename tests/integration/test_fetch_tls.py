"""Secure sites: who they say they are is checked, and their bytes and time count as everyone's."""

import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nexus.errors import (
    FetchBadAnswer,
    FetchBlockedAddress,
    FetchFailed,
    FetchInsecure,
    FetchTimeout,
    FetchTooLarge,
)
from nexus.fetch import Fetcher, Limits, Response, System, pairs
from tests.hostile_server import PAGE, Hostile, Talk, answer, hostile, redirect

NOW = datetime.now(UTC)


@dataclass(frozen=True)
class Authority:
    """Signs certificates."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls) -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
        builder = _builder(name, name, key, NOW + timedelta(days=1))
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        signed = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key, signed)

    def context(self, folder: Path, *names: x509.GeneralName, until: datetime) -> ssl.SSLContext:
        """What a server needs to be one of these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Site of the tests")])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        signed = (
            _builder(name, self.certificate.subject, key, until)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        path = folder / "site.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(secret + signed.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=2))
        .not_valid_after(until)
    )


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.make()


@pytest.fixture
def trusted(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "authority.pem"
    path.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


NAMES = (x509.DNSName("site.test"), x509.IPAddress(ip_address("127.0.0.1")))


@pytest.fixture
def site(authority: Authority, tmp_path: Path) -> Iterator[Hostile]:
    with hostile(authority.context(tmp_path, *NAMES, until=NOW + timedelta(days=1))) as server:
        server.on(answer())
        yield server


def make(site: Hostile, **limits: float) -> Fetcher:
    def resolve(host: bytes, port: int, **_: object) -> list[object]:
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    hosts = ("127.0.0.1", "site.test", "site.test.", "other.test", ".site.test")
    allow = pairs([f"{host}:{site.port}" for host in hosts])
    return Fetcher(Limits(allow=allow, delay=0, **limits), System(resolve=resolve))  # type: ignore[arg-type]


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("host", ["127.0.0.1", "site.test", "SITE.test", "site.test."])
def test_a_site_that_proves_its_name_is_read(site: Hostile, host: str) -> None:
    found = make(site).get(f"https://{host}:{site.port}/")
    assert isinstance(found, Response)
    assert found.body == PAGE


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("host", ["other.test", ".site.test"])
def test_a_site_of_another_name_gets_no_request(site: Hostile, host: str) -> None:
    with pytest.raises(FetchInsecure):
        make(site).get(f"https://{host}:{site.port}/")
    assert site.requests == []


def test_a_site_that_nobody_vouches_for_gets_no_request(site: Hostile) -> None:
    with pytest.raises(FetchInsecure, match="prove who it is") as failed:
        make(site).get(site.url())
    assert not failed.value.transient
    assert site.requests == []


@pytest.mark.usefixtures("trusted")
def test_a_certificate_that_has_ended_is_no_proof(authority: Authority, tmp_path: Path) -> None:
    with hostile(authority.context(tmp_path, *NAMES, until=NOW - timedelta(days=1))) as site:
        with pytest.raises(FetchInsecure):
            make(site).get(site.url())
        assert site.requests == []


@pytest.mark.usefixtures("trusted")
def test_a_long_page_and_a_long_request_come_through_whole(site: Hostile) -> None:
    body = bytes(range(32, 127)) * 20_000
    path = "/?" + "q" * 40_000
    site.on(answer(body), path)
    found = make(site).get(site.url(path))
    assert isinstance(found, Response)
    assert found.body == body


@pytest.mark.usefixtures("trusted")
def test_a_redirect_to_a_plain_address_is_followed_and_checked(site: Hostile) -> None:
    with hostile() as plain:
        plain.on(answer())
        site.on(redirect(plain.url()), "/plain")
        site.on(redirect("http://127.0.0.1/"), "/private")
        allow = pairs([site.pair, plain.pair])
        fetcher = Fetcher(Limits(allow=allow, delay=0))
        found = fetcher.get(site.url("/plain"))
        assert isinstance(found, Response)
        assert found.url == plain.url()
        with pytest.raises(FetchBlockedAddress):
            fetcher.get(site.url("/private"))


# hostile, behind the handshake


def endless(talk: Talk) -> None:
    talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    talk.forever(b"x" * 16_000)


def dripping(talk: Talk) -> None:
    talk.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    talk.drip(b"x")


@pytest.mark.usefixtures("trusted")
def test_an_endless_page_is_not_read_to_its_end(site: Hostile) -> None:
    with pytest.raises(FetchTooLarge):
        make(site, most_bytes=100_000).get(site.on(endless))


@pytest.mark.usefixtures("trusted")
def test_a_dripping_page_ends_with_the_deadline(site: Hostile) -> None:
    with pytest.raises(FetchTimeout):
        make(site, seconds=0.3).get(site.on(dripping))


@pytest.mark.usefixtures("trusted")
def test_endless_interim_answers_end(site: Hostile) -> None:
    with pytest.raises(FetchBadAnswer):
        make(site).get(site.on(lambda talk: talk.forever(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)))


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("end", [Talk.reset, lambda talk: None])
def test_a_page_that_breaks_off_may_succeed_later(site: Hostile, end: Callable[[Talk], None]) -> None:
    def broken(talk: Talk) -> None:
        talk.say(answer()[:-10])
        end(talk)

    with pytest.raises(FetchFailed) as failed:
        make(site).get(site.on(broken))
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
def test_a_handshake_that_does_not_end_may_succeed_later(
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
def test_a_handshake_that_is_none_is_insecure(greeting: bytes) -> None:
    with hostile() as site:
        site.greeting = lambda talk: (talk.say(greeting), talk.silence())
        with pytest.raises(FetchInsecure, match="no secure connection") as failed:
            make(site).get(f"https://{site.pair}/")
    assert not failed.value.transient


@pytest.mark.parametrize(
    "flood", [b"\x15\x03\x03\x00\x02\x01\x5a", b"\x14\x03\x03\x00\x01\x01", HELLO, b"\0" * 1000]
)
def test_a_flood_within_the_handshake_ends(flood: bytes) -> None:
    with hostile() as site:
        site.greeting = lambda talk: talk.forever(flood * 100)
        with pytest.raises((FetchInsecure, FetchBadAnswer)):
            make(site).get(f"https://{site.pair}/")
