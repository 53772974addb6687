"""Bearer tokens that are signed with keys which an identity provider publishes, and may withdraw."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import SHUT_RDWR, create_server
from threading import Thread
from typing import Any
from uuid import uuid4

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from structlog.testing import capture_logs

from nexus.app import build
from nexus.web.http import published_keys
from tests.contract.test_authorization import bearer, by_hand, claims, encoded
from tests.kit.clock import Ticks
from tests.kit.http import Site, problem, serve
from tests.kit.servers.issuer import Issuer, issuing
from tests.kit.settings import make_settings


@pytest.fixture(scope="module")
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def issuer(rsa_key: rsa.RSAPrivateKey, ec_key: ec.EllipticCurvePrivateKey) -> Iterator[Issuer]:
    with issuing() as found:
        found.publish("rsa", rsa_key)
        found.publish("ec", ec_key)
        yield found


@contextmanager
def published(database_url: str, folder: Path, url: str) -> Iterator[Site]:
    """Nexus that knows no secret of tokens, only where keys are published."""
    app = build(make_settings(database_url, folder, jwks_url=url))
    with serve(app) as site:
        yield site
    app.close()


@pytest.fixture
def keyed(issuer: Issuer, sqlite_url: str, tmp_path: Path) -> Iterator[Site]:
    with published(sqlite_url, tmp_path, issuer.url) as site:
        yield site


def test_a_published_rsa_key_is_as_long_as_the_operator_asks_for(
    issuer: Issuer, rsa_key: rsa.RSAPrivateKey, ec_key: ec.EllipticCurvePrivateKey
) -> None:
    """Most identity providers sign with 2048 bits, which is 112 bits of security."""
    issuer.publish("long", rsa.generate_private_key(65537, 3072))
    strict = published_keys.PublishedKeys(issuer.url, "NEXUS_JWKS_URL", 3072)
    with capture_logs() as logged, pytest.raises(jwt.PyJWKClientError):
        strict.find("rsa")
    assert [(line["event"], line["bits"]) for line in logged] == [("key_too_short", 2048)]
    assert (strict.find("long").key_id, strict.find("ec").key_id) == ("long", "ec")
    assert (
        published_keys.PublishedKeys(issuer.url, "NEXUS_JWKS_URL", make_settings("", Path("/")).rsa_bits)
        .find("rsa")
        .key_id
        == "rsa"
    )


def ask(site: Site, key: Any, algorithm: str, kid: str | None, **changes: object) -> httpx2.Response:
    header = {"kid": kid} if kid else {}
    token = jwt.encode(claims(site.app.settings, uuid4(), **changes), key, algorithm, headers=header)
    return site.anyone().get("/media", headers=bearer(site.app.settings, token))


def test_a_token_signed_with_a_published_key_is_accepted(keyed: Site, rsa_key: Any, ec_key: Any) -> None:
    assert ask(keyed, rsa_key, "RS256", "rsa").status_code == 200
    assert ask(keyed, ec_key, "ES256", "ec").status_code == 200


@pytest.mark.parametrize(
    "changes",
    [{"iss": "x"}, {"aud": "x"}, {"exp": 1}, {"exp": None}, {"sub": ""}, {"sub": None}],
    ids=str,
)
def test_claims_are_checked_with_published_keys_too(
    keyed: Site, rsa_key: Any, changes: dict[str, Any]
) -> None:
    assert problem(ask(keyed, rsa_key, "RS256", "rsa", **changes)) == (401, "E_UNAUTHORIZED")


def test_a_token_signed_with_an_unpublished_key_is_refused(keyed: Site, rsa_key: Any, ec_key: Any) -> None:
    other = rsa.generate_private_key(65537, 2048)
    unauthorized = (401, "E_UNAUTHORIZED")
    assert problem(ask(keyed, rsa_key, "RS256", "unknown")) == unauthorized
    assert problem(ask(keyed, rsa_key, "RS256", None)) == unauthorized
    assert problem(ask(keyed, other, "RS256", "rsa")) == unauthorized
    assert problem(ask(keyed, rsa_key, "RS256", "ec")) == unauthorized
    assert problem(ask(keyed, ec_key, "ES256", "rsa")) == unauthorized
    assert problem(ask(keyed, rsa_key, "RS512", "rsa")) == unauthorized


def test_a_public_key_does_not_work_as_a_shared_secret(keyed: Site, rsa_key: Any, ec_key: Any) -> None:
    """The old trick: HS256, signed with the public key."""
    payload = claims(keyed.app.settings, uuid4())
    for kid, key in (("rsa", rsa_key), ("ec", ec_key)):
        known = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        token = by_hand({"alg": "HS256", "kid": kid}, payload, known)
        answer = keyed.anyone().get("/media", headers=bearer(keyed.app.settings, token))
        assert problem(answer) == (401, "E_UNAUTHORIZED")


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
def test_the_shared_secret_does_not_work_if_keys_are_published(keyed: Site, algorithm: str) -> None:
    secret = keyed.app.settings.jwt_secret if algorithm == "HS256" else None
    assert problem(ask(keyed, secret, algorithm, "rsa")) == (401, "E_UNAUTHORIZED")


def test_a_malformed_token_is_refused_if_keys_are_published(keyed: Site) -> None:
    for token in ("rubbish", "a.b.c", f"{encoded(b'[' * 20_000)}.{encoded(b'{}')}.x"):
        answer = keyed.anyone().get("/media", headers=bearer(keyed.app.settings, token))
        assert problem(answer) == (401, "E_UNAUTHORIZED")


@pytest.fixture
def ticks(keyed: Site) -> Ticks:
    made = Ticks(0.0)
    gate = keyed.server.config.app.state.gate
    gate.clock = gate.keys.clock = made
    return made


def test_a_key_that_is_published_later_is_accepted(keyed: Site, issuer: Issuer, ticks: Ticks) -> None:
    fresh = ec.generate_private_key(ec.SECP256R1())
    assert ask(keyed, fresh, "ES256", "fresh").status_code == 401
    issuer.publish("fresh", fresh)
    ticks.seconds = published_keys.PAUSE_SECONDS
    assert ask(keyed, fresh, "ES256", "fresh").status_code == 200


def test_a_withdrawn_key_stops_working_within_five_minutes(
    keyed: Site, issuer: Issuer, ticks: Ticks, rsa_key: Any, ec_key: Any
) -> None:
    """Every token of the key: those that were used lately, and those that were not."""
    used, unused = (by(keyed, rsa_key, "RS256", "rsa") for _ in range(2))
    assert used().status_code == 200
    issuer.withdraw("rsa")
    refused = {}
    for ticks.seconds in range(0, 301, 20):
        # Somebody with another key is busy all the time.
        assert ask(keyed, ec_key, "ES256", "ec").status_code == 200
        refused[ticks.seconds] = used().status_code == 401
    assert refused[300]
    assert list(refused.values()) == sorted(refused.values()), "refused, then accepted again"
    assert unused().status_code == 401
    ticks.seconds = 420
    assert ask(keyed, ec_key, "ES256", "ec").status_code == 200
    assert used().status_code == unused().status_code == 401


def test_a_withdrawn_key_stops_working_also_while_the_key_server_is_down(
    keyed: Site, issuer: Issuer, ticks: Ticks, rsa_key: Any
) -> None:
    """A short outage does no harm; after five minutes nobody knows which keys are still good."""
    token = by(keyed, rsa_key, "RS256", "rsa")
    assert token().status_code == 200
    issuer.status = 500
    ticks.seconds = 299
    assert token().status_code == 200
    ticks.seconds = 300
    assert problem(token()) == (503, "E_NOT_READY")


def test_unknown_keys_can_not_make_nexus_ask_again_and_again(
    keyed: Site, issuer: Issuer, ticks: Ticks, rsa_key: Any
) -> None:
    for number in range(50):
        assert ask(keyed, rsa_key, "RS256", f"unknown-{number}").status_code == 401
    assert issuer.asked == 1
    ticks.seconds = published_keys.PAUSE_SECONDS
    for number in range(50):
        assert ask(keyed, rsa_key, "RS256", f"unknown-{number}").status_code == 401
    assert issuer.asked == 2


def test_a_broken_key_server_is_not_asked_at_every_request(
    keyed: Site, issuer: Issuer, ticks: Ticks, rsa_key: Any
) -> None:
    issuer.status = 500
    for _ in range(20):
        assert ask(keyed, rsa_key, "RS256", "rsa").status_code == 503
    assert issuer.asked == 1


def by(site: Site, key: Any, algorithm: str, kid: str) -> Callable[[], httpx2.Response]:
    """Calls with one and the same token."""
    token = jwt.encode(claims(site.app.settings, uuid4()), key, algorithm, headers={"kid": kid})
    client = site.anyone()
    return lambda: client.get("/media", headers=bearer(site.app.settings, token))


@pytest.mark.parametrize(
    ("status", "raw"),
    [
        (500, b""),
        (404, b""),
        (200, b"rubbish"),
        (200, b""),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"keys": []}'),
        (200, b"\xff"),
    ],
)
def test_a_broken_key_server_makes_nexus_answer_503(
    keyed: Site, issuer: Issuer, ticks: Ticks, rsa_key: Any, status: int, raw: bytes
) -> None:
    """Nobody can tell whether the token is good, so it is neither accepted nor called bad."""
    issuer.status, issuer.raw = status, raw
    assert problem(ask(keyed, rsa_key, "RS256", "rsa")) == (503, "E_NOT_READY")
    issuer.status, issuer.raw = 200, None
    ticks.seconds = published_keys.PAUSE_SECONDS
    assert ask(keyed, rsa_key, "RS256", "rsa").status_code == 200


def test_an_unreachable_key_server_makes_nexus_answer_503(
    sqlite_url: str, tmp_path: Path, rsa_key: Any
) -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
    with published(sqlite_url, tmp_path, url) as site:
        assert problem(ask(site, rsa_key, "RS256", "rsa")) == (503, "E_NOT_READY")


def test_a_key_server_that_hangs_up_makes_nexus_answer_503(
    sqlite_url: str, tmp_path: Path, rsa_key: Any
) -> None:
    def hang_up() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.shutdown(SHUT_RDWR)

    with create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=hang_up)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        with published(sqlite_url, tmp_path, url) as site:
            assert problem(ask(site, rsa_key, "RS256", "rsa")) == (503, "E_NOT_READY")
        thread.join()
