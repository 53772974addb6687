"""How many requests a user may make of one server, so that others get answers too."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from math import ceil
from uuid import UUID

from nexus.errors import RateLimited
from nexus.settings import Settings

MINUTE = 60.0
#: Beyond this many users, those who have asked for nothing lately are forgotten.
REMEMBERED = 10_000


class Shares:
    """Counts requests by user. The local owner, whose machine it is, is never refused."""

    def __init__(
        self,
        per_minute: int,
        at_once: int,
        owner: UUID | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pause = MINUTE / per_minute
        self._per_minute = per_minute
        self._at_once = at_once
        self._owner = owner
        self._clock = clock
        self._open: Counter[UUID] = Counter()
        #: When each user's requests would all have been made if they came at an even pace.
        self._paced_until: dict[UUID, float] = {}

    @classmethod
    def of(cls, settings: Settings) -> Shares:
        return cls(settings.requests_per_minute, settings.requests_at_once, settings.local_owner)

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
