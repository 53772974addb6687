"""Requests to a server that speaks OpenAI's protocol, and what its refusals mean.

What a server says is never shown: it may repeat what was sent, or the key.
"""

from __future__ import annotations

import logging as stdlib_logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import httpx2

from nexus.deadline import Deadline
from nexus.errors import WorkError
from nexus.inference.transport import AnswerLimits, ModelTransport
from nexus.retry_after import parse_retry_after

OPENAI = "https://api.openai.com/v1"
NO_CREDIT = "insufficient_quota"
#: The server may answer differently in a moment.
PASSING = frozenset({408, 409, 425})


@dataclass(frozen=True)
class ServerErrors:
    """What is raised for each way in which a server can fail. Some are told how long it asks to wait."""

    slow: type[WorkError]
    unreachable: Callable[..., WorkError]
    rate_limited: Callable[..., WorkError]
    key_refused: Callable[[], WorkError]
    no_credit: Callable[[], WorkError]
    endless: Callable[[], WorkError]
    #: Given the status.
    refused: Callable[[int], WorkError]


class ModelServer:
    """One call of the API. A process has one for each, shared by its threads."""

    def __init__(
        self,
        base_url: str,
        call: str,
        key: str,
        most_bytes: int,
        errors: ServerErrors,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = f"{(base_url or OPENAI).rstrip('/')}/{call}"
        self._key = key.strip()
        self._most_bytes = most_bytes
        self._errors = errors
        self._clock = clock
        for name in ("httpx2", "httpcore2"):
            stdlib_logging.getLogger(name).setLevel(stdlib_logging.WARNING)  # below, they log addresses

    def post(self, seconds: float, **content: Any) -> bytes:
        """Send a request, with content as httpx takes it (`json`, `data`, `files`), and return the body of its answer.

        Raises what `errors` says.
        """
        errors = self._errors
        limits = AnswerLimits(Deadline(seconds, self._clock, errors.slow), self._most_bytes, errors.endless)
        transport = ModelTransport(limits, self._tls)
        try:
            with httpx2.Client(transport=transport, trust_env=False, timeout=seconds) as client:
                answer = client.post(self._url, headers=self._headers, **content)
        except UnicodeEncodeError:
            raise errors.key_refused() from None  # everything else that is sent has been made sendable
        except httpx2.TimeoutException:
            raise errors.slow() from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise errors.unreachable() from None
        if answer.status_code != 200:
            raise self._refusal(answer)
        return answer.content

    @property
    def _headers(self) -> dict[str, str]:
        key = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        # So that the bytes counted are those of the answer.
        return {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "nexus", **key}

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx2.create_ssl_context(trust_env=False)

    def _refusal(self, answer: httpx2.Response) -> WorkError:
        status = answer.status_code
        if status == 402 or NO_CREDIT in answer.text[:2000]:
            return self._errors.no_credit()
        if status in {401, 403}:
            return self._errors.key_refused()
        rest = parse_retry_after(answer.headers.get("retry-after", ""), datetime.now(UTC))
        if status == 429:
            return self._errors.rate_limited(retry_after=rest)
        if status in PASSING or status >= 500:
            return self._errors.unreachable(retry_after=rest)
        return self._errors.refused(status)
