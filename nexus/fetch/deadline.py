"""How much time a fetch has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nexus.errors import FetchTimeout


class Deadline:
    """When a fetch ends, whatever the other side does. Waiting for a turn at a busy site has an account of its own."""

    def __init__(self, seconds: float, wait_seconds: float, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._patience = wait_seconds

    def left(self) -> float:
        """Seconds until the end, for a socket to wait. Raises FetchTimeout when there are none."""
        left = self._end - self._clock()
        if left <= 0:
            raise FetchTimeout
        return left

    def patience(self) -> float:
        """Seconds that may still be spent on waiting for a turn."""
        return max(self._patience, 0.0)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What passes in here is patience and not time of the fetch."""
        began = self._clock()
        try:
            yield
        finally:
            waited = self._clock() - began
            self._end += waited
            self._patience -= waited
