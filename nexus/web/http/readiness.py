"""What a server that is already listening still waits for."""

from __future__ import annotations

from nexus.errors import NotReady

STARTING = "Nexus is starting. Try again in a moment."


class Readiness:
    """Ready from the start, unless it is closed and then opened step by step. One thread writes it, many read it."""

    def __init__(self) -> None:
        #: Whether calls that need the database are served.
        self.is_open = True
        #: Why `/readyz` says no, in a sentence.
        self.reason: str | None = None

    def close(self) -> None:
        self.is_open, self.reason = False, STARTING

    def require_open(self) -> None:
        if not self.is_open:
            raise NotReady(self.reason)
