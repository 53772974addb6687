"""Who is asking. API calls carry a bearer token and the internal secret, pages a session cookie."""

from __future__ import annotations

import hmac
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, UUID, uuid5

import anyio.to_thread
import jwt
from jwt.exceptions import InvalidSubjectError

from nexus import logging
from nexus.errors import Forbidden, NotReady, Unauthorized
from nexus.settings import Settings

if TYPE_CHECKING:
    from fastapi import Request

    from nexus.app import App
    from nexus.libraries.people import Profile

log = logging.get(__name__)

COOKIE = "nexus_session"
SESSION_DAYS = 30
LINK_DAYS = 1
FEED_DAYS = 3650
#: A token is checked once a minute, not at every request: the check costs as much as an answer.
REMEMBERED_SECONDS = 60.0
REMEMBERED = 10_000
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_REQUIRED: Any = {"require": ["exp", "iss", "aud", "sub"]}
#: What a malformed token may raise. A deeply nested one exhausts the JSON parser.
_BROKEN = (jwt.PyJWTError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
#: The limit of OpenID Connect.
LONGEST_SUBJECT = 255
#: The version of UUIDs that `user_of` makes.
MADE_FROM_A_NAME = 5
#: The usual spelling. Python accepts others too, which would make several subjects the same user.
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
EXPIRED = "It has expired."
FOREIGN = "It was not made for this purpose with this NEXUS_SESSION_SECRET."
MALFORMED = "It is not a well-formed token."
#: Why a bearer token is refused, for the log. PyJWT's own messages may quote the token, so they are never logged.
_REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: EXPIRED,
    jwt.ImmatureSignatureError: "It is not valid yet: compare the clocks of this machine and the issuer.",
    jwt.InvalidIssuerError: "Its iss is not NEXUS_JWT_ISSUER.",
    jwt.InvalidAudienceError: "Its aud is not NEXUS_JWT_AUDIENCE.",
    InvalidSubjectError: f"Its sub is not a text of 1 to {LONGEST_SUBJECT} characters.",
    jwt.InvalidAlgorithmError: "It is not signed with an algorithm that Nexus accepts: RS256 or ES256 with "
    "NEXUS_JWKS_URL, else HS256.",
    jwt.InvalidSignatureError: "Its signature does not match the key.",
    jwt.PyJWKClientError: "NEXUS_JWKS_URL publishes no key with its kid.",
}


def issue_token(settings: Settings, user_id: UUID, hours: float = 24) -> str:
    """Make a bearer token with the configured secret, for the CLI and for tests."""
    claims = {"iss": settings.jwt_issuer, "aud": settings.jwt_audience, "sub": str(user_id)}
    return jwt.encode({**claims, "exp": _in(timedelta(hours=hours))}, settings.jwt_secret, "HS256")


def sign_in_token(settings: Settings, user_id: UUID) -> str:
    return _own_token(settings, user_id, "sign-in", timedelta(days=LINK_DAYS))


def session_token(settings: Settings, user_id: UUID) -> str:
    return _own_token(settings, user_id, "session", timedelta(days=SESSION_DAYS))


def feed_token(settings: Settings, user_id: UUID) -> str:
    """Make a token that opens the feed and nothing else: a feed reader sends only its address."""
    return _own_token(settings, user_id, "feed", timedelta(days=FEED_DAYS))


def open_own_token(settings: Settings, token: str, purpose: str) -> UUID:
    """Return the user of a sign-in link, a session cookie or a feed's address. Raises Unauthorized."""
    try:
        return _own_user(settings, token, purpose)
    except _BROKEN as error:
        if token:
            over = isinstance(error, jwt.ExpiredSignatureError)
            log.warning("token_refused", purpose=purpose, reason=EXPIRED if over else FOREIGN)
        raise Unauthorized(
            "This link or session has expired. Get a new link with: nexus token --link"
        ) from error


def has_session(settings: Settings, token: str) -> bool:
    """Whether a session is valid, for pages that anyone may open."""
    try:
        _own_user(settings, token, "session")
    except _BROKEN:
        return False
    return True


def user_of(issuer: str, subject: str) -> UUID:
    """Return the user whom an issuer calls by this subject, always the same. Raises InvalidSubjectError.

    A UUID is the user's id. Any other subject is a name in the namespace of its issuer. So is a UUID made from a name,
    as this function makes them: otherwise anyone could become another user by taking their id as a subject. This rule
    can't change, or all users would lose their libraries.
    """
    if not subject.strip() or len(subject) > LONGEST_SUBJECT:
        raise InvalidSubjectError
    if _UUID.fullmatch(subject) and UUID(subject).version != MADE_FROM_A_NAME:
        return UUID(subject)
    return uuid5(uuid5(NAMESPACE_URL, issuer), subject)


def _own_user(settings: Settings, token: str, purpose: str) -> UUID:
    claims = jwt.decode(
        token, settings.session_secret, ["HS256"], audience=purpose, issuer="nexus-pages", options=_REQUIRED
    )
    return UUID(claims["sub"])


def _own_token(settings: Settings, user_id: UUID, purpose: str, life: timedelta) -> str:
    claims = {"iss": "nexus-pages", "aud": purpose, "sub": str(user_id), "exp": _in(life)}
    return jwt.encode(claims, settings.session_secret, "HS256")


