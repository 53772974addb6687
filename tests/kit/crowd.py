"""Threads that race each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
THREADS = 32


class Crowd:
    """Threads that all begin at the same moment."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size)

    def rush(self, work: Callable[[int], T]) -> list[T]:
        barrier = threading.Barrier(self.size)

        def one(place: int) -> T:
            barrier.wait(60)
            return work(place)

        return [done.result(120) for done in [self._pool.submit(one, n) for n in range(self.size)]]

    def close(self) -> None:
        self._pool.shutdown()
