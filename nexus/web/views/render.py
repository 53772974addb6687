"""How a page is made: the templates, the address of static files, and the headers that every page carries."""

from __future__ import annotations

import hmac
import json
from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

import nexus
from nexus.command_line import sign_in_command
from nexus.errors import ApiError
from nexus.libraries.sign_ins import SignIn
from nexus.settings import Settings
from nexus.web.http.auth import Gate
from nexus.web.http.context import app_of
from nexus.web.http.envelope import request_id, retry_after
from nexus.web.http.routing import MOST_BODY, Router
from nexus.web.http.static_files import static_file
from nexus.web.views import filters

if TYPE_CHECKING:
    from jinja2 import Environment

WEB = Path(__file__).parents[1]
POLICY = (
    "default-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: A header of what static/forms.js sends.
BY_SCRIPT = "nexus-form"
#: Nothing evaluated, nothing inline, no history kept in the browser; every answer but a server's error is shown.
HTMX = {
    "allowEval": False,
    "allowScriptTags": False,
    # Text from strangers: nothing in it is an instruction to htmx, whatever its attributes say.
    "disableSelector": "[hx-disable], [data-hx-disable], .fragment",
    "includeIndicatorStyles": False,
    "historyCacheSize": 0,
    "selfRequestsOnly": True,
    "responseHandling": [
        {"code": "204", "swap": False},
        {"code": "[234]..", "swap": True},
        {"code": "5..", "swap": False, "error": True},
    ],
}


def page_router(most_body: int | None = MOST_BODY, **options: Any) -> Router:
    """Make a router whose routes answer with pages, also for errors."""
    return Router(refuse=refuse_as_page, most_body=most_body, include_in_schema=False, **options)


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    user = _user(request)
    here: dict[str, Any] = {"signed_in": signed_in(request), "user": user, "path": request.url.path}
    return fragment(request, template, status, **here, seal=user and _seal(request, user), **values)


def _user(request: Request) -> UUID | None:
    """Who is signed in, so that what is kept in a browser stays with the one who typed it."""
    sign_in: SignIn | None = request.scope.get("nexus.sign_in")
    return request.scope.get("nexus.viewer") or (sign_in and sign_in.user_id)


def _seal(request: Request, user: UUID) -> str:
    """The key with which a browser seals what it keeps for a user: the same at every sign-in, and written nowhere
    but in pages, which no browser keeps."""
    secret = app_of(request).settings.session_secret
    return b64encode(hmac.digest(secret.encode(), f"kept in browsers of {user}".encode(), "sha256")).decode()


def fragment(
    request: Request,
    template: str,
    status: int = 200,
    headers: dict[str, str] | None = None,
    frames: tuple[str, ...] = (),
    **values: Any,
) -> Response:
    """A piece of a page, for htmx and app.js to put in its place. `frames` are the origins that it may show."""
    nexus = app_of(request)
    body = environment().get_template(template).render(now=nexus.sessions.clock(), **values)
    safe = {**HEADERS, "Content-Security-Policy": policy(nexus.settings, frames)}
    return HTMLResponse(body, status, {**safe, **(headers or {})})


def refuse_as_page(request: Request, error: ApiError, status: int) -> Response:
    """An error as a page. For a script it is a notice; htmx puts it where the page shows its notices."""
    if by_htmx(request) or BY_SCRIPT in request.headers:
        place = {"HX-Retarget": "#notices", "HX-Reswap": "innerHTML", **retry_after(error)}
        return fragment(request, "notice.html", status, place, message=error.message)
    if status == 401:
        return sign_in_page(request)
    headers, known_as = retry_after(error), request_id(request)
    return page(request, "problem.html", status, headers=headers, error=error, request_id=known_as)


def sign_in_page(request: Request, status: int = 401, problem: str = "", **values: Any) -> Response:
    """The page that says how to sign in, and leads back to where the browser is."""
    provider, settings = request.app.state.provider, app_of(request).settings
    is_page = request.method == "GET" and not request.url.path.startswith("/sign-in")
    given = {"back": request.url.path if is_page else "/", "elsewhere": None, **values}
    return page(
        request,
        "sign_in.html",
        status,
        problem=problem,
        provider=provider.name if provider else "",
        link_command=sign_in_command(settings, request.url.port or settings.port),
        **given,
    )


def by_htmx(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


class _Onward(RedirectResponse):
    """A redirect. Scripts can't see where one leads, so static/forms.js is told in a header."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if BY_SCRIPT in Headers(scope=scope):
            self.status_code = 200
            self.headers["Nexus-Location"] = self.headers["Location"]
            del self.headers["Location"]
        await super().__call__(scope, receive, send)


def go(address: str) -> RedirectResponse:
    """Redirect so that reloading the next page sends nothing again. The address, maybe a link, stays out of caches."""
    return _Onward(address, 303, {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"})


def changed(media_id: UUID) -> dict[str, str]:
    """Headers that make static/app.js look at this item again and point it out, whether or not events arrive."""
    return {"HX-Trigger": json.dumps({"nexus:changed": {"id": str(media_id)}})}


def noted(media_id: UUID) -> dict[str, str]:
    """The same for what only its reader noted: they know which item it is."""
    return {"HX-Trigger": json.dumps({"nexus:noted": {"id": str(media_id)}})}


def policy(settings: Settings, frames: tuple[str, ...] = ()) -> str:
    """The Content-Security-Policy: everything comes from Nexus, also the pictures of a text; uploads may go to the
    store. A page with the player of another site may show frames of that site."""
    shown = f"; frame-src 'self' {' '.join(frames)}" if frames else ""
    return " ".join([f"{POLICY}{shown}; connect-src 'self'", *_store_origins(settings)])


def _store_origins(settings: Settings) -> list[str]:
    """Where a browser uploads to, besides Nexus itself."""
    if settings.storage == "local":
        return []
    if settings.storage == "s3" and not settings.s3_endpoint_url:
        return ["https://s3.amazonaws.com", f"https://s3.{settings.s3_region}.amazonaws.com"]
    given = urlsplit(settings.s3_endpoint_url if settings.storage == "s3" else settings.supabase_url)
    return [f"{given.scheme}://{given.netloc.rpartition('@')[2]}"]


def signed_in(request: Request) -> bool:
    """For what surrounds a page's content. What the viewer may see is decided by PageViewer."""
    gate: Gate = request.app.state.gate
    return gate.looks_signed_in(request)


@cache
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 only pages need it

    made = Environment(
        loader=FileSystemLoader(WEB / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for filter_ in (
        filters.ago,
        filters.clock_time,
        filters.exactly,
        filters.listening_time,
        filters.path,
        filters.prose,
        filters.reading_time,
        filters.size,
        filters.time_of_day,
    ):
        made.filters[filter_.__name__] = filter_
    made.globals |= {"static": static, "version": nexus.__version__, "htmx_config": json.dumps(HTMX)}
    return made


def static(name: str) -> str:
    return static_file(name).address
