"""Days, as pages write them, as ISO says them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

OLDEST = 1991
_ISO = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)(?:[T\s]+(\d\d):?(\d\d)(?::?(\d\d))?(?:[.,]\d+)?\s*(Z|[+-]\d\d:?\d\d)?)?"
)
_PLACED = re.compile(
    r"/(20\d\d|199\d)/(\d\d?)/(\d\d?)(?:/|\b)|[/-](20\d\d)-(\d\d)-(\d\d)(?:\D|\Z)|/(20\d\d)(\d\d)(\d\d)(?:/|\D)"
)
_MONTHS = (
    "jan janv ene gen",
    "feb fév fev febr",
    "mar mär mrt märz mars",
    "apr avr abr",
    "may mai mag mayo maj",
    "jun juin giu",
    "jul juil lug",
    "aug août ago aoû",
    "sep sept set",
    "oct okt ott out",
    "nov",
    "dec dez déc dic",
)
_MONTH = {name: at for at, names in enumerate(_MONTHS, 1) for name in names.split()}
_WRITTEN = re.compile(
    r"\b(?:(\d{1,2})(?:st|nd|rd|th|er|º|\.)?\s+(?:de\s+)?([^\W\d_]{3,9})\.?,?\s+(?:de\s+)?(\d{4})"
    r"|([^\W\d_]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4}))\b"
)
_CHINESE = re.compile(r"(\d{4})\s*[年./-]\s*(\d{1,2})\s*[月./-]\s*(\d{1,2})")
_POINTS = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})\b")


def stamp(value: str) -> str | None:
    """An ISO date, with its time where there is one."""
    value = value.strip()[:80]
    found = _ISO.match(value)
    if found:
        return _from_iso(found)
    return in_text(value) or _epoch(value)


def _from_iso(found: re.Match[str]) -> str | None:
    year, month, day, hour, minute, second, zone = found.groups()
    when = _day(year, month, day)
    if when is None or hour is None:
        return when
    try:
        moment = datetime.fromisoformat(f"{when}T{hour}:{minute}:{second or '00'}{(zone or '')}")
    except ValueError:
        return when
    return moment.isoformat()


def _epoch(value: str) -> str | None:
    if not re.fullmatch(r"1\d{9}(?:\d{3})?", value):
        return None
    return datetime.fromtimestamp(int(value[:10]), UTC).date().isoformat()


def _day(year: str, month: str | int, day: str) -> str | None:
    """Nothing was written before the web, and nothing tomorrow."""
    try:
        when = date(int(year), int(month), int(day))
    except ValueError:
        return None
    latest = datetime.now(UTC).date() + timedelta(days=1)
    return when.isoformat() if when.year >= OLDEST and when <= latest else None


def in_address(url: str | None) -> str | None:
    found = _PLACED.search(url or "")
    parts = [part for part in found.groups() if part] if found else []
    return _day(parts[0], parts[1], parts[2]) if parts else None


def in_text(text: str) -> str | None:
    for pattern, order in ((_CHINESE, (1, 2, 3)), (_POINTS, (3, 2, 1))):
        found = pattern.search(text)
        if found:
            return _day(*(found[at] for at in order))
    found = _WRITTEN.search(text)
    if found is None:
        return None
    day, name, year = (found[1], found[2], found[3]) if found[1] else (found[5], found[4], found[6])
    month = next((_MONTH[name.lower()[:size]] for size in (5, 4, 3) if name.lower()[:size] in _MONTH), None)
    return _day(year, month, day) if month else None
