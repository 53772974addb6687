"""Who is asking. API calls carry a bearer token and the internal secret; pages carry a session cookie."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import anyio.to_thread
import jwt
from fastapi import Request

from nexus.app import App
from nexus.errors import Forbidden, NotReady, Unauthorized
from nexus.ingest import access
from nexus.settings import Settings

COOKIE = "nexus_session"
SESSION_DAYS = 30
LINK_DAYS = 1
FEED_DAYS = 3650
#: A token is checked once a minute, not at every request: the check costs as much as the answer.
REMEMBERED_SECONDS = 60.0
REMEMBERED = 10_000
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_REQUIRED: Any = {"require": ["exp", "iss", "aud", "sub"]}
#: What a token that is not well-formed may raise; a deep one makes the JSON parser give up.
_BROKEN = (jwt.PyJWTError, ValueError, TypeError, AttributeError, RecursionError)


def issue_token(settings: Settings, user_id: UUID, hours: float = 24) -> str:
    """A bearer token of the configured secret, for the CLI and for tests."""
    claims = {"iss": settings.jwt_issuer, "aud": settings.jwt_audience, "sub": str(user_id)}
    return jwt.encode({**claims, "exp": _in(timedelta(hours=hours))}, settings.jwt_secret, "HS256")


def sign_in_token(settings: Settings, user_id: UUID) -> str:
    return _own_token(settings, user_id, "sign-in", timedelta(days=LINK_DAYS))


def session_token(settings: Settings, user_id: UUID) -> str:
    return _own_token(settings, user_id, "session", timedelta(days=SESSION_DAYS))


def feed_token(settings: Settings, user_id: UUID) -> str:
    """For a feed reader, which can send nothing but an address: it opens the feed and nothing else."""
    return _own_token(settings, user_id, "feed", timedelta(days=FEED_DAYS))


def open_own_token(settings: Settings, token: str, purpose: str) -> UUID:
    """The user of a sign-in link, a session cookie or a feed's address. Raises Unauthorized."""
    try:
        claims = jwt.decode(
            token,
            settings.session_secret,
            ["HS256"],
            audience=purpose,
            issuer="nexus-pages",
            options=_REQUIRED,
        )
        return UUID(claims["sub"])
    except _BROKEN as error:
        raise Unauthorized(
            "This link or session is over. Ask for a new link with: nexus token --link"
        ) from error


def _own_token(settings: Settings, user_id: UUID, purpose: str, life: timedelta) -> str:
    claims = {"iss": "nexus-pages", "aud": purpose, "sub": str(user_id), "exp": _in(life)}
    return jwt.encode(claims, settings.session_secret, "HS256")


def _in(life: timedelta) -> datetime:
    return datetime.now(UTC) + life


@dataclass
class Gate:
    """Checks callers of one app, and makes a user's rows on his first request."""

    app: App
    known: set[UUID] = field(default_factory=set)
    #: Tokens that were found good lately, and until when that need not be looked at again.
    good: dict[str, tuple[UUID, float]] = field(default_factory=dict)
    keys: jwt.PyJWKClient | None = None

    def __post_init__(self) -> None:
        if self.app.settings.jwks_url:
            self.keys = jwt.PyJWKClient(self.app.settings.jwks_url, cache_keys=True, timeout=5)

    async def by_token(self, request: Request) -> UUID:
        """Raises Unauthorized, or NotReady where the published keys can't be had."""
        given = request.headers.get("x-nexus-internal", "")
        if not hmac.compare_digest(given.encode(), self.app.settings.internal_secret.encode()):
            raise Unauthorized
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized
        user_id, until = self.good.get(token, (None, 0.0))
        if user_id is None or until <= time.time():
            user_id = await self._check(token)
        return await self._welcome(user_id)

    async def _check(self, token: str) -> UUID:
        if self.keys is None:
            claims = self._claims(token, self.app.settings.jwt_secret, ["HS256"])
        else:
            claims = await anyio.to_thread.run_sync(self._by_published_key, self.keys, token)
        if len(self.good) >= REMEMBERED:
            self.good.clear()
        user_id = UUID(claims["sub"])
        self.good[token] = user_id, min(float(claims["exp"]), time.time() + REMEMBERED_SECONDS)
        return user_id

    async def by_cookie(self, request: Request) -> UUID:
        """Raises Unauthorized, or Forbidden for a change that another site asks for."""
        if request.method not in SAFE_METHODS and not _same_origin(request):
            raise Forbidden("This request comes from another site. Open Nexus itself and try again there.")
        user_id = open_own_token(self.app.settings, request.cookies.get(COOKIE, ""), "session")
        return await self._welcome(user_id)

    async def by_either(self, request: Request) -> UUID:
        """For the event stream, which a page can't send headers to."""
        bearer = "authorization" in request.headers
        return await (self.by_token(request) if bearer else self.by_cookie(request))

    def _by_published_key(self, keys: jwt.PyJWKClient, token: str) -> dict[str, Any]:
        try:
            keys.get_signing_keys()
        except (jwt.PyJWTError, OSError, ValueError) as error:
            raise NotReady from error
        try:
            key = keys.get_signing_key_from_jwt(token).key
        except jwt.PyJWKClientConnectionError as error:
            raise NotReady from error
        except _BROKEN as error:
            raise Unauthorized from error
        return self._claims(token, key, ["RS256", "ES256"])

    def _claims(self, token: str, key: Any, algorithms: list[str]) -> dict[str, Any]:
        chosen = self.app.settings
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms,
                audience=chosen.jwt_audience,
                issuer=chosen.jwt_issuer,
                options=_REQUIRED,
            )
            UUID(claims["sub"])
        except _BROKEN as error:
            raise Unauthorized from error
        return claims

    async def _welcome(self, user_id: UUID) -> UUID:
        if user_id not in self.known:
            await anyio.to_thread.run_sync(self._make_rows, user_id)
            self.known.add(user_id)
        return user_id

    def _make_rows(self, user_id: UUID) -> None:
        with self.app.sessions.begin() as session:
            access.ensure_user(session, user_id)


def _same_origin(request: Request) -> bool:
    """What the browser says of where a request comes from; a request that says nothing is not a page's own."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin", "")
    return origin.partition("://")[2] == request.headers.get("host", "")
