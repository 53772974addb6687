"""An import as its page shows it: one button for each state, and a line for each file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from nexus.imports.attempts import AttemptState
from nexus.imports.progress import FileOutcome, FileProgress
from nexus.imports.service import ImportDesk
from nexus.imports.staging import Batch
from nexus.states.attempt import AttemptStatus
from nexus.web.views.items import KINDS, Badge

OUTCOMES = {
    FileOutcome.WAITING: Badge("Queued", "queued"),
    FileOutcome.CHECKED: Badge("Checked", "queued"),
    FileOutcome.PARSING: Badge("Extracting", "working"),
    FileOutcome.PARSED: Badge("Extracted", "ready"),
    FileOutcome.SPLIT: Badge("Prepared", "ready"),
    FileOutcome.DUPLICATE: Badge("Duplicate", "waiting"),
    FileOutcome.FAILED: Badge("Failed", "failed"),
    FileOutcome.COMMITTED: Badge("Imported", "ready"),
}
PHASES = {
    "preflight": "Checking the files",
    "parsing": "Extracting the text",
    "splitting": "Splitting the text into chunks",
    "atomic_text_commit": "Saving everything to the library",
    "text_committed": "Everything is in the library",
    "not_started": "",
}


@dataclass(frozen=True)
class ShownFile:
    id: UUID
    name: str
    kind: str
    size: int
    badge: Badge
    message: str


@dataclass(frozen=True)
class ShownImport:
    """A user's import, ready for a template."""

    status: AttemptStatus
    phase: str
    percent: int
    #: The library that it goes to; without an id, a new one of this name.
    target: str
    target_id: UUID | None
    #: The library of the last import.
    went_to: str
    went_to_id: UUID | None
    #: What stopped the whole import.
    trouble: str
    rows: list[ShownFile]
    #: Those of the rows that can't be imported.
    failed: list[ShownFile]
    #: How many files are ready to be committed: work that a discard throws away.
    prepared: int
    #: The rows are those of the import that has ended; no files wait.
    done: bool
    may_change: bool
    should_warn: bool
    version: int


def show_import(
    desk: ImportDesk, batch: Batch, names: Mapping[UUID, str], version: int, state: AttemptState
) -> ShownImport:
    """Show a batch as of a version and a state that were read before it."""
    done = bool(desk.ended) and not batch.sources
    lines = {line.source_id: line for line in desk.progress.lines()}
    rows = (
        [_show_file(line) for line in lines.values()]
        if done
        else [_show_file(lines.get(source.id) or FileProgress.waiting(source)) for source in batch.sources]
    )
    failed = [] if done else [row for row in rows if row.badge is OUTCOMES[FileOutcome.FAILED]]
    ready = {line.source_id for line in desk.progress.of(FileOutcome.PARSED, FileOutcome.SPLIT)}
    return ShownImport(
        status=state.status,
        phase=PHASES[state.phase.value],
        percent=round(desk.share * 100),
        target=names.get(batch.library_id, "") if batch.library_id else batch.name or "",
        target_id=batch.library_id if batch.library_id in names else None,
        went_to_id=desk.library_id,
        went_to=names.get(desk.library_id, "") if desk.library_id else "",
        trouble=_trouble(desk, state, failed),
        rows=rows,
        failed=failed,
        prepared=sum(row.id in ready for row in rows),
        done=done,
        may_change=not desk.staging.is_busy(batch.id),
        should_warn=desk.leave(batch.id).should_warn,
        version=version,
    )


def _trouble(desk: ImportDesk, state: AttemptState, failed: list[ShownFile]) -> str:
    if desk.trouble is not None:
        return desk.trouble.message
    if not failed or state.status is not AttemptStatus.PAUSED:
        return ""
    return f"{'A file' if len(failed) == 1 else f'{len(failed)} files'} can't be imported."


def _show_file(line: FileProgress) -> ShownFile:
    badge = OUTCOMES[line.outcome]
    return ShownFile(line.source_id, line.name, KINDS[line.kind], line.size, badge, line.message or "")
