"""Who is told that there is work. The database is the queue: these carry only wake-ups, and may lose them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from nexus import logging

log = logging.get_logger(__name__)


class Work(NamedTuple):
    """One thing to do: the kind of work, as its handler is registered, and the id of what it is done to."""

    kind: str
    id: UUID


class Away(Exception):
    """The broker can't be reached; it may be in a moment."""


class Bell:
    """Wakes the worker threads of this process."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._rung = 0

    def ring(self) -> None:
        """Wake one thread."""
        with self._wake:
            self._rung += 1
            self._wake.notify()

    def ring_for_all(self) -> None:
        with self._wake:
            self._rung += 1
            self._wake.notify_all()

    def mark(self) -> int:
        """How often it has rung so far; read this before looking for work."""
        return self._rung

    def wait(self, mark: int, seconds: float | None) -> None:
        """Return when it has rung after the mark, or when the time, if any, is over."""
        with self._wake:
            self._wake.wait_for(lambda: self._rung != mark, seconds)


class Queue(ABC):
    """A backend says how a worker is told; everybody else calls `announce`."""

    #: Whether workers look for due work themselves, so that nobody needs to remind them.
    workers_look: bool
    #: Whether a server has worker threads of its own.
    works_in_server = False
    #: Whether other processes do the work.
    works_elsewhere = False
    #: Whether `listen` handles SIGTERM and SIGINT itself.
    handles_signals = False
    #: Who does the work, for the person who starts a server.
    workers: str

    def __init__(self) -> None:
        self._count = threading.Lock()
        #: How many announcements have failed in this process.
        self.failures = 0
        #: What the worker threads of this process wait for.
        self.bell = Bell()

    def announce(self, work: Work) -> bool:
        """Tell a worker, after the commit. False if nobody was told.

        Never raises: the work is committed, so its request must not fail. Workers find it on their own.
        """
        try:
            return self.tell(work)
        except Exception as error:
            with self._count:
                self.failures += 1
            log.warning("announce_failed", kind=work.kind, id=str(work.id), reason=type(error).__name__)
            return False

    def attach(self, app: object) -> None:  # noqa: B027 most queues run nothing of their own
        """Give the tasks of this queue what they work with, if they run in this process."""

    def reach(self) -> None:  # noqa: B027 most queues have nobody to reach
        """Raise Away if the broker can't be reached. Queues without a broker do nothing."""

    def listen(self, wait: Callable[[], object]) -> None:
        """Ring this process's bell for wake-ups from other processes, until the worker is told to stop.

        `wait` returns at that moment; a queue that handles signals itself need not call it.
        """
        wait()

    @abstractmethod
    def tell(self, work: Work) -> bool:
        """What `announce` tries. May raise anything."""
