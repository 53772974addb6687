"""Limits the requests to a site: a few at once, a pause between them, and none while the site asks to wait.

What is known about sites is kept in a book. All processes of a Nexus share one, so that the limits hold for all of them
together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import uuid4

from nexus import logging
from nexus.errors import FetchBusy, FetchFailed
from nexus.fetch.guard import Target
from nexus.fetch.limits import FetchDeadline, System

log = logging.get_logger(__name__)
T = TypeVar("T")

CLOSED = "Nexus is stopping. Retry later."
#: How often a thread looks whether another process has given up a place.
LOOK_SECONDS = 0.1
#: A place is kept this much longer than its request may take.
SLACK_SECONDS = 2.0
#: For how long a block that is over makes the next one longer, in seconds.
BLOCK_REMEMBERED = 24 * 3600.0


@dataclass
class SiteState:
    """What is known about a site. Times are in seconds, by the clock of its book."""

    #: When each running request ends at the latest. The places of a process that died get free then.
    places: dict[str, float] = field(default_factory=dict)
    #: When the next request may start.
    next_start: float = 0.0
    #: For each port, until when it asks to be left alone.
    rests: dict[str, float] = field(default_factory=dict)
    #: Of a provider, how many times in a row it has blocked this address, and until when nobody asks it.
    blocks: int = 0
    blocked_until: float = 0.0

    def forget(self, now: float) -> None:
        """Drop what is over."""
        self.places = {name: until for name, until in self.places.items() if until > now}
        self.rests = {port: until for port, until in self.rests.items() if until > now}
        if self.blocked_until + BLOCK_REMEMBERED <= now:
            self.blocks = 0

    def is_idle(self, now: float) -> bool:
        return not (self.places or self.rests or self.blocks) and self.next_start <= now


class SiteBook(Protocol):
    def change(self, site: str, act: Callable[[SiteState, float], T]) -> T:
        """Call `act` with what is known about a site and the time, and keep what it changes.

        Nobody else's change gets lost: `act` is called again if another one came first. If it raises, nothing changes.
        """
        ...


class MemoryBook:
    """Shared by the threads of one process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sites: dict[str, SiteState] = {}

    def change(self, site: str, act: Callable[[SiteState, float], T]) -> T:
        with self._lock:
            now = self._clock()
            for state in self._sites.values():
                state.forget(now)
            self._sites = {name: state for name, state in self._sites.items() if not state.is_idle(now)}
            return act(self._sites.setdefault(site, SiteState()), now)

    def __len__(self) -> int:
        return len(self._sites)


class SitePace:
    """Shared by all threads of a process. A site is a host on any port, but a request to wait is for one port."""

    def __init__(self, at_once: int, delay: float, system: System, book: SiteBook | None = None) -> None:
        self._at_once = at_once
        self._delay = delay
        self._system = system
        self.book = MemoryBook(system.clock) if book is None else book
        #: Wakes threads that wait for a place when another thread of this process gives one up.
        self._left = threading.Condition()
        self._closed = False
        #: How many threads wait for a place.
        self.waiting = 0

    @contextmanager
    def place(self, target: Target, deadline: FetchDeadline) -> Iterator[None]:
        """Take one of a site's places. Raises FetchBusy if none gets free in time, or while the site asks to wait."""
        name = uuid4().hex
        with deadline.waiting():
            pause = self._enter(target, name, deadline)
        try:
            with deadline.waiting():
                self._system.sleep(pause)
            yield
        finally:
            self._leave(target.site, name)

    def rest(self, target: Target, seconds: float) -> None:
        """Send no requests to this host and port for a while, or for longer if an earlier answer asked for that."""

        def act(state: SiteState, now: float) -> None:
            port = str(target.port)
            state.rests[port] = max(state.rests.get(port, 0.0), now + seconds)

        self._change(target.site, act)

    def close(self) -> None:
        with self._left:
            self._closed = True
            self._left.notify_all()

    def _enter(self, target: Target, name: str, deadline: FetchDeadline) -> float:
        """Return how long to pause before the request."""

        def act(state: SiteState, now: float) -> float | None:
            """Return None if every place is taken."""
            rest = state.rests.get(str(target.port), now) - now
            pause = max(state.next_start - now, 0.0)
            if rest > 0:
                raise _busy(f"{target.site} asked Nexus to wait. The page is fetched after that.", rest)
            if len(state.places) >= self._at_once:
                return None
            if pause > deadline.patience():
                raise _busy(None, pause)
            state.next_start = now + pause + self._delay
            state.places[name] = now + pause + deadline.left() + SLACK_SECONDS
            return pause

        while True:
            if self._closed:
                raise FetchFailed(CLOSED)
            pause = self._change(target.site, act)
            if pause is not None:
                return pause
            self._wait(deadline)

    def _wait(self, deadline: FetchDeadline) -> None:
        """Wait until a place may have got free. Raises FetchBusy when the patience of the fetch is over."""
        patience = deadline.patience()
        if patience <= 0:
            raise FetchBusy
        with self._left:
            self.waiting += 1
            try:
                if not self._closed:
                    self._left.wait(min(LOOK_SECONDS, patience))
            finally:
                self.waiting -= 1

    def _leave(self, site: str, name: str) -> None:
        try:
            self.book.change(site, lambda state, _: state.places.pop(name, None))
        except Exception as error:  # the place becomes free in time
            log.warning("site_place_left_behind", reason=type(error).__name__)
        with self._left:
            self._left.notify_all()

    def _change(self, site: str, act: Callable[[SiteState, float], T]) -> T:
        """Raises FetchBusy if the book can't be read: without it, nobody knows how many requests are running."""
        try:
            return self.book.change(site, act)
        except FetchFailed:
            raise
        except Exception as error:
            log.warning("site_book_failed", reason=type(error).__name__)
            raise FetchBusy from error


def _busy(message: str | None, seconds: float) -> FetchBusy:
    error = FetchBusy(message)
    error.retry_after = seconds
    return error
