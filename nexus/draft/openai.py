"""Drafts by a model behind any server that speaks OpenAI's chat completions.

One deadline holds for all calls. A server is asked to answer by schema, or if it can't, in JSON, or else in plain text;
what it can do is remembered. If an answer can't be used, the model is told why and asked once more. No temperature is
sent: newer models refuse any but their own.
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
from functools import cached_property
from typing import Any, cast

import httpx2
import openai
from pydantic import BaseModel, ValidationError

from nexus import logging
from nexus.deadline import Deadline
from nexus.draft import Article, Draft, Evidence, StoryClaim, require_enough
from nexus.draft.answers import SCHEMA, AnsweredClaim, StoryAnswer, UnusableAnswer, parse_answer
from nexus.draft.grounding import QuotableText
from nexus.draft.prompt import PROMPT_VERSION, Message, correction_request, story_request
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
from nexus.inference.transport import AnswerLimits, ModelTransport
from nexus.retry_after import parse_retry_after

log = logging.get_logger(__name__)

OPENAI = "https://api.openai.com/v1"
USER_AGENT = "nexus"
#: A server that needs no key accepts any.
NO_KEY = "none"
ROUNDS = 2
#: Many times the longest draft that is accepted.
MOST_BYTES = 4 * 1024 * 1024

#: The ways to ask for an answer, the most reliable first.
FORMATS: tuple[dict[str, Any], ...] = (
    {"type": "json_schema", "json_schema": {"name": "story", "strict": True, "schema": SCHEMA}},
    {"type": "json_object"},
    {},
)
#: The status for a way of asking that the server doesn't know.
UNKNOWN_FORMAT = frozenset({400, 422})
#: Errors that no other way of asking avoids.
HOPELESS = frozenset({"context_length_exceeded", "model_not_found", "content_policy_violation"})
NO_CREDIT = "insufficient_quota"

NOT_A_MODEL = "No model answers at this address. Check it: most end in /v1."
DECLINED = "The model declined to draft this article. Set another model, or write the story by hand."


class _ModelMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _ModelMessage
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
    """Sends only these headers: the SDK would add some from the environment, and details about the machine."""

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {
            "Accept": "application/json",
            # So that the bytes counted are those of the answer.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            **self.auth_headers,
        }


class OpenAi:
    """A process has one, shared by its threads."""

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
        # Below this level they log addresses, and the article.
        for name in ("openai", "httpx2", "httpcore2"):
            stdlib_logging.getLogger(name).setLevel(stdlib_logging.WARNING)

    def draft(self, article: Article, seconds: float) -> Draft:
        require_enough(article)
        deadline = Deadline(seconds, self._clock, DraftTimeout)
        messages = story_request(_sendable(article), secrets.token_hex(12))
        tokens = 0
        try:
            with self._client(deadline) as client:
                for _ in range(ROUNDS):
                    reply = self._ask(client, messages, deadline)
                    tokens += reply.tokens
                    if reply.declined:
                        raise DraftUnusable(DECLINED)
                    try:
                        return self._story(article, _parsed(reply), tokens)
                    except UnusableAnswer as wrong:
                        log.info("draft_unusable", model=self._model, cut_off=reply.cut_off)
                        messages = [*messages, *correction_request(reply.said, str(wrong))]
            raise DraftUnusable
        except DraftFailed as error:
            error.tokens_used = tokens
            raise

    def _client(self, deadline: Deadline) -> _Client:
        """Make a client, with everything set that the SDK would otherwise take from the environment."""
        return _Client(
            base_url=self._base_url,
            api_key=self._api_key,
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            max_retries=0,
            http_client=httpx2.Client(
                transport=ModelTransport(AnswerLimits(deadline, MOST_BYTES, _endless), self._tls),
                trust_env=False,
            ),
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

    def _story(self, article: Article, answer: StoryAnswer, tokens: int) -> Draft:
        source = QuotableText(article.text)
        return Draft(
            headline=answer.headline,
            summary=answer.summary,
            what_happened=_claims(answer.what_happened, source),
            background=_claims(answer.background, source),
            model=self._model,
            prompt_version=PROMPT_VERSION,
            tokens_used=tokens,
            headline_evidence=_quoted([answer.headline_quote], source, article.title),
            summary_evidence=_quoted(answer.summary_quotes, source, article.title),
        )


def _endless() -> DraftUnusable:
    return DraftUnusable("The model's answer does not end. Generate again, or set another model.")


class _FormatRefused(Exception):
    """The server refused the request, perhaps because of the way of asking."""


def _sendable(article: Article) -> Article:
    """Replace each half of a surrogate pair, which can't be sent, by one character."""
    parts = (article.title, article.text, article.url)
    title, text, url = (part.encode("utf-8", "replace").decode() for part in parts)
    return Article(title, text, url)


def _reply(body: bytes) -> _Reply:
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        # The original error would show the answer.
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


def _parsed(reply: _Reply) -> StoryAnswer:
    """Raises UnusableAnswer."""
    if reply.cut_off:
        raise UnusableAnswer("it was cut off at your limit of length. Use fewer claims and shorter quotes.")
    return parse_answer(reply.said)


def _claims(said: list[AnsweredClaim], source: QuotableText) -> tuple[StoryClaim, ...]:
    return tuple(StoryClaim(claim.text, source.evidence(claim.quote)) for claim in said)


def _quoted(quotes: list[str], source: QuotableText, title: str) -> tuple[Evidence, ...]:
    return tuple(source.evidence(quote, title) for quote in quotes if quote)


@contextmanager
def _explained() -> Iterator[None]:
    """Translate the SDK's errors. They hold the request with its key, and the server's words: none of it may leak."""
    try:
        yield
    except UnicodeEncodeError:
        # Everything else that is sent has been made sendable; only the key has not.
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
    rest = parse_retry_after(error.response.headers.get("retry-after", ""), datetime.now(UTC))
    if status == 429:
        return DraftRateLimited(retry_after=rest)
    return (
        DraftUnreachable(retry_after=rest) if status in {408, 409, 425} or status >= 500 else DraftRefused()
    )
