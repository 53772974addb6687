"""An import as its page shows it: one button with four honest states, and a line for each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from nexus.imports.attempts import State
from nexus.imports.progress import Line, Outcome, new_line
from nexus.imports.service import Desk
from nexus.imports.staging import Batch
from nexus.states.attempt import Status
from nexus.web.views.items import KINDS, Badge

Act = Callable[[Desk, Batch], object]

OUTCOMES = {
    Outcome.WAITING: Badge("Waiting", "queued"),
    Outcome.CHECKED: Badge("Checked", "queued"),
    Outcome.PARSING: Badge("Parsing", "working"),
    Outcome.PARSED: Badge("Parsed", "ready"),
    Outcome.SPLIT: Badge("Prepared", "ready"),
    Outcome.DUPLICATE: Badge("Already there", "waiting"),
    Outcome.FAILED: Badge("Failed", "failed"),
    Outcome.COMMITTED: Badge("Imported", "ready"),
}
PHASES = {
    "preflight": "Checking the files",
    "parsing": "Taking their text out",
    "splitting": "Cutting the text into chunks",
    "atomic_text_commit": "Putting everything into the library",
    "text_committed": "It is in the library",
    "not_started": "",
}


@dataclass(frozen=True)
class Row:
    id: UUID
    name: str
    kind: str
    size: int
    badge: Badge
    message: str


@dataclass(frozen=True)
class Look:
    status: Status
    phase: str
    percent: int
    #: Where it goes, and where the last one went.
    target: str
    went_to: str
    #: What stopped all of it.
    trouble: str
    rows: list[Row]
    #: They are those of the import that has ended; no others wait.
    done: bool
    may_change: bool
    should_warn: bool
    version: int


def look(desk: Desk, batch: Batch, names: Mapping[UUID, str], version: int, state: State) -> Look:
    done = bool(desk.ended) and not batch.sources
    lines = {line.source_id: line for line in desk.progress.lines()}
    rows = (
        [_row(line) for line in lines.values()]
        if done
        else [_row(lines.get(source.id) or new_line(source)) for source in batch.sources]
    )
    return Look(
        status=state.status,
        phase=PHASES[state.phase.value],
        percent=round(desk.share * 100),
        target=names.get(batch.library_id, "") if batch.library_id else batch.name or "",
        went_to=names.get(desk.library_id, "") if desk.library_id else "",
        trouble=_trouble(desk),
        rows=rows,
        done=done,
        may_change=not desk.staging.is_busy(batch.id),
        should_warn=desk.leave(batch.id).should_warn,
        version=version,
    )


def _trouble(desk: Desk) -> str:
    if desk.trouble is not None:
        return desk.trouble.message
    failed = len(desk.progress.of(Outcome.FAILED)) if desk.state.status is Status.PAUSED else 0
    if not failed:
        return ""
    them = "A file" if failed == 1 else f"{failed} files"
    return f"{them} can't be imported. See below why; take out what is in the way, then resume."


def _row(line: Line) -> Row:
    badge = OUTCOMES[line.outcome]
    return Row(line.source_id, line.name, KINDS[line.kind], line.size, badge, line.message or "")
