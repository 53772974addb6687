"""A draft by a model behind any server that speaks OpenAI's chat completions.

One deadline holds over every call. A server is asked for an answer by schema; one that does not know how is asked for
JSON, then for plain text, and what it knows is remembered. An answer that can't be used gets one more round, in which
the model hears why. No temperature is sent: newer models refuse any but their own.
"""

from __future__ import annotations

import logging as stdlib_logging
import secrets
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, cast

import httpx2
import openai
from pydantic import BaseModel, ValidationError

from nexus import logging
from nexus.draft import Article, Claim, Draft, require_enough
from nexus.draft.answer import SCHEMA, Answer, SaidClaim, Wrong, read
from nexus.draft.grounding import Source
from nexus.draft.prompt import PROMPT_VERSION, Message, ask, correct
from nexus.draft.wire import Deadline, Transport
from nexus.errors.draft import (
    DraftFailed,
    DraftKeyRefused,
    DraftNoCredit,
    DraftRateLimited,
    DraftRefused,
    DraftTimeout,
    DraftUnreachable,
    DraftUnusable,
)

log = logging.get(__name__)

OPENAI = "https://api.openai.com/v1"
USER_AGENT = "nexus"
#: A server that wants no key takes any.
NO_KEY = "none"
ROUNDS = 2
#: No longer than this is anyone left alone, in seconds.
MOST_REST = 3600.0

#: How an answer can be asked for, the surest first.
FORMATS: tuple[dict[str, Any], ...] = (
    {"type": "json_schema", "json_schema": {"name": "story", "strict": True, "schema": SCHEMA}},
    {"type": "json_object"},
    {},
)
#: What a server answers to a way of asking that it does not know.
UNKNOWN_FORMAT = frozenset({400, 422})
#: Faults that no other way of asking mends.
HOPELESS = frozenset({"context_length_exceeded", "model_not_found", "content_policy_violation"})
NO_CREDIT = "insufficient_quota"

NOT_A_MODEL = "What answers at the model's address is no model. Check the address: most end in /v1."
DECLINED = "The model declined to draft this article. Set another model, or write the story by hand."


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    total_tokens: int | None = None


class _Completion(BaseModel):
    """The parts of a server's answer that are used here."""

    choices: list[_Choice]
    usage: _Usage | None = None


@dataclass(frozen=True)
class _Reply:
    said: str
    cut_off: bool
    declined: bool
    tokens: int


class _Client(openai.OpenAI):
    """Sends these headers and no others by itself: the SDK takes more from the environment and tells of the machine."""

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {
            "Accept": "application/json",
            # So that the bytes that are counted are those of the answer.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            **self.auth_headers,
        }


