"""Values in words, for templates: times, sizes, addresses."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

_SIZES = ("kB", "MB", "GB")
_STEPS = (("day", 86400), ("hour", 3600), ("minute", 60))
_CODE = re.compile(r"`([^`]+)`")


def ago(moment: datetime, now: datetime) -> str:
    """How long ago, up to a week; then the date. static/app.js says the same as time passes."""
    seconds = (now - moment).total_seconds()
    if seconds < 60:
        return "just now"
    if seconds >= 7 * 86400:
        return f"{moment.astimezone(UTC):%-d %b %Y}"
    name, length = next(step for step in _STEPS if seconds >= step[1])
    count = int(seconds // length)
    return f"{count} {name}{'' if count == 1 else 's'} ago"


def exactly(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%-d %b %Y, %H:%M:%S} UTC"


def time_of_day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%H:%M} UTC"


def size(count: int) -> str:
    """The size of a file, in two digits if it is small. static/uploads.js says the same before an upload."""
    if count < 1000:
        return f"{count} {'byte' if count == 1 else 'bytes'}"
    amount, unit = count / 1000, 0
    while amount >= 999.5 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1000, unit + 1
    digits = 1 if amount < 9.95 else 0
    return f"{amount:.{digits}f} {_SIZES[unit]}"


def reading_time(minutes: int) -> str:
    return f"{minutes} min read" if minutes < 90 else f"{round(minutes / 60)} hours to read"


def prose(text: str) -> Markup:
    """Escape a text, with `names` in backticks set as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped first


def clock_time(seconds: float) -> str:
    """A place in a recording, or its length: 4:05, 1:02:09. static/player.js says the same."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def listening_time(seconds: float) -> str:
    """How long a recording takes, in words."""
    minutes = max(1, round(seconds / 60))
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours and rest else f"{hours} h" if hours else f"{rest} min"


def path(text: str) -> Markup:
    """Escape a path, with a chance for the browser to break it after each slash."""
    return Markup("/<wbr>").join(escape(part) for part in text.split("/"))
