"""What was looked up in the database a moment ago, so that not every request has to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

#: How long a browser that is signed out elsewhere, or a token that was revoked, still works in this process.
MEMORY_SECONDS = 3.0
MOST = 10_000


class Memory(Generic[T]):
    """Values by their keys. Threads may share it: each step is one operation on a dict."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._kept: dict[str, tuple[T, float]] = {}

    def recall(self, key: str) -> T | None:
        value, until = self._kept.get(key, (None, 0.0))
        return value if until > self.clock() else None

    def has_seen(self, key: str) -> bool:
        """Whether the key was good at some time, maybe long ago."""
        return key in self._kept

    def keep(self, key: str, value: T) -> None:
        if len(self._kept) >= MOST:
            self._kept.clear()
        self._kept[key] = value, self.clock() + MEMORY_SECONDS

    def forget(self, matches: Callable[[T], bool]) -> None:
        for key, (value, _) in list(self._kept.items()):
            if matches(value):
                self._kept.pop(key, None)
