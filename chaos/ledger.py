"""What was asked for and promised: each acknowledged operation records here what must be true in the end.

A promise is kept under what it is about, and a later operation on the same thing takes its place. An operation whose
answer never came may or may not have happened, also later: what it could undo is withdrawn.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(frozen=True)
class Held:
    """The user has this item: readable with its mark in the text, or failed with a reason. Its file is unchanged."""

    user: UUID
    media_id: str
    mark: str
    sha256: str | None = None


@dataclass(frozen=True)
class Gone:
    """The user deleted this item."""

    user: UUID
    media_id: str


@dataclass(frozen=True)
class Edition:
    """The text is of this edition or a later one, or the item says why the refresh failed."""

    user: UUID
    media_id: str
    name: str
    number: int


@dataclass(frozen=True)
class Shelved:
    """Whether this library of the user has the item."""

    user: UUID
    library_id: str
    media_id: str
    there: bool


@dataclass(frozen=True)
class Job:
    """The job exists with the text that was entered by hand, and has no more drafts than were asked for."""

    user: UUID
    job_id: str
    text: str | None = None
    drafts: int = 0


@dataclass(frozen=True)
class Story:
    """The story exists; its headline is that of this revision, or of a later one that was asked for."""

    user: UUID
    story_id: str
    revision: int
    headline: str
    asked_later: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Import:
    """The library of this name has all files or none. `there` says which, if Nexus has told."""

    user: UUID
    library: str
    marks: tuple[str, ...]
    there: bool | None = None


Promise = Held | Gone | Edition | Shelved | Job | Story | Import


@dataclass(frozen=True)
class Refusal:
    """An answer that nobody should get."""

    request: str
    status: int
    body: str


@dataclass
class Ledger:
    asked: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    refusals: list[Refusal] = field(default_factory=list)
    _promises: dict[Hashable, Promise] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, operation: str, status: int) -> None:
        """Status 0 means that no answer came."""
        with self._lock:
            self.asked[operation] += 1
            self.statuses[status] += 1
            self.acknowledged[operation] += 200 <= status < 300

    def refuse(self, refusal: Refusal) -> None:
        with self._lock:
            self.refusals.append(refusal)

    def promise(self, *about: Hashable, that: Promise) -> None:
        with self._lock:
            self._promises[about] = that

    def withdraw(self, *about: Hashable) -> None:
        """Forget every promise whose key begins with this."""
        with self._lock:
            for known in [known for known in self._promises if known[: len(about)] == about]:  # type: ignore[index]
                del self._promises[known]

    def promises(self) -> Iterator[Promise]:
        with self._lock:
            return iter(list(self._promises.values()))
