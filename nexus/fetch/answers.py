"""Reads what a site answers: its headers, the type of its body, and what its status means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from nexus.errors import (
    FetchBadAnswer,
    FetchFailed,
    FetchHttp4xx,
    FetchHttp5xx,
    FetchRateLimited,
    FetchTooLarge,
    FetchWrongType,
)
from nexus.retry_after import parse_retry_after

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
NOT_MODIFIED = 304
PARTIAL = 206
#: Request timeout and too early: the site may answer differently in a moment.
PASSING = frozenset({408, 425})
GONE = frozenset({404, 410})

PDF = "application/pdf"
EPUB = "application/epub+zip"
HTML = "text/html"
TEXT = "text/plain"
ACCEPTED = frozenset({HTML, "application/xhtml+xml", TEXT, PDF, EPUB})
ACCEPT = (
    "text/html, application/xhtml+xml, application/pdf, application/epub+zip, text/plain;q=0.9, */*;q=0.1"
)
#: Without SVG, which Nexus does not keep: sites that have a choice send something else.
ACCEPT_PICTURE = "image/webp, image/png, image/jpeg, image/gif, image/avif;q=0.9, */*;q=0.1"
#: What servers say when they don't know the type. The bytes decide instead.
UNTOLD = frozenset(
    {
        "",
        "*/*",
        "application/download",
        "application/force-download",
        "application/octet-stream",
        "application/unknown",
        "application/x-download",
        "application/x-octet-stream",
        "application/x-pdf",
        "binary/octet-stream",
        "unknown/unknown",
    }
)
MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}")
CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([a-z0-9_.:+-]{1,40})", re.IGNORECASE)
VALIDATOR = re.compile(r"[\x21-\x7e\x80-\xff]([\x20-\x7e\x80-\xff]{0,510}[\x21-\x7e\x80-\xff])?")

#: How much of a body is examined to tell its type.
SNIFFED = 1024
BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
PDF_MARK = b"%PDF-"
#: The first entry of the ZIP that an EPUB is, stored and without an extra field, as the standard has it.
EPUB_MARK = re.compile(rb"PK\x03\x04.{26}mimetypeapplication/epub\+zip", re.DOTALL)
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
LOOKS_HTML = re.compile(
    r"\s*<(!doctype\s+html|!--|\?xml|html|head|body|title|meta|link|script|style|base"
    r"|(h1|div|p|a|b|br|table|font|iframe|article|main|section|header|nav)[\s>])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ResponseHead:
    """The status and headers of an answer."""

    status: int
    headers: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, status: int, headers: Iterable[tuple[bytes, bytes]]) -> ResponseHead:
        found: dict[str, tuple[str, ...]] = {}
        for raw_name, raw_value in headers:
            name = raw_name.decode("latin-1").lower()
            found[name] = (*found.get(name, ()), raw_value.decode("latin-1").strip(" \t"))
        return cls(status, found)

    def value(self, name: str) -> str:
        """Return the last header of this name, as browsers do, or an empty string."""
        return self.headers.get(name, ("",))[-1]

    def location(self) -> str:
        """Return where a redirect points. Raises FetchBadAnswer unless it is exactly one place."""
        places = set(self.headers.get("location", ()))
        if len(places) != 1:
            raise FetchBadAnswer
        raw = places.pop().encode("latin-1")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def media_type(self) -> str | None:
        """Return an accepted type, or None if the bytes must tell. Raises FetchWrongType."""
        return _accepted(self.value("content-type"))

    def content_type(self) -> str | None:
        """Return the complete header, or None if there is none."""
        return self.value("content-type") or None

    def charset(self) -> str | None:
        found = CHARSET.search(self.value("content-type"))
        return found[1].lower() if found else None

    def encoding(self) -> str:
        return ", ".join(self.headers.get("content-encoding", ()))

    def validator(self, name: str) -> str | None:
        """Return an ETag or a date to send back unchanged, or None if it can't be sent."""
        return sendable(self.value(name))

    def require_size(self, most_bytes: int) -> None:
        """Raises FetchTooLarge if the header already says so."""
        said = self.value("content-length")
        if said.isdecimal() and int(said) > most_bytes:
            raise FetchTooLarge

    def retry_after(self, now: datetime) -> float | None:
        """Return the seconds that the site asks to wait."""
        return parse_retry_after(self.value("retry-after"), now)


def sendable(validator: str | None) -> str | None:
    """Return the validator if it may be sent in a header, else None."""
    return validator if validator and VALIDATOR.fullmatch(validator) else None


def require_success(head: ResponseHead, now: datetime) -> None:
    """Raises FetchFailed or a kind of it if the status is not a success."""
    if 200 <= head.status < 300 and head.status != PARTIAL:
        return
    error = _refusal(head.status)
    if head.status in {429, 503}:
        error.retry_after = head.retry_after(now)
    raise error


def _refusal(status: int) -> FetchFailed:
    if status == 429:
        return FetchRateLimited()
    if status in PASSING:
        return FetchFailed(f"The site has a temporary problem ({status}). Retry later.")
    if status in GONE:
        return FetchHttp4xx(f"Page not found ({status}). Check the address, or open the original.")
    if 400 <= status < 500:
        return FetchHttp4xx(f"The site refused to show this page ({status}). Open the original.")
    if 500 <= status < 600:
        return FetchHttp5xx(f"The site is down ({status}). Retry later.")
    return FetchBadAnswer()


def page_type(header: str | None, body: bytes) -> str:
    """Return the type of an accepted page, by its Content-Type header and its bytes."""
    return body_type(_accepted(header or ""), body[:SNIFFED])


def _accepted(header: str) -> str | None:
    said = header.partition(";")[0].strip().lower()
    if said in ACCEPTED:
        return said
    if said in UNTOLD or not MEDIA_TYPE.fullmatch(said):
        return None
    if said.startswith(("audio/", "video/")):
        raise FetchWrongType(
            f"This address leads to a recording ({said}), not to a page. Add it with `nexus add --kind video`."
        )
    raise FetchWrongType(
        f"This address leads to {said}, not to a page, a PDF or an EPUB. Add the address of an article."
    )


def body_type(said: str | None, start: bytes) -> str:
    """Return the type of a body. A PDF or EPUB is one, whatever the site calls it. Raises FetchWrongType."""
    if start.startswith(PDF_MARK):
        return PDF
    if EPUB_MARK.match(start):
        return EPUB
    return said or _sniff(start[:SNIFFED])


def _sniff(start: bytes) -> str:
    if PDF_MARK in start:
        return PDF
    wide = start.startswith(UTF16_MARKS)
    if not start or (not wide and BINARY.search(start)):
        raise FetchWrongType
    text = start.decode("utf-16" if wide else "latin-1", "replace")
    return HTML if LOOKS_HTML.match(text.removeprefix(UTF8_MARK.decode("latin-1"))) else TEXT
