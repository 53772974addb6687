"""`nexus import`: turns files into a library, all of them or none."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import typer

from nexus.app import App
from nexus.cli import say
from nexus.cli.add import find_library
from nexus.cli.context import acting_user, opened
from nexus.cli.failures import Refused
from nexus.cli.follow import INTERRUPTED
from nexus.cli.import_progress import Shown, shown
from nexus.errors import ApiError, CancellationFailed, Internal, InvalidState, WorkspaceFailed
from nexus.imports.progress import FileOutcome
from nexus.imports.service import CLOSE_SECONDS, ImportDesk
from nexus.imports.staging import KINDS
from nexus.libraries import catalog
from nexus.states.attempt import AttemptStatus

TICK = 0.1
GO_ON, LEAVE_OUT, DISCARD = "resume", "without", "discard"
NOTHING = "Nothing was imported."
UNKNOWN = "The database connection was lost while saving: it has all files or none. When it is back, run: nexus status"
#: Exit codes as shells have them: 128 plus the number of the signal.
TERMINATED = 128 + signal.SIGTERM


class Terminated(BaseException):
    """SIGTERM came: cancel the import, as a second Ctrl-C does, without asking."""


def import_files(
    data_dir: Path | None, user: UUID | None, paths: Sequence[Path], library: str | None, *, as_json: bool
) -> None:
    screen = shown(as_json=as_json)
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        app.imports.open()
        desk = app.imports.of(viewer)
        batch_id = _stage(app, desk, viewer, paths, library, screen)
        try:
            with _terminable():
                _import(desk, batch_id, screen)
        except WorkspaceFailed as error:
            raise Refused("The disk is full. Free some disk space, then try again.") from error
        except (KeyboardInterrupt, Terminated) as ended:
            say.hint(_cancelled(app, desk))
            raise typer.Exit(INTERRUPTED if isinstance(ended, KeyboardInterrupt) else TERMINATED) from None


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM raise Terminated inside the block, once."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _cancelled(app: App, desk: ImportDesk) -> str:
    """Say what became of an import that was just cancelled."""
    app.imports.cancel()
    if desk.in_doubt:
        desk.wait(CLOSE_SECONDS)
    if desk.is_committed:
        return "Everything was imported before it could be stopped."
    return UNKNOWN if desk.in_doubt else NOTHING


def _stage(
    app: App, desk: ImportDesk, viewer: UUID, paths: Sequence[Path], library: str | None, screen: Shown
) -> UUID:
    with app.sessions.begin() as session:
        library_id = find_library(session, viewer, library)
    batch = desk.staging.open(library_id, None if library_id else catalog.clean_name(library or ""))
    unfit = False
    for path in _files(paths):
        try:
            desk.staging.add(batch.id, path.name, path)
        except ApiError as error:
            unfit = True
            screen.refused(path.name, error)
    fit = bool(desk.staging.get(batch.id).sources)
    if not fit and not unfit:
        raise Refused("Nothing to import: no PDF, EPUB, .txt or .md was found.")
    if unfit and (not fit or _asked("Import the rest without them?", LEAVE_OUT) == DISCARD):
        say.hint(NOTHING)
        raise typer.Exit(1)
    return batch.id


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Return the named files, and those in named folders that could be imported, sorted. Raises Refused."""
    for path in paths:
        given = path.expanduser()
        if given.is_dir():
            yield from sorted(one for one in given.rglob("*") if _is_book(one.relative_to(given), one))
        elif given.is_file():
            yield given
        elif given.exists():
            raise Refused(f"This is neither a file nor a folder: {path}")
        else:
            raise Refused(f"There is no such file or folder: {path}")


def _is_book(name: Path, path: Path) -> bool:
    """Whether a file in a folder should be imported. Hidden files are caches or belong to the system."""
    hidden = any(part.startswith(".") for part in name.parts)
    return not hidden and name.suffix.lower() in KINDS and path.is_file()


def _import(desk: ImportDesk, batch_id: UUID, screen: Shown) -> None:
    desk.start(batch_id)
    while True:
        interrupted = _follow(desk, screen)
        if desk.is_committed:
            screen.done(desk.progress.lines())
            return
        if desk.state.status is not AttemptStatus.PAUSED:
            raise Internal  # the runner broke without saying so
        failed = desk.progress.of(FileOutcome.FAILED)
        screen.failed(failed)
        if (trouble := desk.trouble) is not None:
            say.problem(f"{trouble.message} ({trouble.code})")
        question = ("Continue without them?", LEAVE_OUT) if failed else ("Paused. Continue?", GO_ON)
        if _asked(*question) == DISCARD:
            screen.given_up(desk.progress.lines())
            desk.staging.discard(batch_id)
            say.hint(NOTHING)
            raise typer.Exit(INTERRUPTED if interrupted and not failed else 1)
        try:
            desk.resume_without_failed(batch_id)
        except InvalidState as error:
            raise Refused(error.message) from error


def _follow(desk: ImportDesk, screen: Shown) -> bool:
    """Wait until the runner rests; return whether Ctrl-C was pressed. A second Ctrl-C does not wait."""
    with screen.following(desk):
        try:
            _watch(desk, screen)
        except KeyboardInterrupt:
            _pause(desk)
            _watch(desk, screen)
            return True
    return False


def _pause(desk: ImportDesk) -> None:
    try:
        desk.pause()
    except CancellationFailed as error:
        say.problem(error.message)
    except InvalidState:
        pass  # it ended at this very moment


def _watch(desk: ImportDesk, screen: Shown) -> None:
    while not desk.wait(TICK):
        screen.tick()


def _asked(question: str, yes: str) -> str:
    """Ask whether to resume. Without a terminal, or after Ctrl-C, discard the import."""
    while sys.stdin.isatty():
        try:
            answer = typer.prompt(f"{question} [{yes}/{DISCARD}]", default=yes, show_default=False)
        except typer.Abort:
            break
        word = answer.strip().lower()
        if word and (yes.startswith(word) or word in {"y", "yes"}):
            return yes
        if word and (DISCARD.startswith(word) or word in {"n", "no"}):
            break
    return DISCARD
