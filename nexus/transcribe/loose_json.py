"""Picks values out of JSON that strangers wrote: whatever is not as expected counts as missing."""

from __future__ import annotations

import json
from typing import Any

from nexus.errors import ExtractionFailed


def parse_json(data: bytes) -> Any:
    """Raises ExtractionFailed."""
    try:
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise ExtractionFailed from error


def dig(found: Any, *path: str | int) -> Any:
    """Return what lies at a path of names and places; None if there is nothing."""
    for step in path:
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, dict) else None
        else:
            found = found[step] if isinstance(found, list) and -len(found) <= step < len(found) else None
    return found


def text_at(found: Any, *path: str | int) -> str | None:
    value = dig(found, *path)
    return value.strip() or None if isinstance(value, str) else None


def number_at(found: Any, *path: str | int) -> float | None:
    """Return a number, even if it is written as a text."""
    value = dig(found, *path)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def list_at(found: Any, *path: str | int) -> list[Any]:
    """Return a list; empty if there is none."""
    value = dig(found, *path)
    return value if isinstance(value, list) else []


def largest_picture(pictures: list[Any], address: str = "url") -> str | None:
    """Return the address of the widest of several pictures."""
    widest = max(pictures, key=lambda one: number_at(one, "width") or 0.0, default=None)
    return text_at(widest, address)