class OpenAi:
    """One for a process, shared by its threads."""

    costs_tokens = True

    def __init__(
        self, base_url: str, api_key: str, model: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._base_url = base_url or OPENAI
        self._api_key = api_key.strip() or NO_KEY
        self._model = model
        self._clock = clock
        #: The first of FORMATS that the server has not refused.
        self._format = 0
        # Their lines of lower levels hold addresses, and the article.
        for name in ("openai", "httpx2", "httpcore2"):
            stdlib_logging.getLogger(name).setLevel(stdlib_logging.WARNING)

    def draft(self, article: Article, seconds: float) -> Draft:
        require_enough(article)
        deadline = Deadline(seconds, self._clock)
        messages = ask(_sendable(article), secrets.token_hex(12))
        tokens = 0
        try:
            with self._client(deadline) as client:
                for _ in range(ROUNDS):
                    reply = self._ask(client, messages, deadline)
                    tokens += reply.tokens
                    if reply.declined:
                        raise DraftUnusable(DECLINED)
                    try:
                        return self._story(article, _answer(reply), tokens)
                    except Wrong as wrong:
                        log.info("draft_unusable", model=self._model, cut_off=reply.cut_off)
                        messages = [*messages, *correct(reply.said, str(wrong))]
            raise DraftUnusable
        except DraftFailed as error:
            error.tokens_used = tokens
            raise

    def _client(self, deadline: Deadline) -> _Client:
        """Everything that the SDK would take from the environment is given."""
        return _Client(
            base_url=self._base_url,
            api_key=self._api_key,
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            max_retries=0,
            http_client=httpx2.Client(transport=Transport(deadline, self._tls), trust_env=False),
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx2.create_ssl_context(trust_env=False)

    def _ask(self, client: _Client, messages: list[Message], deadline: Deadline) -> _Reply:
        """In the surest way that the server knows."""
        for at in range(self._format, len(FORMATS)):
            try:
                body = self._send(client, messages, FORMATS[at], deadline)
            except _FormatRefused:
                log.info("draft_format_refused", model=self._model, format=FORMATS[at].get("type"))
                continue
            self._format = max(at, self._format)
            return _reply(body)
        raise DraftRefused

    def _send(
        self, client: _Client, messages: list[Message], wanted: dict[str, Any], deadline: Deadline
    ) -> bytes:
        with _explained():
            answer = client.chat.completions.with_raw_response.create(
                model=self._model,
                messages=cast(Any, messages),
                response_format=cast(Any, wanted or openai.omit),
                timeout=deadline.left(),
            )
        return answer.http_response.content

    def _story(self, article: Article, answer: Answer, tokens: int) -> Draft:
        source = Source(article.text)
        return Draft(
            headline=answer.headline,
            summary=answer.summary,
            what_happened=_claims(answer.what_happened, source),
            background=_claims(answer.background, source),
            model=self._model,
            prompt_version=PROMPT_VERSION,
            tokens_used=tokens,
        )


class _FormatRefused(Exception):
    """The server does not take the request, perhaps for the way of asking."""


def _sendable(article: Article) -> Article:
    """Halves of characters can't be sent; each is replaced by one character."""
    return Article(
        *(part.encode("utf-8", "replace").decode() for part in (article.title, article.text, article.url))
    )


def _reply(body: bytes) -> _Reply:
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        # It holds what was said.
        raise DraftUnusable(NOT_A_MODEL) from None
    if not completion.choices:
        raise DraftUnusable(NOT_A_MODEL)
    choice = completion.choices[0]
    tokens = completion.usage.total_tokens if completion.usage else None
    return _Reply(
        said=choice.message.content or "",
        cut_off=choice.finish_reason == "length",
        declined=bool(choice.message.refusal) or choice.finish_reason == "content_filter",
        tokens=max(tokens or 0, 0),
    )


def _answer(reply: _Reply) -> Answer:
    """Raises Wrong."""
    if reply.cut_off:
        raise Wrong("it was cut off at your limit of length. Use fewer claims and shorter quotes.")
    return read(reply.said)


def _claims(said: list[SaidClaim], source: Source) -> tuple[Claim, ...]:
    return tuple(Claim(claim.text, source.evidence(claim.quote)) for claim in said)


@contextmanager
def _explained() -> Iterator[None]:
    """What the SDK raises holds the request, with its key, and what the server said: none of it goes further."""
    try:
        yield
    except UnicodeEncodeError:
        # Of what is sent, only the key has not been seen to.
        raise DraftKeyRefused from None
    except openai.APITimeoutError:
        raise DraftTimeout from None
    except openai.APIConnectionError:
        raise DraftUnreachable from None
    except openai.APIStatusError as error:
        if error.status_code in UNKNOWN_FORMAT and error.code not in HOPELESS:
            raise _FormatRefused from None
        raise _refusal(error) from None


def _refusal(error: openai.APIStatusError) -> DraftFailed:
    status = error.status_code
    if status == 402 or error.code == NO_CREDIT:
        return DraftNoCredit()
    if status in {401, 403}:
        return DraftKeyRefused()
    rest = _retry_after(error.response.headers.get("retry-after", ""))
    if status == 429:
        return DraftRateLimited(retry_after=rest)
    return (
        DraftUnreachable(retry_after=rest) if status in {408, 409, 425} or status >= 500 else DraftRefused()
    )


def _retry_after(said: str) -> float | None:
    """Seconds that the server asks to be left alone."""
    if said.isascii() and said.isdigit():
        return min(float(said), MOST_REST)
    try:
        until = parsedate_to_datetime(said)
    except (ValueError, OverflowError):
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((aware - datetime.now(UTC)).total_seconds(), 0.0), MOST_REST)
