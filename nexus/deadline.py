"""The moment by which work with another machine must end."""

from __future__ import annotations

from collections.abc import Callable


class Deadline:
    """Work ends by then, whatever the other side does."""

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
