"""Whether an attempt has been asked to stop. Looked at between any two pieces of work, and before the commit."""

from __future__ import annotations

import threading
from uuid import UUID


class Flags:
    """One per attempt, in memory. An attempt that is not known here counts as asked to stop: its work is over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[UUID, bool] = {}

    def lower(self, attempt_id: UUID) -> None:
        """Begin, or go on: nobody has asked yet."""
        with self._lock:
            self._asked[attempt_id] = False

    def raise_(self, attempt_id: UUID) -> None:
        """Raises KeyError for an attempt that is not known."""
        with self._lock:
            if attempt_id not in self._asked:
                raise KeyError(attempt_id)
            self._asked[attempt_id] = True

    def is_raised(self, attempt_id: UUID) -> bool:
        with self._lock:
            return self._asked.get(attempt_id, True)

    def forget(self, attempt_id: UUID) -> None:
        with self._lock:
            self._asked.pop(attempt_id, None)
