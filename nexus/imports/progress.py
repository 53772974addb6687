"""How far an import is, file by file, as it is shown."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from nexus.errors import NexusError
from nexus.imports.staging import Source
from nexus.states.media import Kind


class Outcome(StrEnum):
    WAITING = "waiting"  #: nothing has been done with it
    CHECKED = "checked"  #: it can be read, and is not there yet
    PARSING = "parsing"  #: its text is being taken out
    PARSED = "parsed"  #: its text is there
    SPLIT = "split"  #: its text is cut into chunks
    DUPLICATE = "duplicate"  #: the user has it already; it is passed over
    FAILED = "failed"  #: it can't be imported; the reason says why
    COMMITTED = "committed"  #: it is in the library


#: How far each outcome is, as a share of the whole.
SHARE = {
    Outcome.CHECKED: 0.1,
    Outcome.PARSING: 0.2,
    Outcome.PARSED: 0.8,
    Outcome.SPLIT: 0.9,
    Outcome.DUPLICATE: 1.0,
    Outcome.FAILED: 1.0,
    Outcome.COMMITTED: 1.0,
}


@dataclass(frozen=True)
class Line:
    """One file."""

    source_id: UUID
    name: str = field(repr=False)
    kind: Kind
    size: int
    outcome: Outcome = Outcome.WAITING
    code: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class Trouble:
    code: str
    message: str


def new_line(source: Source) -> Line:
    return Line(source.id, source.name, source.kind, source.size)


class Progress:
    """Whoever is told looks at all of it: lines are replaced, never changed."""

    def __init__(self, tell: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._lines: dict[UUID, Line] = {}
        self.tell = tell
        #: What stopped all of it, and is no file's fault.
        self.trouble: Trouble | None = None

    def begin(self, sources: tuple[Source, ...]) -> None:
        """The files in their order; what is known of them stays."""
        with self._lock:
            known = self._lines
            self._lines = {source.id: known.get(source.id, new_line(source)) for source in sources}
        self.trouble = None
        self.tell()

    def stumble(self, error: NexusError) -> None:
        self.trouble = Trouble(error.code, error.message)
        self.tell()

    def set(self, source_id: UUID, outcome: Outcome, **more: object) -> None:
        with self._lock:
            line = self._lines.get(source_id)
            if line is None:
                return
            self._lines[source_id] = replace(
                line,
                outcome=outcome,
                **{"code": None, "message": None, **more},  # type: ignore[arg-type]
            )
        self.tell()

    def lines(self) -> list[Line]:
        with self._lock:
            return list(self._lines.values())

    def of(self, *outcomes: Outcome) -> list[Line]:
        return [line for line in self.lines() if line.outcome in outcomes]

    @property
    def share(self) -> float:
        """How much of the whole is done, by the sizes of the files."""
        lines = self.lines()
        total = sum(max(line.size, 1) for line in lines)
        return (
            sum(max(line.size, 1) * SHARE.get(line.outcome, 0.0) for line in lines) / total if total else 0.0
        )
