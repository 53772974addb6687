"""Shows an import while it runs: bars in a terminal, lines in a pipe, or JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol
from uuid import UUID

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from nexus.cli import say
from nexus.errors import ApiError
from nexus.imports.progress import SHARE, FileOutcome, FileProgress
from nexus.imports.service import ImportDesk
from nexus.states.attempt import AttemptStatus

MARKS = {
    FileOutcome.COMMITTED: ("✓", "green"),
    FileOutcome.DUPLICATE: ("=", "yellow"),
    FileOutcome.FAILED: ("✗", "red"),
}
WORDS = {
    "preflight": "Checking",
    "parsing": "Extracting",
    "splitting": "Splitting",
    "atomic_text_commit": "Saving",
    "text_committed": "Saved",
    "not_started": "Done",
}


STOPS = {AttemptStatus.STOPPING: "Stopping…", AttemptStatus.PAUSED: "Paused"}


class Shown(Protocol):
    def refused(self, name: str, error: ApiError) -> None:
        """Show a file that could not be staged."""
        ...

    def following(self, desk: ImportDesk) -> AbstractContextManager[None]: ...
    def tick(self) -> None: ...
    def done(self, lines: list[FileProgress]) -> None: ...

    def failed(self, lines: list[FileProgress]) -> None:
        """Show why files can't be imported, unless that is shown anyway."""
        ...

    def given_up(self, lines: list[FileProgress]) -> None:
        """Show that the import was discarded, with the files as they were then."""
        ...


class Told:
    """What bars and lines have in common."""

    def refused(self, name: str, error: ApiError) -> None:
        say.problem(f"{name}: {error.message}")

    def given_up(self, lines: list[FileProgress]) -> None:
        """Say nothing: the user chose this."""


class ImportLines(Told):
    """For a pipe: a line whenever a file gets further."""

    def __init__(self) -> None:
        self._seen: dict[UUID, FileOutcome] = {}
        self._desk: ImportDesk | None = None

    @contextmanager
    def following(self, desk: ImportDesk) -> Iterator[None]:
        self._desk = desk
        yield
        self.tick()

    def tick(self) -> None:
        for line in self._desk.progress.lines() if self._desk else []:
            if self._seen.get(line.source_id) is not line.outcome:
                self._seen[line.source_id] = line.outcome
                say.line(line.outcome.value, line.name, _reason(line))

    def failed(self, lines: list[FileProgress]) -> None:
        """Say nothing: each has its line."""

    def done(self, lines: list[FileProgress]) -> None:
        say.line("complete", *_counts(lines))


class ImportJson:
    """For a program: one object per file, at the end."""

    def refused(self, name: str, error: ApiError) -> None:
        self._object(name, "refused", error.code, error.message)

    @contextmanager
    def following(self, desk: ImportDesk) -> Iterator[None]:  # noqa: ARG002
        yield

    def tick(self) -> None:
        """Show nothing before the end."""

    def failed(self, lines: list[FileProgress]) -> None:
        """Say nothing: each has its object."""

    def done(self, lines: list[FileProgress]) -> None:
        for line in lines:
            self._object(line.name, line.outcome.value, line.code, line.message, line.size)

    given_up = done

    def _object(
        self, name: str, outcome: str, code: str | None, message: str | None, size: int | None = None
    ) -> None:
        error = None if code is None else {"code": code, "message": message}
        say.as_json({"name": name, "outcome": outcome, "size": size, "error": error})


class ImportScreen(Told):
    """For a terminal: a bar for the import, one for each file being parsed, and a line for each finished file."""

    def __init__(self) -> None:
        self._console = say.out()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[percent]}"),
            TextColumn("{task.fields[speed]}", style="dim"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._all: TaskID | None = None
        self._files: dict[UUID, TaskID] = {}
        self._desk: ImportDesk | None = None
        self._began = time.monotonic()

    @contextmanager
    def following(self, desk: ImportDesk) -> Iterator[None]:
        self._desk, self._began = desk, time.monotonic()
        if self._all is None:
            self._all = self._bars.add_task("", total=1.0, percent="", speed="")
        with self._bars:
            yield
            self.tick()

    def tick(self) -> None:
        if self._desk is None or self._all is None:
            return
        lines = self._desk.progress.lines()
        state = self._desk.state
        what = STOPS.get(state.status) or WORDS[state.phase.value]
        ended = sum(SHARE.get(line.outcome, 0) >= SHARE[FileOutcome.PARSED] for line in lines)
        speed = f"{ended} of {len(lines)}, {ended / max(time.monotonic() - self._began, 0.1):.1f} files/s"
        share = self._desk.progress.share
        percent = f"{share * 100:>3.0f} %"
        self._bars.update(self._all, description=what, completed=share, percent=percent, speed=speed)
        self._show_files(lines)

    def _show_files(self, lines: list[FileProgress]) -> None:
        parsing = {line.source_id: line for line in lines if line.outcome is FileOutcome.PARSING}
        for source_id in self._files.keys() - parsing.keys():
            self._bars.remove_task(self._files.pop(source_id))
        for source_id in parsing.keys() - self._files.keys():
            name = say.printable(parsing[source_id].name)
            self._files[source_id] = self._bars.add_task(f"  {name}", total=None, percent="", speed="")

    def failed(self, lines: list[FileProgress]) -> None:
        for line in lines:
            say.problem(f"{line.name}: {_reason(line)}")

    def done(self, lines: list[FileProgress]) -> None:
        for line in lines:
            mark, style = MARKS.get(line.outcome, ("·", "dim"))
            note = f"  {line.message}" if line.message else ""
            self._console.print(
                f"[{style}]{mark}[/] {say.printable(line.name)}[dim]{note}[/]", soft_wrap=True
            )
        self._console.print(say.joined(_counts(lines)))


def shown(*, as_json: bool) -> Shown:
    if as_json:
        return ImportJson()
    return ImportScreen() if say.is_to_a_person() else ImportLines()


def _reason(line: FileProgress) -> str:
    return f"{line.message} ({line.code})" if line.code else line.message or ""


def _counts(lines: list[FileProgress]) -> list[str]:
    done = sum(line.outcome is FileOutcome.COMMITTED for line in lines)
    twins = sum(line.outcome is FileOutcome.DUPLICATE for line in lines)
    counts = [say.amount(done, "file imported", "files imported")]
    return [*counts, say.amount(twins, "duplicate", "duplicates")] if twins else counts
