"""The small parts of feeds: texts, addresses, numbers and times, within limits."""

from __future__ import annotations

import math
import re
from html import escape
from typing import Any

from nexus.extract.markup import absolute_url, clean_markup

LONGEST_TITLE = 500
LONGEST_NAME = 200
LONGEST_SUMMARY = 400
LONGEST_GUID = 1000
LONGEST_URL = 2048
#: A longer text is left to its page.
LONGEST_HTML = 400_000
LONGEST_SECONDS = 10_000_000
_CLOCK = re.compile(r"(?:(\d{1,4}):)?(\d{1,6}):(\d{1,2}(?:\.\d{1,6})?)")
_LINE_BREAKS = re.compile(r"\n\s*\n")


def one_line(text: Any, most: int = LONGEST_NAME) -> str | None:
    """Return plain text on one line; None if there is none."""
    if not isinstance(text, str):
        return None
    return shortened(" ".join(text.split()), most) or None


def shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:.") + "…"


def line_of_html(html: Any, most: int) -> str | None:
    """Return what html says on one line."""
    if not isinstance(html, str) or ("<" not in html and "&" not in html):
        return one_line(html, most)
    fragment, _ = clean_markup(html[: 20 * most], None, 0)
    return one_line(fragment.text, most)


def clean_text(html: str, base_url: str | None, *, is_plain: bool = False) -> tuple[str | None, str | None]:
    """Return clean html and its characters; nothing if there is no text or too much of it."""
    if not html.strip() or len(html) > LONGEST_HTML:
        return None, None
    if is_plain:
        html = "".join(f"<p>{escape(part)}</p>" for part in _LINE_BREAKS.split(html) if part.strip())
    fragment, _ = clean_markup(html, base_url, 0)
    return (fragment.html, fragment.text) if fragment.text.strip() else (None, None)


def web_address(given: Any, base_url: str | None = None) -> str | None:
    """Return a complete http address; None for anything else, and for one that is too long."""
    if not isinstance(given, str) or not given.strip():
        return None
    found = absolute_url(given.strip(), base_url)
    return found if found is not None and len(found) <= LONGEST_URL else None


def whole_number(given: Any, most: int) -> int | None:
    """Return a number from 0 on that is not too large."""
    if isinstance(given, bool) or not isinstance(given, int | str):
        return None
    text = str(given).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))):
        return None
    return int(text) if int(text) <= most else None


def duration(given: Any) -> float | None:
    """Return seconds, from a number or from 1:02:03."""
    text = str(given).strip() if isinstance(given, int | float | str) else ""
    clock = _CLOCK.fullmatch(text)
    if clock:
        found = int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + float(clock[3])
    else:
        try:
            found = float(text) if len(text) < 20 else 0.0
        except ValueError:
            return None
    return found if math.isfinite(found) and 0 < found <= LONGEST_SECONDS else None


def start_time(given: Any) -> float | None:
    """Return when a chapter begins, in seconds; 0 is a time."""
    if isinstance(given, str) and not given.strip(" 0:."):
        return 0.0
    return duration(given) if given != 0 else 0.0
