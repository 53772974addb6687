"""A clock that tests set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SetClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **by: float) -> None:
        self.time += timedelta(**by)
