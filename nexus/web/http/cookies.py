"""The cookies of the pages: their names, and whether browsers send them over TLS alone."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from nexus.settings import Settings

SESSION = "nexus_session"
#: Holds the state of a sign-in at an identity provider until the browser comes back.
PENDING_SIGN_IN = "nexus_errand"
#: How long somebody may take to sign in at the provider.
PENDING_SECONDS = 600


def is_secure(settings: Settings, request: Request) -> bool:
    """Whether browsers reach Nexus over https. A proxy may take the TLS off: then the public address says so."""
    return settings.public_url.startswith("https://") or request.url.scheme == "https"


def cookie_name(settings: Settings, request: Request, cookie: str) -> str:
    """Return the full name. Browsers let no other host and no plain http set a cookie with the prefix `__Host-`."""
    return f"__Host-{cookie}" if is_secure(settings, request) else cookie


def read_cookie(settings: Settings, request: Request, cookie: str) -> str:
    return request.cookies.get(cookie_name(settings, request, cookie), "")


def put(
    settings: Settings, request: Request, response: Response, cookie: str, value: str, seconds: int
) -> None:
    """Scripts can't read it, and other sites' requests don't carry it, except when somebody follows a link."""
    response.set_cookie(
        cookie_name(settings, request, cookie),
        value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="lax",
        secure=is_secure(settings, request),
    )


def drop_cookie(settings: Settings, request: Request, response: Response, cookie: str) -> None:
    response.delete_cookie(
        cookie_name(settings, request, cookie),
        path="/",
        httponly=True,
        samesite="lax",
        secure=is_secure(settings, request),
    )


def end_visit(settings: Settings, request: Request, response: Response) -> None:
    """End a browser's visit: it drops its key, and what it kept of Nexus's pages.

    What was typed there is removed by the page, for this user alone: the browser may be shared.
    """
    drop_cookie(settings, request, response, SESSION)
    response.headers["Clear-Site-Data"] = '"cache"'
