"""An identity provider's set of keys, served on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.kit.servers.threads import running


@dataclass
class Issuer:
    """Signs tokens, and publishes its keys."""

    url: str
    keys: dict[str, Any] = field(default_factory=dict)
    raw: bytes | None = None
    status: int = 200
    #: How often the keys were asked for.
    asked: int = 0

    def publish(self, kid: str, key: Any) -> None:
        algorithm, name = (
            (RSAAlgorithm, "RS256") if isinstance(key, rsa.RSAPrivateKey) else (ECAlgorithm, "ES256")
        )
        public = algorithm.to_jwk(key.public_key(), as_dict=True)
        self.keys[kid] = {**public, "kid": kid, "alg": name, "use": "sig"}

    def withdraw(self, kid: str) -> None:
        del self.keys[kid]

    def page(self) -> bytes:
        return self.raw if self.raw is not None else json.dumps({"keys": list(self.keys.values())}).encode()


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer that has published no key yet."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked += 1
            page = found.page()
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        found = Issuer(f"http://127.0.0.1:{port}/keys.json")
        yield found
