"""How long to wait for other machines: deadlines, and what a Retry-After header asks for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: The longest wait that a Retry-After header may ask for, in seconds.
LONGEST_WAIT = 3600.0


class Deadline:
    """The moment by which work must end, whatever the other side does."""

    def __init__(self, seconds: float, clock: Callable[[], float], expired: type[Exception]) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._expired = expired

    def left(self) -> float:
        """Return the seconds left, for a socket to wait. Raises `expired` if there are none."""
        left = self._end - self._clock()
        if left <= 0:
            raise self._expired
        return left


def parse_retry_after(header: str, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, or None if it can't be read."""
    if header.isascii() and header.isdigit():
        return min(float(header), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((aware - now).total_seconds(), 0.0), LONGEST_WAIT)
