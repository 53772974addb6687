"""Signs of life: one thread renews the leases of everything this process works on."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from nexus import logging
from nexus.db.session import Row, Sessions
from nexus.ingest import media

log = logging.get(__name__)


class Leases:
    """Holds leases from the claim on. The thread starts with the first one and ends with the process."""

    def __init__(self, sessions: Sessions, length: timedelta) -> None:
        self.length = length
        self._sessions = sessions
        self._held: set[tuple[UUID, int]] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, claims: Iterable[Row]) -> Iterator[None]:
        """Renewed while inside. Each claim may be let go earlier."""
        held = {(row.id, row.processing_attempts) for row in claims}
        with self._lock:
            self._held |= held
            self._start()
        try:
            yield
        finally:
            with self._lock:
                self._held -= held

    def let_go(self, row: Row) -> None:
        with self._lock:
            self._held.discard((row.id, row.processing_attempts))

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
            with self._lock:
                held = sorted(self._held)
            if held:
                self._renew(held)

    def _renew(self, held: list[tuple[UUID, int]]) -> None:
        """A database that is away for a moment must not end the thread: the next round may still be in time."""
        try:
            with self._sessions.begin() as session:
                media.renew_leases(session, held, self.length)
        except Exception as error:
            log.warning("lease_renewal_failed", held=len(held), reason=type(error).__name__)
