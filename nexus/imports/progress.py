"""How far an import is, file by file, as users see it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from nexus.errors import NexusError
from nexus.imports.staging import StagedSource
from nexus.states.media import Kind


class FileOutcome(StrEnum):
    WAITING = "waiting"  #: not looked at yet
    CHECKED = "checked"  #: can be read, and is new
    PARSING = "parsing"  #: its text is being extracted
    PARSED = "parsed"  #: its text is extracted
    SPLIT = "split"  #: its text is split into chunks
    DUPLICATE = "duplicate"  #: the user has it already, or it is in this import twice
    FAILED = "failed"  #: can't be imported; the message says why
    COMMITTED = "committed"  #: in the library


#: How much of a file's work is done.
SHARE = {
    FileOutcome.CHECKED: 0.1,
    FileOutcome.PARSING: 0.2,
    FileOutcome.PARSED: 0.8,
    FileOutcome.SPLIT: 0.9,
    FileOutcome.DUPLICATE: 1.0,
    FileOutcome.FAILED: 1.0,
    FileOutcome.COMMITTED: 1.0,
}


@dataclass(frozen=True)
class FileProgress:
    """How far one file is."""

    source_id: UUID
    name: str = field(repr=False)
    kind: Kind
    size: int
    outcome: FileOutcome = FileOutcome.WAITING
    code: str | None = None
    message: str | None = None

    @classmethod
    def waiting(cls, source: StagedSource) -> FileProgress:
        return cls(source.id, source.name, source.kind, source.size)


class ImportProgress:
    """How far all files are. Calls `tell` after every change."""

    def __init__(self, tell: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._lines: dict[UUID, FileProgress] = {}
        self.tell = tell
        #: What stopped the import, if it was not a file.
        self.trouble: NexusError | None = None

    def begin(self, sources: tuple[StagedSource, ...]) -> None:
        """Set the files and their order; keep what is known of each."""
        with self._lock:
            known = self._lines
            self._lines = {
                source.id: known.get(source.id, FileProgress.waiting(source)) for source in sources
            }
        self.trouble = None
        self.tell()

    def stumble(self, error: NexusError) -> None:
        """Say that the import stopped for a reason that is not the fault of a file."""
        self.trouble = error
        self.tell()

    def set(
        self, source_id: UUID, outcome: FileOutcome, code: str | None = None, message: str | None = None
    ) -> None:
        """Say how far a file is. Does nothing if it was taken out of the import."""
        with self._lock:
            line = self._lines.get(source_id)
            if line is None:
                return
            self._lines[source_id] = replace(line, outcome=outcome, code=code, message=message)
        self.tell()

    def lines(self) -> list[FileProgress]:
        with self._lock:
            return list(self._lines.values())

    def of(self, *outcomes: FileOutcome) -> list[FileProgress]:
        return [line for line in self.lines() if line.outcome in outcomes]

    @property
    def share(self) -> float:
        """How much of the import is done, from 0 to 1, weighted by the sizes of the files."""
        lines = self.lines()
        total = sum(max(line.size, 1) for line in lines)
        return (
            sum(max(line.size, 1) * SHARE.get(line.outcome, 0.0) for line in lines) / total if total else 0.0
        )
