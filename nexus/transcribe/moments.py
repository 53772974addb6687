"""Moments in a recording as files write them, in milliseconds from the beginning."""

from __future__ import annotations

import math
import re

from nexus.transcribe import UNTIMED, Cue
from nexus.transcribe.turns import LATEST_MS

#: `1:02:03.5`, `02:03,500`, `-00:01.000`: as it should be, and as it is found.
CLOCK = r"-?(?:\d{1,9}[ \t]*:[ \t]*)?\d{1,9}[ \t]*:[ \t]*\d{1,9}(?:[ \t]*[.,][ \t]*\d{1,9})?"
_CLOCK = re.compile(CLOCK, re.ASCII)
_NUMBER = re.compile(r"\s*(-?\d{1,12}(?:\.\d{1,12})?)\s*(ms|s|)\s*", re.ASCII)
#: How long each character may take if the end of a cue is not known. Nobody speaks more slowly.
SLOWEST_MS = 200
SHORTEST_MS = 2000


def clock_ms(text: str) -> int | None:
    """Return the moment that a clock shows somewhere in a text; None if there is none in it."""
    found = _CLOCK.search(text)
    if found is None:
        return None
    *minutes, seconds = "".join(found[0].replace(",", ".").split()).lstrip("-").split(":")
    whole = 0
    for part in minutes:
        whole = whole * 60 + int(part)
    moment = whole * 60_000 + round(float(seconds) * 1000)
    return 0 if found[0].startswith("-") else min(moment, LATEST_MS)


def moment_ms(value: object, unit: int = 1000) -> int | None:
    """Return the moment that a text stands for, or a number: of seconds if `unit` is 1000. None if it is no moment."""
    if isinstance(value, str):
        number = _NUMBER.fullmatch(value[:40])
        if number is None:
            return clock_ms(value[:40])
        value, unit = float(number[1]), {"ms": 1, "s": 1000}.get(number[2], unit)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(min(max(value * unit, 0), LATEST_MS))


def with_ends(cues: list[Cue]) -> list[Cue]:
    """Give cues whose end is not known the moment when the next one begins, or when their words must be over."""
    done, following = list[Cue](), LATEST_MS
    for cue in reversed(cues):
        if cue.starts_ms != UNTIMED and cue.ends_ms == UNTIMED:
            longest = cue.starts_ms + SHORTEST_MS + SLOWEST_MS * len(cue.text)
            later = following if following > cue.starts_ms else LATEST_MS
            done.append(cue._replace(ends_ms=min(longest, later)))
        else:
            done.append(cue)
        following = cue.starts_ms if cue.starts_ms != UNTIMED else following
    return done[::-1]
