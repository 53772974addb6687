"""Who is told that there is work. The database is the queue; these carry wake-ups only, and may lose them."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID


class Queue(Protocol):
    @property
    def workers_look(self) -> bool:
        """Whether the workers look for due work themselves, so that nobody needs to remind them."""
        ...

    def announce(self, media_id: UUID, request_id: str | None) -> bool:
        """Tell a worker, after the commit. False where there is nobody to tell."""
        ...

    def idle(self) -> bool:
        """Whether every earlier announcement has been taken up, so that what is still due was forgotten."""
        ...
