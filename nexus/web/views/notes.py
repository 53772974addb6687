"""The notes of an episode or a video: html that a feed or a site wrote, shown without its pictures."""

from __future__ import annotations

import re
from html import unescape
from typing import NamedTuple

from markupsafe import Markup

from nexus.extract.safe_html import is_safe
from nexus.media.recordings.facts import RecordingRow

#: Notes of this many characters are shown whole.
SHORT = 400
#: How many elements around a picture go with it.
DEEPEST = 3
_IMAGE = re.compile(r"<img\b[^<>]*>")
_ALT = re.compile(r' alt="([^"]*)"')
_TAG = re.compile(r"<[^<>]*>")
#: The text below has such ids and links of its own.
_WITHIN = re.compile(r' (?:id="[^"]*"|href="#[^"]*")')
_NOTHING_LEFT = re.compile(r"<(a|p|figure|figcaption|li)\b[^<>]*>\s*</\1>")


class ShownNotes(NamedTuple):
    html: Markup
    is_long: bool


def show_notes(known: RecordingRow | None) -> ShownNotes | None:
    """Return the notes for a page; None if there are none, or if what is kept of them is not safe to show."""
    html = (known and known.notes) or ""
    if not is_safe(html):
        return None
    html = _TAG.sub(lambda tag: _WITHIN.sub("", tag[0]), _IMAGE.sub(_described, html))
    for _ in range(DEEPEST):
        html = _NOTHING_LEFT.sub("", html)
    words = unescape(_TAG.sub("", html)).strip()
    if not words:
        return None
    return ShownNotes(Markup(html), len(words) > SHORT)  # noqa: S704 - checked above


def _described(image: re.Match[str]) -> str:
    """The words that stand for a picture: loading it would tell its site who reads this."""
    found = _ALT.search(image[0])
    return found[1] if found else ""
