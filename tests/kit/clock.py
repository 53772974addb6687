"""Clocks that tests set."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


class SetClock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **by: float) -> None:
        self.time += timedelta(**by)


@dataclass
class Ticks:
    """The same in seconds, for a gate."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds
