"""Queues that take the same work to its end: each knows how to be filled and how to work until it is ended.

The work of all: a row that is pending, then extracting, then done, every step in a transaction of its own. Nexus
also claims under a fence, writes two rows of history and stores a fragment; its peers only set the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Ground:
    """What one contender is given for one round: a database of its own, and a Redis."""

    database: str
    redis: str


class Contender(Protocol):
    """A module of this folder."""

    def fill(self, ground: Ground, count: int) -> None:
        """Everything pending and announced; nobody works yet."""

    def work(self, ground: Ground) -> None:
        """In a process of its own, until that is ended."""

    def progress(self, ground: Ground) -> tuple[int, float]:
        """How many are done, and the seconds from the first claim to the last end."""
