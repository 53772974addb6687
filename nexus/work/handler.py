"""What a room registers for its kind of work: how to claim, what to do, how to settle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Generic, NamedTuple, TypeVar
from uuid import UUID

from nexus.db.session import Session
from nexus.errors import WorkError
from nexus.queue import Work
from nexus.work.backlog import Backlog
from nexus.work.retry import Again

#: The actors that history names.
WORKER, SWEEP = "worker", "sweep"

S = TypeVar("S")
R = TypeVar("R")


class Hold(NamedTuple):
    """Work, and the attempt that this process was given: the fence of everything it writes."""

    work: Work
    attempt: int


@dataclass(frozen=True)
class Claim(Generic[S]):
    """Work that this process holds, and the row that it is about."""

    hold: Hold
    tries: int
    subject: S
    #: The request that asked for it, for log lines.
    request_id: str | None


@dataclass(frozen=True)
class EndedAttempt(Generic[S, R]):
    """An attempt that has ended, and its result, which is not written yet."""

    claim: Claim[S]
    result: R


class Handler(ABC, Generic[S, R]):
    """One kind of work, on rows of type S, with results of type R."""

    kind: ClassVar[str]
    backlog: ClassVar[Backlog]
    #: What log lines call the work, and the id of its row.
    log_event: ClassVar[str]
    log_id: ClassVar[str]
    #: The part of a process's threads that may do this kind of work at once.
    share: ClassVar[float] = 1.0
    #: Whether one thread writes many results together, which is faster for short work.
    settles_together: ClassVar[bool] = False
    #: Whether there may be more to do on the same row when an attempt has ended well.
    repeats: ClassVar[bool] = False

    def lanes(self) -> Sequence[str | None]:
        """Return the lanes of the backlog that this process can work on."""
        return (None,)

    def is_long(self, lane: str | None) -> bool:  # noqa: ARG002
        """Whether work of this lane may take minutes, so that nothing else should wait behind it in a batch."""
        return False

    @abstractmethod
    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> Claim[S] | None:
        """Claim one piece of work; None if it is not due, or somebody holds it."""

    def log_missed(self, session: Session, row_id: UUID) -> None:
        """Log why work that somebody asked for was not claimed."""

    @abstractmethod
    def claim_due(
        self, session: Session, lane: str | None, user_id: UUID, most: int, lease: timedelta
    ) -> list[Claim[S]]:
        """Claim up to `most` pieces of one user's due work, the longest waiting first."""

    @abstractmethod
    def do(self, claim: Claim[S]) -> R:
        """Do the work. No transaction is open; a failure is a result, too."""

    @abstractmethod
    def settle(self, ended: Sequence[EndedAttempt[S, R]]) -> list[str]:
        """Write the results of attempts, in transactions of its own, and say how each ended.

        It may be called again with results that are already written, if the answer to a COMMIT was lost.
        """

    @abstractmethod
    def put_down(
        self, session: Session, hold: Hold, again: Again | None, error: WorkError | None, actor: str
    ) -> bool:
        """Let go of work without a result: due again, or failed if `again` is None. False if it was taken over."""

    def size_of(self, result: R) -> int:  # noqa: ARG002
        """About how many characters are written for a result."""
        return 0
