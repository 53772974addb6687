"""Who is told that there is work. The database is the queue; these carry wake-ups only, and may lose them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from uuid import UUID

from nexus import logging

log = logging.get(__name__)


class Away(Exception):
    """The broker can't be reached; it may be in a moment."""


class Queue(ABC):
    """A backend says how a worker is told; everybody else calls `announce`."""

    #: Whether the workers look for due work themselves, so that nobody needs to remind them.
    workers_look: bool
    #: Whether processes of their own do the work, not this one.
    works_elsewhere = False

    def __init__(self) -> None:
        self._count = threading.Lock()
        #: How many announcements have failed in this process.
        self.failures = 0

    def announce(self, media_id: UUID, request_id: str | None) -> bool:
        """Tell a worker, after the commit. False if nobody was told.

        Never raises: the work is committed, so its request must not fail. The sweep announces it again.
        """
        try:
            return self.tell(media_id, request_id)
        except Exception as error:
            with self._count:
                self.failures += 1
            log.warning("announce_failed", media_id=str(media_id), reason=type(error).__name__)
            return False

    def attach(self, app: object) -> None:  # noqa: B027 most queues run nothing of their own
        """What the tasks of this queue work with, if they run in this process."""

    def reach(self) -> None:  # noqa: B027 most queues have nobody to reach
        """Raises Away if the broker can't be reached. Queues without a broker do nothing."""

    @abstractmethod
    def tell(self, media_id: UUID, request_id: str | None) -> bool:
        """What `announce` tries. May raise anything."""

    @abstractmethod
    def idle(self) -> bool:
        """Whether every earlier announcement has been taken up, so that what is still due was forgotten."""
