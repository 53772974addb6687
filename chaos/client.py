"""A client of two servers: asks one of them, and records the answer."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2

from chaos.ledger import Ledger, Refusal

#: Longer than most answers take, far shorter than a long freeze. On a busy machine, answers may be lost, not promises.
PATIENCE = 3.0
#: How often a client changes servers although this one answers.
WANDERS = 0.2
#: What Nexus may answer to valid requests about the user's own things while its parts are away: the codes of its
#: specification, and a full store. Never 500, and never "you are not signed in".
ALLOWED = {200, 400, 404, 409, 413, 429, 502, 503, 504, 507}
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|/storage/.*")


@dataclass(frozen=True)
class Answer:
    """Status 0 means that no answer came."""

    status: int
    body: Any = None

    @property
    def ok(self) -> bool:
        """Whether the operation is acknowledged. A job's step that failed is no success, but it was acknowledged."""
        return self.status == 200

    @property
    def lost(self) -> bool:
        """Whether nobody knows if it happened or will: no answer, or one that says "away" or "broken"."""
        return self.status == 0 or self.status >= 500

    @property
    def data(self) -> Any:
        return self.body["data"]


class Client:
    def __init__(
        self,
        ledger: Ledger,
        servers: Sequence[str],
        user: UUID,
        headers: Mapping[str, str],
        chance: random.Random,
    ) -> None:
        self.user = user
        self._ledger = ledger
        self.servers = servers
        self._chance = chance
        self._server = chance.choice(servers)
        self._http = httpx2.Client(headers=dict(headers), timeout=PATIENCE)
        #: Signed links are called without our headers.
        self._bare = httpx2.Client(timeout=PATIENCE)

    def close(self) -> None:
        self._http.close()
        self._bare.close()

    def ask(self, method: str, path: str, server: str | None = None, **given: Any) -> Answer:
        """Ask one of the servers; after a lost answer, change to the other one."""
        if self._chance.random() < WANDERS:
            self.turn_away()
        url = (server or self._server) + path
        answer = self._send(self._http, method, url, f"{method} {_ID.sub('…', path)}", given)
        if answer.status == 0:
            self.turn_away()
        return answer

    def turn_away(self) -> None:
        self._server = next(other for other in self.servers if other != self._server)

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Upload to a signed link."""
        given = {"headers": dict(headers), "content": body}
        return self._send(self._bare, "PUT", url, "PUT to the store", given)

    def get(self, url: str) -> tuple[int, bytes]:
        """Download from a signed link."""
        found = self._bare.get(url)
        return found.status_code, found.content

    def _send(
        self, http: httpx2.Client, method: str, url: str, operation: str, given: dict[str, Any]
    ) -> Answer:
        try:
            response = http.request(method, url, **given)
        except httpx2.TransportError:
            self._ledger.note(operation, 0)
            return Answer(0)
        self._ledger.note(operation, response.status_code)
        return self._judged(operation, response)

    def _judged(self, operation: str, response: httpx2.Response) -> Answer:
        status = response.status_code
        try:
            body = response.json()
        except ValueError:
            body = None
        if operation.startswith("PUT to") and not _is_nexus(response):
            return Answer(status, body)  # the object store's own format
        if status not in ALLOWED or (status != 200 and not _sentence(body)):
            self._ledger.refuse(Refusal(operation, status, response.text[:300]))
        return Answer(status, body)


def _is_nexus(response: httpx2.Response) -> bool:
    return "x-request-id" in response.headers and response.url.path.startswith("/storage/")


def _sentence(body: Any) -> bool:
    """Whether a refusal has the error shape of one of the two APIs."""
    if not isinstance(body, dict):
        return False
    error = body.get("error")
    told = error.get("message") if isinstance(error, dict) else body.get("message")
    return bool(told)