def _in(life: timedelta) -> datetime:
    return datetime.now(UTC) + life


def _reason(error: Exception) -> str:
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"Its claim {error.claim} is missing."
    return next((why for kind, why in _REASONS.items() if isinstance(error, kind)), MALFORMED)


def _refused(reason: str) -> Unauthorized:
    """Make the error to raise. The log has the reason, the caller does not, and neither has the token."""
    log.warning("token_refused", purpose="api", reason=reason)
    return Unauthorized()


def _unchecked(error: Exception) -> NotReady:
    """Make the error to raise if the token can't be checked."""
    log.warning("keys_unavailable", setting="NEXUS_JWKS_URL", reason=type(error).__name__)
    return NotReady()


@dataclass
class Gate:
    """Checks the callers of one app, and creates a user's rows on their first request."""

    app: App
    #: Users who have their rows, and what was last kept of each one's claims.
    known: dict[UUID, Profile | None] = field(default_factory=dict)
    #: Tokens that were valid lately, and until when they need no other check. A plain dict: a cache of cachetools
    #: takes 11 µs for what this does in 0.2 µs at every request.
    good: dict[str, tuple[UUID, float]] = field(default_factory=dict)
    keys: jwt.PyJWKClient | None = None

    def __post_init__(self) -> None:
        if self.app.settings.jwks_url:
            self.keys = jwt.PyJWKClient(self.app.settings.jwks_url, cache_keys=True, timeout=5)

    async def by_token(self, request: Request) -> UUID:
        """Raises Unauthorized, or NotReady if the published keys can't be fetched."""
        given = request.headers.get("x-nexus-internal", "")
        if not hmac.compare_digest(given.encode(), self.app.settings.internal_secret.encode()):
            raise _refused("X-Nexus-Internal is missing, or is not NEXUS_INTERNAL_SECRET.")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise _refused("There is no bearer token in the Authorization header.")
        user_id, until = self.good.get(token, (None, 0.0))
        if user_id is None or until <= time.time():
            user_id = await self._check(token)
        return await self._welcome(user_id)

    async def _check(self, token: str) -> UUID:
        if self.keys is None:
            user_id, expires, profile = self._opened(token, self.app.settings.jwt_secret, ["HS256"])
        else:
            user_id, expires, profile = await anyio.to_thread.run_sync(
                self._by_published_key, self.keys, token
            )
        await self._welcome(user_id, profile)
        if len(self.good) >= REMEMBERED:
            self.good.clear()
        self.good[token] = user_id, min(expires, time.time() + REMEMBERED_SECONDS)
        return user_id

    async def by_cookie(self, request: Request) -> UUID:
        """Raises Unauthorized, or Forbidden for a change requested by another site."""
        if request.method not in SAFE_METHODS and not _same_origin(request):
            raise Forbidden("This request comes from another site. Open Nexus itself and try again there.")
        user_id = open_own_token(self.app.settings, request.cookies.get(COOKIE, ""), "session")
        return await self._welcome(user_id)

    async def by_either(self, request: Request) -> UUID:
        """For the event stream, to which a page can't send headers."""
        bearer = "authorization" in request.headers
        return await (self.by_token(request) if bearer else self.by_cookie(request))

    def _by_published_key(self, keys: jwt.PyJWKClient, token: str) -> tuple[UUID, float, Profile]:
        try:
            keys.get_signing_keys()
        except (jwt.PyJWTError, OSError, ValueError) as error:
            raise _unchecked(error) from error
        try:
            key = keys.get_signing_key_from_jwt(token).key
        except jwt.PyJWKClientConnectionError as error:
            raise _unchecked(error) from error
        except _BROKEN as error:
            raise _refused(_reason(error)) from error
        return self._opened(token, key, ["RS256", "ES256"])

    def _opened(self, token: str, key: Any, algorithms: list[str]) -> tuple[UUID, float, Profile]:
        """Return a token's user, when it expires, and what it says about them. Raises Unauthorized."""
        from nexus.libraries.people import Profile  # noqa: PLC0415 making a token needs no database

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
            return user_of(claims["iss"], claims["sub"]), float(claims["exp"]), Profile.of(claims)
        except _BROKEN as error:
            raise _refused(_reason(error)) from error

    async def _welcome(self, user_id: UUID, profile: Profile | None = None) -> UUID:
        """A cookie says nothing about its user, and a token may say something new."""
        if user_id not in self.known or (profile is not None and self.known[user_id] != profile):
            await anyio.to_thread.run_sync(self._make_rows, user_id, profile)
            self.known[user_id] = profile
        return user_id

    def _make_rows(self, user_id: UUID, profile: Profile | None) -> None:
        from nexus.libraries import access, people  # noqa: PLC0415 making a token needs no database

        with self.app.sessions.begin() as session:
            access.ensure_user(session, user_id)
            if profile is not None:
                people.remember(session, user_id, profile)


def _same_origin(request: Request) -> bool:
    """Whether the browser says that a request comes from our own page. Without a word from it, it does not."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin", "")
    return origin.partition("://")[2] == request.headers.get("host", "")
