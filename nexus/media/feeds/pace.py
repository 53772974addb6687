"""How long until a feed is asked again: its own pace, and how often it brings something."""

from __future__ import annotations

import random
from datetime import timedelta

SHORTEST = 15 * 60
LONGEST = 24 * 60 * 60
#: Before anything is known about a feed.
FIRST = 60 * 60
#: After a poll that brought something, the next one comes sooner; after one that did not, later.
SOONER, LATER = 0.5, 1.25
#: A poll comes up to so much earlier or later, so that those of many feeds spread out.
JITTER = 0.1


def next_interval(present: int, *, brought: bool, asked: int | None) -> int:
    """Return the seconds until the next poll, after one that succeeded; a feed may ask for longer, up to a day."""
    wanted = int(present * (SOONER if brought else LATER))
    return min(max(wanted, SHORTEST, asked or 0), LONGEST)


def wait_after_failure(interval: int, failures: int, asked: float | None) -> timedelta:
    """Return how long to wait after so many failures in a row: twice as long each time, up to a day."""
    backed_off = min(max(interval, SHORTEST) * 2 ** min(failures - 1, 10), LONGEST)
    return with_jitter(max(backed_off, min(asked or 0.0, LONGEST)))


def with_jitter(seconds: float) -> timedelta:
    return timedelta(seconds=seconds * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311
