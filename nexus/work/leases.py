"""Signs of life: one thread renews the leases of everything this process works on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from nexus import logging
from nexus.db.session import Session, Sessions

log = logging.get(__name__)

#: A media or a job, and the attempt that this process was given on it.
Hold = tuple[UUID, int]
#: Writes a sign of life for each of these; those that were taken over stay as they are.
Renew = Callable[[Session, Iterable[Hold], timedelta], None]


class Leases:
    """Holds leases from the claim on, but not for ever: work that hangs loses its lease, and is taken from it.

    The thread starts with the first lease and ends with the process.
    """

    def __init__(self, sessions: Sessions, length: timedelta, longest: timedelta, renew: Renew) -> None:
        self._renew_all = renew
        self.length = length
        self.longest = longest
        self._sessions = sessions
        self._held: dict[Hold, float] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, hold: Hold) -> Iterator[None]:
        """Renewed while inside."""
        self.take([hold])
        try:
            yield
        finally:
            self.let_go(hold)

    def take(self, holds: Iterable[Hold]) -> None:
        """Renewed from now on, for as long as the work on one may take, until each is let go."""
        until = time.monotonic() + self.longest.total_seconds()
        with self._lock:
            self._held |= dict.fromkeys(holds, until)
            self._start()

    def let_go(self, *holds: Hold) -> None:
        with self._lock:
            for hold in holds:
                self._held.pop(hold, None)

    def held(self) -> list[Hold]:
        """What this process holds now, by id: the order in which rows are locked everywhere."""
        with self._lock:
            return sorted(self._held)

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew_for_ever, name="nexus-leases", daemon=True)
            self._thread.start()

    def _renew_for_ever(self) -> None:
        while not self._closed.wait(self.length.total_seconds() / 3):
            now = time.monotonic()
            with self._lock:
                self._held = {hold: until for hold, until in self._held.items() if until > now}
            if held := self.held():
                self._renew(held)

    def _renew(self, held: list[Hold]) -> None:
        """A database that is away for a moment must not end the thread: the next round may still be in time."""
        try:
            with self._sessions.begin() as session:
                self._renew_all(session, held, self.length)
        except Exception as error:
            log.warning("lease_renewal_failed", held=len(held), reason=type(error).__name__)
