"""Browsers that are signed in, without a browser."""

from __future__ import annotations

from uuid import UUID

from nexus.db.session import Sessions
from nexus.libraries import sign_ins, tokens
from nexus.libraries.sign_ins import Method
from nexus.settings import Settings
from nexus.web.http import cookies


def session_key(sessions: Sessions, user: UUID, device: str = "Firefox on Linux") -> str:
    """The value of the cookie of a browser that is signed in from now on."""
    with sessions.begin() as session:
        lives = Settings(_env_file=None).sign_in_lives  # type: ignore[call-arg]
        return sign_ins.begin_sign_in(session, user, Method.LINK, device, lives, session.now)


def cookie_of(sessions: Sessions, user: UUID) -> str:
    """The Cookie header of such a browser, over http."""
    return f"{cookies.SESSION}={session_key(sessions, user)}"


def link_key(sessions: Sessions, user: UUID) -> str:
    """The token of a new sign-in link."""
    with sessions.begin() as session:
        return sign_ins.make_link(session, user)


def token_of(sessions: Sessions, user: UUID, scope: str = "all", name: str = "A token") -> str:
    """A new personal token."""
    with sessions.begin() as session:
        return tokens.make(session, user, name, scope)[1]
