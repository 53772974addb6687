"""How much a user may ask of one server, so that others get answers too: requests, their bodies, and what streams."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from uuid import UUID

from nexus.errors import RateLimited
from nexus.settings import Settings

MINUTE = 60.0
#: Beyond this many users, those who have asked for nothing lately are forgotten.
REMEMBERED = 10_000
MIB = 1024 * 1024


class Shares:
    """Counts requests by user, and their bodies. The local owner, whose machine it is, is never refused."""

    def __init__(
        self,
        per_minute: int,
        at_once: int,
        owner: UUID | None = None,
        clock: Callable[[], float] = time.monotonic,
        held_bytes: int = 64 * MIB,
    ) -> None:
        self._pause = MINUTE / per_minute
        self._per_minute = per_minute
        self._at_once = at_once
        self._owner = owner
        self._clock = clock
        self._held_bytes = held_bytes
        self._open: Counter[UUID] = Counter()
        self._held: Counter[UUID] = Counter()
        #: When each user's requests would all have been made if they came at an even pace.
        self._paced_until: dict[UUID, float] = {}

    @classmethod
    def of(cls, settings: Settings) -> Shares:
        return cls(
            settings.requests_per_minute,
            settings.requests_at_once,
            settings.local_owner,
            held_bytes=settings.bodies_mib_per_user * MIB,
        )

    def enter(self, user: UUID) -> None:
        """Count a request that begins. Raises RateLimited, and then it is not counted."""
        if user != self._owner:
            self._require_place(user)
            self._require_pace(user)
        self._open[user] += 1

    def leave(self, user: UUID) -> None:
        """Count a request that has ended."""
        self._open[user] -= 1
        if not self._open[user]:
            del self._open[user]

    def hold(self, user: UUID, size: int) -> None:
        """Count bytes that are in memory until their request ends. Raises RateLimited, and then they don't count."""
        if user != self._owner and self._held[user] + size > self._held_bytes:
            raise RateLimited(
                f"You are sending more than {self._held_bytes // MIB} MiB at once. Send one after the other.",
                1,
            )
        self._held[user] += size

    def let_go(self, user: UUID, size: int) -> None:
        """Bytes that were counted are not held any more."""
        self._held[user] -= size
        if not self._held[user]:
            del self._held[user]

    def _require_place(self, user: UUID) -> None:
        if self._open[user] >= self._at_once:
            raise RateLimited(
                f"You have {self._at_once} requests open at once already. Wait for some of them to end.", 1
            )

    def _require_pace(self, user: UUID) -> None:
        now = self._clock()
        until = max(self._paced_until.get(user, 0.0), now) + self._pause
        if until > now + MINUTE:
            raise RateLimited(
                f"You have made {self._per_minute:,} requests within a minute. Wait a moment, then slow down.",
                ceil(until - now - MINUTE),
            )
        if len(self._paced_until) >= REMEMBERED:
            self._paced_until = {one: paced for one, paced in self._paced_until.items() if paced > now}
        self._paced_until[user] = until


class OpenStreams:
    """Counts the answers of one kind that go on and on, by user."""

    def __init__(self, per_user: int, refusal: RateLimited) -> None:
        self._per_user = per_user
        self._refusal = refusal
        self._lock = threading.Lock()
        self._open: Counter[UUID] = Counter()

    @contextmanager
    def place(self, user: UUID) -> Iterator[None]:
        """Count one until the block ends. Raises RateLimited for one too many."""
        with self._lock:
            if self._open[user] >= self._per_user:
                raise RateLimited(self._refusal.message, self._refusal.retry_after)
            self._open[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[user] -= 1
                if not self._open[user]:
                    del self._open[user]
