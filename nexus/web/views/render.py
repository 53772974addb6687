"""How a page is made: the templates, the words for moments, and the headers that every page carries."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup, escape

import nexus
from nexus.db.session import Row
from nexus.media.passages import Passage
from nexus.settings import Settings
from nexus.web.http import auth
from nexus.web.http.context import app_of

if TYPE_CHECKING:
    from jinja2 import Environment

WEB = Path(__file__).parents[1]
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
_BLANK_LINES = re.compile(r"(\n\s*\n)")
#: The tags that are not shown as they stand. Text is escaped, so nothing else looks like one.
_PLACED = re.compile(r"""<(?:a|img|/?table)\b(?:[^>"']|"[^"]*"|'[^']*')*+>""", re.IGNORECASE)
_HEADING = re.compile(r"\s*<(h[12])\b([^>]*)>(.*?)</\1>", re.DOTALL)
_ASSET = re.compile(r"""(\ssrc=)"asset:""")
_WITHIN = re.compile(r"""(\shref=)"\#(f(\d{1,9})(?:-[^"]*)?)(?=")""")
_CODE = re.compile(r"`([^`]+)`")


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    return fragment(request, template, status, signed_in=signed_in(request), path=request.url.path, **values)


def by_htmx(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def go(address: str) -> RedirectResponse:
    """See other: reloading what comes next sends nothing again. The address of a link stays out of caches."""
    return RedirectResponse(address, 303, {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"})


def changed(media_id: UUID) -> dict[str, str]:
    """Tells static/app.js to look at this media again, whether or not the stream of events is up."""
    return {"HX-Trigger": json.dumps({"nexus:changed": {"id": str(media_id)}})}


def fragment(
    request: Request, template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> Response:
    """A piece of a page, for htmx and app.js to put in its place."""
    nexus = app_of(request)
    body = environment().get_template(template).render(now=nexus.sessions.clock(), **values)
    safe = {**HEADERS, "Content-Security-Policy": policy(nexus.settings)}
    return HTMLResponse(body, status, {**safe, **(headers or {})})


def policy(settings: Settings, pictures: bool = False) -> str:
    """Everything comes from Nexus itself; a file that is uploaded may go to the store. The pictures of a text that is
    read come from where they are."""
    allowed = f"{POLICY}; img-src 'self' https: http:" if pictures else POLICY
    return " ".join([f"{allowed}; connect-src 'self'", *store_origins(settings)])


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
    return auth.has_session(app_of(request).settings, request.cookies.get(auth.COOKIE, ""))


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
    made.filters |= {
        "ago": ago,
        "exactly": exactly,
        "path": path,
        "prose": prose,
        "reading_time": reading_time,
        "size": size,
    }
    made.globals |= {"static": static, "version": nexus.__version__, "htmx_config": json.dumps(HTMX)}
    return made


@cache
def static(name: str) -> str:
    """The address of a file, which changes with its content: no browser shows an old one after an update."""
    digest = hashlib.sha256((WEB / "static" / name).read_bytes()).hexdigest()
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


def reading_time(minutes: int) -> str:
    hours = round(minutes / 60)
    return f"{minutes} min read" if minutes < 90 else f"{hours} hours to read"


def readable(row: Row, media_id: UUID, passage: Passage, title: str) -> Markup:
    """A fragment as it is read. Its text content is its text, so that an offset in the one is an offset in the other.

    Its html is clean already. Pictures and links within the document get an address, tables a frame to scroll in, and
    a heading that only says the title again is out of sight.
    """
    if row.html is None:
        return paragraphs(row.text)

    def placed(found: re.Match[str]) -> str:
        tag: str = found[0]
        if tag.startswith("</"):
            return f"{tag}</div>"
        if tag[:6].lower() == "<table":
            return f'<div class="table-frame">{tag}'
        tag = _ASSET.sub(rf'\1"/items/{media_id}/assets/', tag)
        return _WITHIN.sub(lambda link: _way(link, media_id, passage), tag)

    begins = passage.before is None and row is passage.fragments[0]
    html = _without_title(row.html, title) if begins else row.html
    return Markup(_PLACED.sub(placed, html))  # noqa: S704 - cleaned by who read it


def _without_title(html: str, title: str) -> str:
    found = _HEADING.match(html)
    if found is None or not same_words(Markup(found[3]).striptags(), title):  # noqa: S704 - only compared
        return html
    return f'{html[: found.end(1)]} class="unseen"{html[found.end(1) :]}'


def same_words(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


def _way(link: re.Match[str], media_id: UUID, passage: Passage) -> str:
    return f'{link[1]}"{way_to(link[2], int(link[3]), media_id, passage)}'


def way_to(anchor: str, position: int, media_id: UUID, passage: Passage) -> str:
    """Where a link leads that stays in the document: on this page, or on the one that begins there."""
    return f"#{anchor}" if passage.holds(position) else f"/items/{media_id}?from={position}#{anchor}"


def paragraphs(text: str) -> Markup:
    """Escaped, and parted at blank lines. What stands between two paragraphs is kept there."""
    return Markup("").join(map(_paragraph, _BLANK_LINES.split(text)))


def _paragraph(part: str) -> Markup:
    body = part.strip()
    if not body:
        return _spelt(part)
    before, after = part.split(body, 1)
    return Markup('{}<p class="plain" dir="auto">{}</p>{}').format(*map(_spelt, (before, body, after)))


def _spelt(text: str) -> Markup:
    """Escaped. A browser reads a carriage return as the end of a line, unless it is spelt out."""
    return Markup(str(escape(text)).replace("\r", "&#13;"))  # noqa: S704 - escaped first


def prose(text: str) -> Markup:
    """Escaped, with `names` between backticks set as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped first


def path(text: str) -> Markup:
    """Escaped, and broken after its slashes where a line is too short for it."""
    return Markup("/<wbr>").join(escape(part) for part in text.split("/"))
