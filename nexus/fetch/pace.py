"""Limits the requests to a site: a few at once, a pause between them, and none while the site asks to wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nexus.errors import FetchBusy, FetchFailed, FetchRateLimited
from nexus.fetch.guard import Target
from nexus.fetch.limits import FetchDeadline, System

CLOSED = "Nexus is stopping. Retry later."


@dataclass
class _Site:
    busy: int = 0
    waiting: int = 0
    next_start: float = 0.0


class SitePace:
    """Shared by all threads of a process. A site is a host on any port, but a request to wait is for one port."""

    def __init__(self, at_once: int, delay: float, system: System) -> None:
        self._at_once = at_once
        self._delay = delay
        self._system = system
        self._changed = threading.Condition()
        self._sites: dict[str, _Site] = {}
        self._rests: dict[tuple[str, int], float] = {}
        self._closed = False

    @contextmanager
    def place(self, target: Target, deadline: FetchDeadline) -> Iterator[None]:
        """Take one of a site's places. Raises FetchBusy if none gets free in time, or FetchRateLimited while the site
        asks to wait."""
        with deadline.waiting():
            pause = self._enter(target, deadline)
        try:
            if pause > deadline.patience():
                raise FetchBusy
            with deadline.waiting():
                self._system.sleep(pause)
            yield
        finally:
            self._leave(target)

    def rest(self, target: Target, seconds: float) -> None:
        """Send no requests to this host and port for a while."""
        with self._changed:
            self._rests[target.site, target.port] = self._system.clock() + seconds

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enter(self, target: Target, deadline: FetchDeadline) -> float:
        """Return how long to pause before the request."""
        with self._changed:
            self._forget()
            site = self._sites.setdefault(target.site, _Site())
            self._wait(site, deadline)
            self._require_awake(target)
            site.busy += 1
            now = self._system.clock()
            start = max(now, site.next_start)
            site.next_start = start + self._delay
            return start - now

    def _wait(self, site: _Site, deadline: FetchDeadline) -> None:
        site.waiting += 1
        try:
            free = self._changed.wait_for(
                lambda: self._closed or site.busy < self._at_once, deadline.patience()
            )
        finally:
            site.waiting -= 1
        if not free:
            raise FetchBusy
        if self._closed:
            raise FetchFailed(CLOSED)

    def _require_awake(self, target: Target) -> None:
        left = self._rests.get((target.site, target.port), 0.0) - self._system.clock()
        if left > 0:
            error = FetchRateLimited()
            error.retry_after = left
            raise error

    def _leave(self, target: Target) -> None:
        with self._changed:
            self._sites[target.site].busy -= 1
            self._changed.notify_all()

    def _forget(self) -> None:
        """Drop sites that nobody uses or has to wait for."""
        now = self._system.clock()
        idle = [
            host
            for host, site in self._sites.items()
            if not site.busy and not site.waiting and site.next_start <= now
        ]
        for host in idle:
            del self._sites[host]
        for place in [place for place, until in self._rests.items() if until <= now]:
            del self._rests[place]
