"""What a server that listens already still waits for."""

from __future__ import annotations

from nexus.errors import NotReady

STARTING = "Nexus is starting. Try again in a moment."


class Readiness:
    """Ready from the start, unless it is closed first and opened step by step. One writer, many readers."""

    def __init__(self) -> None:
        #: Whether calls that need the database are let in.
        self.is_open = True
        #: Why `/readyz` says no, in a sentence.
        self.reason: str | None = None

    def close(self) -> None:
        self.is_open, self.reason = False, STARTING

    def require_open(self) -> None:
        if not self.is_open:
            raise NotReady(self.reason)
