"""How a page is made: the templates, the words for moments, and the headers that every page carries."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import nexus
from nexus.errors import Unauthorized
from nexus.settings import Settings
from nexus.web import auth
from nexus.web.context import app_of

HERE = Path(__file__).parent
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
#: Nothing evaluated, nothing inline, nothing remembered outside the server; every answer of ours is shown.
HTMX = {
    "allowEval": False,
    "allowScriptTags": False,
    "includeIndicatorStyles": False,
    "historyCacheSize": 0,
    "selfRequestsOnly": True,
    "responseHandling": [
        {"code": "204", "swap": False},
        {"code": "[234]..", "swap": True},
        {"code": "5..", "swap": False, "error": True},
    ],
}
_SIZES = ("kB", "MB", "GB")
_STEPS = (("minute", 60), ("hour", 3600), ("day", 86400))
_BLANK_LINE = re.compile(r"\n\s*\n")
_CODE = re.compile(r"`([^`]+)`")


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    return fragment(request, template, status, signed_in=signed_in(request), path=request.url.path, **values)


def fragment(
    request: Request, template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> Response:
    """A piece of a page, for htmx and app.js to put in its place."""
    nexus = app_of(request)
    body = environment().get_template(template).render(now=nexus.sessions.clock(), **values)
    safe = {**HEADERS, "Content-Security-Policy": policy(nexus.settings)}
    return HTMLResponse(body, status, {**safe, **(headers or {})})


def policy(settings: Settings) -> str:
    """Everything comes from Nexus itself; a file that is uploaded may go to the store."""
    return " ".join([f"{POLICY}; connect-src 'self'", *store_origins(settings)])


def store_origins(settings: Settings) -> list[str]:
    """Where a browser uploads to, beside Nexus itself."""
    if settings.storage == "local":
        return []
    if settings.storage == "s3" and not settings.s3_endpoint_url:
        return ["https://s3.amazonaws.com", f"https://s3.{settings.s3_region}.amazonaws.com"]
    given = urlsplit(settings.s3_endpoint_url if settings.storage == "s3" else settings.supabase_url)
    return [f"{given.scheme}://{given.netloc.rpartition('@')[2]}"]


def signed_in(request: Request) -> bool:
    """For what a page shows around its content; what it may show is decided by PageViewer."""
    try:
        auth.open_own_token(app_of(request).settings, request.cookies.get(auth.COOKIE, ""), "session")
    except Unauthorized:
        return False
    return True


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ago": ago,
        "exactly": exactly,
        "paragraphs": paragraphs,
        "path": path,
        "prose": prose,
        "size": size,
    }
    made.globals |= {"static": static, "version": nexus.__version__, "htmx_config": json.dumps(HTMX)}
    return made


@cache
def static(name: str) -> str:
    """The address of a file, which changes with its content: no browser shows an old one after an update."""
    digest = hashlib.sha256((HERE / "static" / name).read_bytes()).hexdigest()
    return f"/static/{name}?v={digest[:10]}"


def ago(moment: datetime, now: datetime) -> str:
    """In words for the last week, then the date. static/app.js says it the same way."""
    seconds = (now - moment).total_seconds()
    if seconds < 60:
        return "just now"
    if seconds >= 7 * 86400:
        return f"{moment.astimezone(UTC):%-d %b %Y}"
    name, size = next(step for step in reversed(_STEPS) if seconds >= step[1])
    count = int(seconds // size)
    return f"{count} {name}{'' if count == 1 else 's'} ago"


def exactly(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%-d %b %Y, %H:%M:%S} UTC"


def size(count: int) -> str:
    """Of a file, with two digits where they say something. static/uploads.js says it the same way."""
    if count < 1000:
        return f"{count} {'byte' if count == 1 else 'bytes'}"
    amount, unit = count / 1000, 0
    while amount >= 999.5 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1000, unit + 1
    digits = 1 if amount < 9.95 else 0
    return f"{amount:.{digits}f} {_SIZES[unit]}"


def paragraphs(texts: Iterable[str]) -> list[str]:
    return [part.strip() for text in texts for part in _BLANK_LINE.split(text) if part.strip()]


def prose(text: str) -> Markup:
    """Escaped, with `names` between backticks set as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped first


def path(text: str) -> Markup:
    """Escaped, and broken after its slashes where a line is too short for it."""
    return Markup("/<wbr>").join(escape(part) for part in text.split("/"))
