"""Who is read next: users take turns for the parser processes, so that the slow documents of one don't hold up the
others."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

#: None stands for everything that is read for nobody in particular.
Reader = UUID | None


class ReadingTurns:
    """So many places, shared by threads. Users who wait are served in turn, their documents in the order they came."""

    def __init__(self, places: int) -> None:
        self.free = places
        self._changed = threading.Condition()
        #: In the order of their turns.
        self._waiting: dict[Reader, deque[object]] = {}

    @contextmanager
    def turn(self, user: Reader, look: Callable[[], None], look_seconds: float) -> Iterator[None]:
        """Wait for the user's turn. Meanwhile `look` is called again and again; it raises to give up."""
        self._wait(user, look, look_seconds)
        try:
            yield
        finally:
            with self._changed:
                self.free += 1
                self._changed.notify_all()

    def _wait(self, user: Reader, look: Callable[[], None], look_seconds: float) -> None:
        ticket = object()
        with self._changed:
            self._waiting.setdefault(user, deque()).append(ticket)
            try:
                while not (self.free and self._is_next(user, ticket)):
                    look()
                    self._changed.wait(look_seconds)
            except BaseException:
                self._leave(user, ticket)
                raise
            self._leave(user, ticket)
            self.free -= 1

    def _is_next(self, user: Reader, ticket: object) -> bool:
        return next(iter(self._waiting)) == user and self._waiting[user][0] is ticket

    def _leave(self, user: Reader, ticket: object) -> None:
        """Give up a place in line. Whoever had a turn is last in line."""
        line = self._waiting.pop(user)
        line.remove(ticket)
        if line:
            self._waiting[user] = line
        self._changed.notify_all()
