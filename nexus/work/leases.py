"""Leases: one thread renews those of everything that this process works on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from nexus import logging
from nexus.db.session import Sessions
from nexus.work.backlog import Backlog
from nexus.work.handler import Hold

log = logging.get_logger(__name__)


class Leases:
    """Renews leases from the claim on, but not forever: work that hangs loses its lease, and others take it over.

    The thread starts with the first lease and ends with the process.
    """

    def __init__(self, sessions: Sessions, length: timedelta, longest: timedelta) -> None:
        self.length = length
        self.longest = longest
        #: Where the leases of each kind of work are.
        self.backlogs: dict[str, Backlog] = {}
        self._sessions = sessions
        self._held: dict[Hold, float] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, hold: Hold) -> Iterator[None]:
        """Renew a lease while inside."""
        self.take([hold])
        try:
            yield
        finally:
            self.let_go(hold)

    def take(self, holds: Iterable[Hold]) -> None:
        """Renew leases from now on, for as long as the work may take, until each is let go."""
        until = time.monotonic() + self.longest.total_seconds()
        with self._lock:
            self._held |= dict.fromkeys(holds, until)
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew_forever, name="nexus-leases", daemon=True)
                self._thread.start()

    def let_go(self, *holds: Hold) -> None:
        with self._lock:
            for hold in holds:
                self._held.pop(hold, None)

    def holds(self, hold: Hold) -> bool:
        """Whether a lease is still renewed; work that took too long has lost it."""
        with self._lock:
            return hold in self._held

    def held(self) -> list[Hold]:
        """Return what this process holds, by kind and id: the order in which rows are locked everywhere."""
        with self._lock:
            return sorted(self._held)

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _renew_forever(self) -> None:
        while not self._closed.wait(self.length.total_seconds() / 3):
            now = time.monotonic()
            with self._lock:
                self._held = {hold: until for hold, until in self._held.items() if until > now}
            self.renew()

    def renew(self) -> None:
        """Renew all leases. A database that is away must not end the thread: the next round may still be in time."""
        held = self.held()
        for kind in {hold.work.kind for hold in held}:
            mine = [(hold.work.id, hold.attempt) for hold in held if hold.work.kind == kind]
            try:
                with self._sessions.begin() as session:
                    self.backlogs[kind].renew(session, mine, session.now + self.length)
            except Exception as error:
                log.warning("lease_renewal_failed", held=len(mine), reason=type(error).__name__)
