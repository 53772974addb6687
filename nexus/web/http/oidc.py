# ruff: noqa: PLC0415
"""Signing in at the team's identity provider, with OpenID Connect: the code flow, with PKCE, state and nonce.

Authlib speaks the protocol. It is imported at the first sign-in, because a start must not wait for it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import jwt

from nexus import logging
from nexus.errors import ApiError, NotReady, Unauthorized
from nexus.libraries.people import Profile
from nexus.settings import Settings
from nexus.web.http.bearer import BROKEN, user_of
from nexus.web.http.cookies import PENDING_SECONDS
from nexus.web.http.published_keys import (
    FETCH_SECONDS,
    LIFE_SECONDS,
    PAUSE_SECONDS,
    KeysUnavailable,
    PublishedKeys,
)

if TYPE_CHECKING:
    from authlib.integrations.httpx_client import OAuth2Client

log = logging.get_logger(__name__)

ALGORITHMS = ["RS256", "ES256", "PS256", "EdDSA"]
#: How far the clocks of provider and Nexus may differ.
LEEWAY_SECONDS = 60
_PURPOSE = "oidc"
#: Has the provider sign somebody in again, even if it knows them.
_AGAIN = {"prompt": "login", "max_age": "0"}
AGAIN = "Start again below."
UNBEGUN = f"This sign-in was not started in this browser, or took more than ten minutes. {AGAIN}"


class PendingSignIn(NamedTuple):
    """A browser that is sent to the provider."""

    address: str
    #: For a cookie, until the browser comes back.
    memo: str


class Arrival(NamedTuple):
    """Somebody who has signed in."""

    user_id: UUID
    profile: Profile
    #: When they have shown the provider who they are, if it says so.
    proven_at: datetime | None
    #: Where they wanted to go.
    back: str


class _Bound(NamedTuple):
    """What binds the answer of the provider to one browser and one sign-in."""

    state: str
    nonce: str
    verifier: str


class _Known(NamedTuple):
    """What the provider publishes about itself."""

    metadata: dict[str, Any]
    keys: PublishedKeys


def _bound_to(secret: str, word: str) -> _Bound:
    """Derive all of it from one random word, so that nothing has to be stored and the cookie gives nothing away."""
    made = (
        hmac.digest(secret.encode(), f"{_PURPOSE} {purpose} {word}".encode(), hashlib.sha256)
        for purpose in _Bound._fields
    )
    return _Bound(*(base64.urlsafe_b64encode(digest).decode().rstrip("=") for digest in made))


class Provider:
    """The identity provider that the settings name, for every thread of a process."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self.clock = clock
        self._known: _Known | None = None
        self._fetched_at = self._tried_at = float("-inf")
        self._turn = threading.Lock()

    @property
    def name(self) -> str:
        return self._settings.oidc_shown_name

    def begin(self, return_address: str, back: str, *, again: bool = False) -> PendingSignIn:
        """With `again`, people have to show who they are, even if the provider knows them.

        Raises NotReady if the provider can't be reached.
        """
        metadata = self._discovered().metadata
        word = secrets.token_urlsafe(32)
        bound = _bound_to(self._settings.session_secret, word)
        now = int(time.time())
        claims = {"aud": _PURPOSE, "word": word, "back": back, "exp": now + PENDING_SECONDS}
        claims |= {"again": now} if again else {}
        memo = jwt.encode(claims, self._settings.session_secret, "HS256")
        with self._client(metadata, return_address) as client:
            address, _ = client.create_authorization_url(
                metadata["authorization_endpoint"],
                state=bound.state,
                nonce=bound.nonce,
                code_verifier=bound.verifier,
                **(_AGAIN if again else {}),
            )
        return PendingSignIn(address, memo)

    def finish(self, return_address: str, memo: str, answer: Mapping[str, str]) -> Arrival:
        """Return who the provider says has signed in. Raises Unauthorized or NotReady, with what to do."""
        word, back, again = self._recalled(memo)
        bound = _bound_to(self._settings.session_secret, word)
        if not hmac.compare_digest(answer.get("state", "").encode(), bound.state.encode()):
            raise self._refused("The state does not belong to this browser.", UNBEGUN)
        if answer.get("iss", self._settings.oidc_issuer) != self._settings.oidc_issuer:
            raise self._misfit("The answer names another issuer.")
        if "error" in answer or not answer.get("code"):
            # Not what it says: anybody can write that into an address.
            raise self._refused("The provider refused.", f"{self.name} did not sign you in. {AGAIN}")
        known = self._discovered()
        with self._client(known.metadata, return_address) as client:
            token = self._fetched_token(
                client, known.metadata["token_endpoint"], answer["code"], bound.verifier
            )
            claims = self._checked(known.keys, token, bound.nonce)
            facts = self._facts(client, known.metadata.get("userinfo_endpoint"), claims)
        try:
            user_id = user_of(claims["iss"], claims["sub"])
        except (jwt.PyJWTError, AttributeError) as error:
            raise self._misfit("Its sub is not a text of 1 to 255 characters.") from error
        return Arrival(user_id, Profile.of(facts), self._proven_at(claims, again), back)

    def sign_out_address(self, back: str) -> str | None:
        """Return where people sign out at the provider too, or None if it offers no such place."""
        from authlib.common.urls import add_params_to_uri

        try:
            place = self._discovered().metadata.get("end_session_endpoint")
        except ApiError:
            return None
        if not isinstance(place, str) or not self._is_trusted(place):
            return None
        given = {"client_id": self._settings.oidc_client_id, "post_logout_redirect_uri": back}
        return str(add_params_to_uri(place, given.items()))

    def _client(self, metadata: dict[str, Any], return_address: str) -> OAuth2Client:
        from authlib.integrations.httpx_client import OAuth2Client

        chosen = self._settings
        offered = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        method = "client_secret_basic" if "client_secret_basic" in offered else "client_secret_post"
        return OAuth2Client(
            client_id=chosen.oidc_client_id,
            client_secret=chosen.oidc_client_secret or None,
            token_endpoint_auth_method=method if chosen.oidc_client_secret else "none",
            scope=chosen.oidc_scopes,
            redirect_uri=return_address,
            code_challenge_method="S256",
            timeout=FETCH_SECONDS,
            trust_env=False,
            verify=self._tls,
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Made once: it loads every certificate of the machine."""
        import httpx2

        return httpx2.create_ssl_context(trust_env=False)

    def _proven_at(self, claims: dict[str, Any], again: int | None) -> datetime | None:
        """Raises Unauthorized if somebody was to sign in again and has not.

        A provider that was asked how old a sign-in may be has to say how old it is. Some that do ask again don't.
        """
        said = claims.get("auth_time")
        if said is None:
            said = again
        try:
            if said is None:
                return None
            if again is not None and said < again - LEEWAY_SECONDS:
                raise self._refused(
                    "Its auth_time is too old.", f"{self.name} did not ask who you are. {AGAIN}"
                )
            return datetime.fromtimestamp(said, UTC)
        except (TypeError, ValueError, OverflowError, OSError) as error:
            raise self._misfit("Its auth_time is not a time.") from error

    def _recalled(self, memo: str) -> tuple[str, str, int | None]:
        try:
            claims = jwt.decode(
                memo,
                self._settings.session_secret,
                ["HS256"],
                audience=_PURPOSE,
                options={"require": ["exp", "aud"]},
            )
            return str(claims["word"]), str(claims["back"]), claims.get("again")
        except (*BROKEN, KeyError) as error:
            raise self._refused("There is no cookie of a sign-in, or it has expired.", UNBEGUN) from error

    def _discovered(self) -> _Known:
        """Return what the provider publishes about itself. Raises NotReady.

        It is fetched again after five minutes. While the provider is down, what it said before may serve.
        """
        with self._turn:
            now = self.clock()
            if now - self._fetched_at >= LIFE_SECONDS and now - self._tried_at >= PAUSE_SECONDS:
                self._tried_at = now
                if found := self._fetched_metadata():
                    self._known, self._fetched_at = _Known(found, self._keys_at(found["jwks_uri"])), now
            if self._known is None:
                raise self._away()
            return self._known

    def _keys_at(self, address: str) -> PublishedKeys:
        """Return the keys that are there already, or new ones if the provider publishes them elsewhere now."""
        if self._known is not None and self._known.metadata["jwks_uri"] == address:
            return self._known.keys
        return PublishedKeys(address, "NEXUS_OIDC_ISSUER", self._settings.rsa_bits, self.clock)

    def _fetched_metadata(self) -> dict[str, Any] | None:
        import httpx2

        address = self._settings.oidc_issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            answer = httpx2.get(address, timeout=FETCH_SECONDS, trust_env=False, verify=self._tls)
            answer.raise_for_status()
            found = answer.json()
            wanted = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            if found["issuer"] != self._settings.oidc_issuer:
                raise ValueError("another issuer")
            if not all(self._is_trusted(found[name]) for name in wanted):
                raise ValueError("an endpoint without https")
        except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            log.warning("provider_unavailable", setting="NEXUS_OIDC_ISSUER", reason=_reason(error))
            return None
        return dict(found)

    def _is_trusted(self, address: str) -> bool:
        """A provider with https must not send anybody on to plain http."""
        return address.startswith("https://" if self._settings.oidc_issuer.startswith("https://") else "http")

    def _fetched_token(self, client: OAuth2Client, place: str, code: str, verifier: str) -> dict[str, Any]:
        import httpx2
        from authlib.integrations.base_client import OAuthError

        try:
            found: dict[str, Any] = client.fetch_token(
                place, grant_type="authorization_code", code=code, code_verifier=verifier
            )
        except OAuthError as error:
            reason = f"The token endpoint answered {str(error.error)[:40]!r}."
            message = f"{self.name} did not accept the sign-in, maybe because it was used before. {AGAIN}"
            if error.error in {"invalid_client", "unauthorized_client"}:
                message = (
                    f"{self.name} does not know this Nexus. The administrator should check NEXUS_OIDC_CLIENT_ID and "
                    "NEXUS_OIDC_CLIENT_SECRET."
                )
            raise self._refused(reason, message) from error
        except (httpx2.HTTPError, ValueError) as error:
            log.warning("provider_unavailable", setting="NEXUS_OIDC_ISSUER", reason=_reason(error))
            raise self._away() from error
        return found

    def _checked(self, keys: PublishedKeys, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token after every check that OpenID Connect asks for."""
        from authlib.oidc.core import CodeIDToken
        from joserfc.errors import JoseError

        try:
            given = token["id_token"]
            header = jwt.get_unverified_header(given)
            key = keys.find(header.get("kid"))
            # Authlib checks the claims, by the rules of ID tokens.
            unchecked: Any = {
                f"verify_{name}": False for name in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
            }
            claims = jwt.decode(given, key.key, ALGORITHMS, options=unchecked)
            options = {
                "iss": {"essential": True, "value": self._settings.oidc_issuer},
                "aud": {"essential": True, "value": self._settings.oidc_client_id},
            }
            params = {"nonce": nonce, "client_id": self._settings.oidc_client_id}
            known = CodeIDToken(
                claims, header, options, {**params, "access_token": token.get("access_token")}
            )
            known.validate(now=int(time.time()), leeway=LEEWAY_SECONDS)
        except KeysUnavailable as error:
            raise self._away() from error
        except (JoseError, KeyError, *BROKEN) as error:
            raise self._misfit(f"Its ID token was refused: {_reason(error)}.") from error
        return dict(claims)

    def _facts(self, client: OAuth2Client, place: object, claims: dict[str, Any]) -> Mapping[str, Any]:
        """Return the claims, with those that the provider tells only at its userinfo endpoint.

        Without them, a person is signed in all the same.
        """
        import httpx2
        from authlib.integrations.base_client import OAuthError

        if {"name", "email"} <= claims.keys() or not isinstance(place, str) or not self._is_trusted(place):
            return claims
        try:
            more = client.get(place).raise_for_status().json()
            return {**more, **claims} if more["sub"] == claims["sub"] else claims
        except (httpx2.HTTPError, OAuthError, ValueError, KeyError, TypeError) as error:
            log.warning("userinfo_unavailable", reason=_reason(error))
            return claims

    def _away(self) -> NotReady:
        return NotReady(f"{self.name} can't be reached, so nobody can sign in there. Try again in a moment.")

    def _refused(self, reason: str, message: str) -> Unauthorized:
        log.warning("sign_in_refused", reason=reason)
        return Unauthorized(message)

    def _misfit(self, reason: str) -> Unauthorized:
        return self._refused(
            reason,
            f"{self.name} sent an answer that is not meant for this Nexus. {AGAIN} If it happens again, the "
            "administrator should look at the log, NEXUS_OIDC_ISSUER and NEXUS_OIDC_CLIENT_ID.",
        )


def _reason(error: Exception) -> str:
    """Return what kind of error it is, and which claim is wrong: never what the provider wrote."""
    claim = getattr(error, "claim", None)
    return f"{type(error).__name__} {claim}" if isinstance(claim, str) else type(error).__name__
