"""An identity provider of somebody else's making, behind a door that can spoil what it says."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.kit.http import NO_CERTIFICATES
from tests.kit.servers.threads import running

with warnings.catch_warnings():
    import authlib.deprecate  # noqa: F401 it makes a filter of its own

    warnings.simplefilter("ignore")  # the provider uses what its own library has deprecated
    import oidc_provider_mock

HOP_BY_HOP = {"connection", "content-length", "date", "server", "transfer-encoding"}
KEY = rsa.generate_private_key(65537, 2048)
OTHER_KEY = rsa.generate_private_key(65537, 2048)


@dataclass
class SpoiltProvider:
    """The provider as Nexus meets it. Unless a test says so, nothing of it is changed."""

    url: str
    behind: str
    #: Claims to put into ID tokens, or to take out with None. They are signed again with a key that is published.
    claims: dict[str, Any] = field(default_factory=dict)
    #: Signs ID tokens with a key that is not published.
    is_forged: bool = False
    #: Fields to put into the discovery document, or to take out with None.
    discovery: dict[str, Any] = field(default_factory=dict)
    #: Parts of paths that answer 503.
    down: set[str] = field(default_factory=set)
    #: Every request, as path and form.
    asked: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)

    def knows(self, subject: str, **claims: Any) -> None:
        """Let the provider know somebody."""
        httpx2.put(f"{self.behind}/users/{subject}", json=claims, verify=NO_CERTIFICATES).raise_for_status()

    def sign_in(self, address: str, subject: str) -> dict[str, str]:
        """What the browser brings back after somebody has signed in at this address."""
        return self._answered(address, {"sub": subject})

    def deny(self, address: str) -> dict[str, str]:
        return self._answered(address, {"action": "deny"})

    def form(self, part: str) -> dict[str, str]:
        """The last request to a path with this part: its query and its form."""
        found = next(form for path, form in reversed(self.asked) if part in path)
        return {name: values[0] for name, values in found.items()}

    def _answered(self, address: str, form: dict[str, str]) -> dict[str, str]:
        answer = httpx2.post(address, data=form, verify=NO_CERTIFICATES)
        assert answer.status_code == 302, answer.text
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    def spoil(self, path: str, body: bytes) -> bytes:
        if path.endswith("/openid-configuration") and self.discovery:
            return json.dumps(_changed(json.loads(body), self.discovery)).encode()
        if path.endswith("/jwks") and (self.claims or self.is_forged):
            public = RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
            return json.dumps({"keys": [{**public, "kid": "spoilt", "use": "sig"}]}).encode()
        if path.endswith("/token") and b"id_token" in body and (self.claims or self.is_forged):
            token = json.loads(body)
            claims = jwt.decode(token["id_token"], options={"verify_signature": False})
            key = OTHER_KEY if self.is_forged else KEY
            changed = _changed(claims, self.claims)
            token["id_token"] = jwt.encode(changed, key, "RS256", headers={"kid": "spoilt"})
            return json.dumps(token).encode()
        return body


def _changed(given: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**given, **changes}.items() if value is not None}


@contextmanager
def oidc_provider() -> Iterator[SpoiltProvider]:
    with oidc_provider_mock.run_server_in_thread() as mock:
        behind = f"http://localhost:{mock.server_port}"
        with running(ThreadingHTTPServer(("127.0.0.1", 0), _Door)) as port:
            made = _Door.providers[port] = SpoiltProvider(f"http://127.0.0.1:{port}", behind)
            try:
                yield made
            finally:
                del _Door.providers[port]


class _Door(BaseHTTPRequestHandler):
    """Passes every request on, with the host that was asked for, so that the provider names itself by it."""

    providers: dict[int, SpoiltProvider] = {}  # noqa: RUF012 shared by all requests

    def do_GET(self) -> None:
        self._pass_on(b"")

    def do_POST(self) -> None:
        self._pass_on(self.rfile.read(int(self.headers["Content-Length"] or 0)))

    def _pass_on(self, body: bytes) -> None:
        provider = self.providers[self.server.server_port]  # type: ignore[attr-defined]
        path = urlsplit(self.path).path
        form = {**parse_qs(urlsplit(self.path).query), **parse_qs(body.decode())}
        provider.asked.append((path, form))
        if any(part in path for part in provider.down):
            self._send(503, {}, b"down")
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        answer = httpx2.request(
            self.command, provider.behind + self.path, headers=headers, content=body, verify=NO_CERTIFICATES
        )
        kept = {
            name: value
            for name, value in answer.headers.items()
            if name.lower() not in HOP_BY_HOP | {"content-encoding"}
        }
        self._send(answer.status_code, kept, provider.spoil(path, answer.content))

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
