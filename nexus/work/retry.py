"""Whether failed work is tried again, and when: one decision for every kind of work."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta

from nexus.errors import WorkError
from nexus.retry_after import LONGEST_BLOCK, LONGEST_WAIT

MAX_TRIES = 3


@dataclass(frozen=True)
class Again:
    """The work is due again after a wait. A try is not counted if the work could not begin."""

    wait: timedelta = timedelta(0)
    counted: bool = True


def decide(error: WorkError, tries: int, seconds: float, most: int = MAX_TRIES) -> Again | None:
    """Decide what follows an error after so many tries; None if the work is given up."""
    if error.at_once:
        return Again(counted=False)
    if not error.counted:
        return Again(_wait(error, seconds, 1), counted=False)
    if error.transient and tries < most:
        return Again(_wait(error, seconds, tries))
    return None


def backoff(seconds: float, tries: int) -> timedelta:
    """Return a wait that doubles with each try, less up to half at random, so that a crowd does not return at once."""
    return timedelta(seconds=seconds * 2 ** max(tries - 1, 0) * random.uniform(0.5, 1.0))  # noqa: S311


def _wait(error: WorkError, seconds: float, tries: int) -> timedelta:
    """Return the backoff, or the wait that the other side asked for if that is longer."""
    asked = timedelta(seconds=error.retry_after or 0)
    longest = LONGEST_BLOCK if error.lasting else timedelta(seconds=LONGEST_WAIT)
    return max(backoff(seconds, tries), min(asked, longest))
