"""Where in a text something is said, and when."""

from __future__ import annotations

import json
from bisect import bisect_right

from nexus.extract import TimeSpan


def read_spans(kept: str | None) -> tuple[TimeSpan, ...]:
    """Return the times of a fragment as the database keeps them; none for a fragment that has none."""
    return () if kept is None else tuple(TimeSpan(*one) for one in json.loads(kept))


def spoken_at(spans: tuple[TimeSpan, ...], place: int) -> int | None:
    """Return when the sentence that holds a place begins, or else the one before it, in milliseconds.

    None for a text without times.
    """
    if not spans:
        return None
    return spans[max(bisect_right(spans, place, key=lambda one: one.start) - 1, 0)].starts_ms
