"""Checks bearer tokens, and finds the users they stand for."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

import jwt

from nexus.errors import NotReady
from nexus.libraries.people import Profile
from nexus.settings import Settings
from nexus.web.http.bearer import BROKEN, open_token, refusal_reason, user_of
from nexus.web.http.published_keys import KeysUnavailable, PublishedKeys


class BadBearer(Exception):
    """A token is refused. Only the log gets the text, which says why."""


class Bearer(NamedTuple):
    """A token that is good."""

    user_id: UUID
    #: In seconds since 1970.
    expires: float
    #: What it says about its user.
    profile: Profile


def check_by_secret(settings: Settings, token: str) -> Bearer:
    """Raises BadBearer."""
    return _check(settings, token, settings.jwt_secret, ["HS256"])


def check_by_published_key(settings: Settings, token: str, keys: PublishedKeys) -> Bearer:
    """Raises BadBearer, or NotReady if the keys can't be fetched."""
    try:
        key = keys.find(jwt.get_unverified_header(token).get("kid")).key
    except KeysUnavailable as error:
        raise NotReady from error
    except BROKEN as error:
        raise BadBearer(refusal_reason(error)) from error
    return _check(settings, token, key, ["RS256", "ES256"])


def _check(settings: Settings, token: str, key: Any, algorithms: list[str]) -> Bearer:
    try:
        claims = open_token(settings, token, key, algorithms)
        return Bearer(user_of(claims["iss"], claims["sub"]), float(claims["exp"]), Profile.of(claims))
    except BROKEN as error:
        raise BadBearer(refusal_reason(error)) from error
