"""Makes bearer tokens, and finds the users they stand for."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import jwt
from jwt.exceptions import InvalidSubjectError

from nexus.settings import Settings

_REQUIRED: Any = {"require": ["exp", "iss", "aud", "sub"]}
#: What a malformed token may raise. A deeply nested one exhausts the JSON parser, a huge number is not a time.
BROKEN = (jwt.PyJWTError, ValueError, TypeError, AttributeError, RecursionError, OverflowError)
#: The limit of OpenID Connect.
LONGEST_SUBJECT = 255
#: The version of UUIDs that `user_of` makes.
MADE_FROM_A_NAME = 5
#: The usual spelling. Python accepts others too, which would make several subjects the same user.
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
EXPIRED = "It has expired."
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
    jwt.PyJWKClientError: "NEXUS_JWKS_URL publishes no key with its kid, or one that is shorter than NEXUS_RSA_BITS.",
}


def issue_token(settings: Settings, user_id: UUID, hours: float = 24) -> str:
    """Make a bearer token with the configured secret, for the CLI and for tests."""
    expires = datetime.now(UTC) + timedelta(hours=hours)
    claims = {"iss": settings.jwt_issuer, "aud": settings.jwt_audience, "sub": str(user_id), "exp": expires}
    return jwt.encode(claims, settings.jwt_secret, "HS256")


def user_of(issuer: str, subject: str) -> UUID:
    """Return the user that an issuer means by a subject, always the same. Raises InvalidSubjectError.

    A UUID is the user's id. Any other subject is a name in the namespace of its issuer. So is a UUID made from a name,
    as this function makes them: otherwise anyone could become another user by taking their id as a subject. This rule
    can't change, or all users would lose their libraries.
    """
    if not subject.strip() or len(subject) > LONGEST_SUBJECT:
        raise InvalidSubjectError
    if _UUID.fullmatch(subject) and UUID(subject).version != MADE_FROM_A_NAME:
        return UUID(subject)
    return uuid5(uuid5(NAMESPACE_URL, issuer), subject)


def open_token(settings: Settings, token: str, key: Any, algorithms: list[str]) -> dict[str, Any]:
    """Return the claims of a token. Raises one of BROKEN."""
    return jwt.decode(
        token,
        key,
        algorithms,
        audience=settings.jwt_audience,
        issuer=settings.jwt_issuer,
        options=_REQUIRED,
    )


def refusal_reason(error: Exception) -> str:
    """Return why a token was refused, in a sentence for the log."""
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"Its claim {error.claim} is missing."
    return next((why for kind, why in _REASONS.items() if isinstance(error, kind)), MALFORMED)
