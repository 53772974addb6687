# ruff: noqa: PLC0415
"""Who is asking. API calls carry a bearer token, pages a session cookie.

What checks signatures is slow to load, so it is imported at the first bearer token.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

import anyio.to_thread

from nexus import logging
from nexus.errors import Forbidden, Unauthorized
from nexus.libraries import access, people, sign_ins, tokens
from nexus.libraries.people import Profile
from nexus.libraries.sign_ins import SignIn
from nexus.libraries.tokens import Scope, Token
from nexus.web.http import cookies
from nexus.web.http.lookup_cache import Memory

if TYPE_CHECKING:
    from fastapi import Request

    from nexus.app import App
    from nexus.db.session import Session
    from nexus.web.http.published_keys import PublishedKeys

log = logging.get_logger(__name__)

#: A token is checked once a minute, not at every request: the check costs as much as an answer.
REMEMBERED_SECONDS = 60.0
REMEMBERED = 10_000
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: Why a key that is looked up in the database is refused.
UNKNOWN = "It has expired or was revoked, or never existed."


def _refused(reason: str, purpose: str = "api") -> Unauthorized:
    """Make the error to raise. Only the log gets the reason, and nobody gets the token."""
    log.warning("token_refused", purpose=purpose, reason=reason)
    return Unauthorized()


@dataclass
class Gate:
    """Checks the callers of one app, and creates a user's rows on their first request."""

    app: App
    #: Users who have their rows, and what was last kept of each one's claims.
    known: dict[UUID, Profile | None] = field(default_factory=dict)
    #: Tokens that were valid lately, and until when they need no other check. A plain dict: a cache of cachetools
    #: takes 11 µs for what this does in 0.2 µs at every request.
    good: dict[str, tuple[UUID, float]] = field(default_factory=dict)
    #: Browsers and personal tokens that were looked up a moment ago.
    browsers: Memory[SignIn] = field(default_factory=Memory)
    tokens: Memory[Token] = field(default_factory=Memory)
    keys: PublishedKeys | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if self.app.settings.jwks_url:
            from nexus.web.http.published_keys import PublishedKeys

            self.keys = PublishedKeys(
                self.app.settings.jwks_url, "NEXUS_JWKS_URL", self.app.settings.rsa_bits
            )

    async def by_token(self, request: Request) -> UUID:
        """Raises Unauthorized, or NotReady if the published keys can't be fetched."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.startswith(tokens.PREFIX):
            return await self._by_personal_token(request, token)
        given = request.headers.get("x-nexus-internal", "")
        if not hmac.compare_digest(given.encode(), self.app.settings.internal_secret.encode()):
            raise _refused("X-Nexus-Internal is missing, or is not NEXUS_INTERNAL_SECRET.")
        if scheme.lower() != "bearer" or not token:
            raise _refused("There is no bearer token in the Authorization header.")
        user_id, until = self.good.get(token, (None, 0.0))
        if user_id is None or until <= self.clock():
            user_id = await self._check(token)
        return await self._welcome(user_id)

    async def _check(self, token: str) -> UUID:
        from nexus.web.http import bearer_checks

        left = REMEMBERED_SECONDS
        try:
            if self.keys is None:
                found = bearer_checks.check_by_secret(self.app.settings, token)
            else:
                found = await anyio.to_thread.run_sync(
                    bearer_checks.check_by_published_key, self.app.settings, token, self.keys
                )
                left = min(left, self.keys.seconds_left)
        except bearer_checks.BadBearer as error:
            raise _refused(str(error)) from error
        await self._welcome(found.user_id, found.profile)
        if len(self.good) >= REMEMBERED:
            self.good.clear()
        self.good[token] = found.user_id, self.clock() + min(left, found.expires - time.time())
        return found.user_id

    async def _by_personal_token(self, request: Request, secret: str) -> UUID:
        token = self.tokens.recall(secret)
        if token is None:
            token = await anyio.to_thread.run_sync(self._find_token, secret)
        if token is None or token.scope is Scope.FEED:
            raise _refused(UNKNOWN)
        needed = getattr(request.scope.get("route"), "needs", Scope.ALL)
        if needed is None:
            raise Forbidden("A personal token can't do this. Do it on your account page.")
        if not token.scope.covers(needed):
            raise Forbidden(f"This token has the scope {token.scope}, and this needs {needed}. Make another.")
        return token.user_id

    async def by_feed_address(self, secret: str) -> UUID:
        """For feed readers, which send only an address. Raises Unauthorized."""
        token = self.tokens.recall(secret)
        if token is None:
            token = await anyio.to_thread.run_sync(self._find_token, secret)
        if token is None or token.scope is not Scope.FEED:
            raise _refused(UNKNOWN, "feed")
        return token.user_id

    async def by_cookie(self, request: Request) -> UUID:
        """Raises Unauthorized, or Forbidden for a change requested by another site."""
        if request.method not in SAFE_METHODS:
            require_same_origin(request)
        sign_in = await self.sign_in_of(request)
        if sign_in is None:
            raise Unauthorized
        return sign_in.user_id

    async def sign_in_of(self, request: Request) -> SignIn | None:
        """Return the sign-in of the browser that asks, or None if it has none."""
        key = cookies.read_cookie(self.app.settings, request, cookies.SESSION)
        found = self.browsers.recall(key) if key else None
        if key and found is None:
            found = await anyio.to_thread.run_sync(self._find_sign_in, key)
            if found is None:
                log.warning("token_refused", purpose="session", reason=UNKNOWN)
        request.scope["nexus.sign_in"] = found
        return found

    def looks_signed_in(self, request: Request) -> bool:
        """For what surrounds the content of a page; whether the browser may see the content is decided elsewhere."""
        if "nexus.sign_in" in request.scope:
            return request.scope["nexus.sign_in"] is not None
        return self.browsers.has_seen(cookies.read_cookie(self.app.settings, request, cookies.SESSION))

    def _find_sign_in(self, key: str) -> SignIn | None:
        with self.app.sessions.read() as session:
            found = sign_ins.find_sign_in(session, key)
            now = session.now
        if found is not None:
            self.browsers.keep(key, found)
            if sign_ins.is_sign_in_to_note(found, now):
                self._note(
                    lambda session: sign_ins.note_sign_in_use(session, found, self.app.settings.sign_in_lives)
                )
        return found

    def _find_token(self, secret: str) -> Token | None:
        with self.app.sessions.read() as session:
            found = tokens.find_token(session, secret)
            now = session.now
        if found is not None:
            self.tokens.keep(secret, found)
            if tokens.is_token_use_to_note(found, now):
                self._note(lambda session: tokens.note_token_use(session, found))
        return found

    def _note(self, write: Callable[[Session], None]) -> None:
        """Note a use. A request that only reads must not fail because this can't be written."""
        try:
            with self.app.sessions.begin() as session:
                write(session)
        except Exception as error:
            log.warning("use_not_noted", reason=type(error).__name__)

    async def by_either(self, request: Request) -> UUID:
        """For the event stream, to which a page can't send headers."""
        bearer = "authorization" in request.headers
        return await (self.by_token(request) if bearer else self.by_cookie(request))

    async def _welcome(self, user_id: UUID, profile: Profile | None = None) -> UUID:
        """A cookie says nothing about its user, and a token may say something new."""
        if user_id not in self.known or (profile is not None and self.known[user_id] != profile):
            await anyio.to_thread.run_sync(self._make_rows, user_id, profile)
            self.known[user_id] = profile
        return user_id

    def _make_rows(self, user_id: UUID, profile: Profile | None) -> None:
        with self.app.sessions.begin() as session:
            access.ensure_user(session, user_id)
            if profile is not None:
                people.remember(session, user_id, profile)


def require_same_origin(request: Request) -> None:
    """Raises Forbidden unless the browser says that a request comes from our own page."""
    if not _same_origin(request):
        raise Forbidden("This request comes from another site. Open Nexus itself and try again there.")


def _same_origin(request: Request) -> bool:
    """False if the browser doesn't say where the request comes from."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin", "")
    return origin.partition("://")[2] == request.headers.get("host", "")
