"""The imports of one process: for each user, their batches, their one attempt, and the thread that works on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

from nexus.errors import ApiError, Conflict, InvalidRequest, InvalidState, NexusError, NotReady
from nexus.imports.attempts import IDLE, AttemptState, Registry
from nexus.imports.progress import FileOutcome, FileProgress, ImportProgress
from nexus.imports.runner import ImportRun
from nexus.imports.staging import StagedShares, Staging
from nexus.imports.workspaces import Workspaces
from nexus.media.workbench import Tools
from nexus.states.attempt import AttemptStatus, Phase

#: How long the end of the process waits for runners that have been told to stop.
CLOSE_SECONDS = 5.0
ENDING = "Nexus is shutting down. Try again when it is running."
LOST = "The working folder of this import is gone. Discard the import, then start it again."


@dataclass(frozen=True)
class Leave:
    """What happens if the user leaves the import's page now."""

    #: Nothing is lost.
    safe: bool
    #: Ask before leaving.
    should_warn: bool
    #: Leaving throws away what is staged, and the work done on it.
    would_discard: bool


SAFE = Leave(safe=True, should_warn=False, would_discard=False)
LOSES = Leave(safe=False, should_warn=True, would_discard=True)
#: The commit is running. Leaving does not change its outcome, which is not known yet.
IN_DOUBT = Leave(safe=False, should_warn=True, would_discard=False)


class ImportDesk:
    """The imports of one user."""

    def __init__(
        self,
        tools: Tools,
        workspaces: Workspaces,
        viewer: UUID,
        tell: Callable[[], None],
        most_copied: int | None,
    ) -> None:
        self._tools = tools
        self._lock = threading.Lock()
        #: Increases with every change, and from one process to the next.
        self.version = time.time_ns() // 1000
        self._viewer = viewer
        self._listener = tell
        self.registry = Registry(workspaces)
        self.staging = Staging(self.registry, self._tell, most_copied)
        self.progress = ImportProgress(self._tell)
        self._run: ImportRun | None = None
        # Not Thread.join: on Python 3.11, after Ctrl-C interrupts a join, the thread counts as ended.
        self._resting = threading.Event()
        self._resting.set()

    def _tell(self) -> None:
        with self._lock:
            self.version += 1
        self._listener()

    @property
    def is_blank(self) -> bool:
        """Whether nothing is staged and nothing was imported."""
        return self.state == IDLE and not self.staging.all()

    @property
    def state(self) -> AttemptState:
        return self.registry.state

    @property
    def library_id(self) -> UUID | None:
        """The library that holds the last batch."""
        return self._run.library_id if self._run else None

    @property
    def is_committed(self) -> bool:
        """Whether the last batch is in its library."""
        return self.library_id is not None or self.state.phase is Phase.TEXT_COMMITTED

    @property
    def in_doubt(self) -> bool:
        """Whether a commit was sent and its outcome is not known yet."""
        return self._run is not None and self._run.in_doubt

    @property
    def ended(self) -> list[FileProgress]:
        """The files of the last import, if it was committed and no other has begun."""
        return [] if self.staging.active or self.library_id is None else self.progress.lines()

    @property
    def share(self) -> float:
        """How much of the current or last import is done, from 0 to 1."""
        return self.progress.share if self.staging.active or self.ended else 0.0

    @property
    def trouble(self) -> NexusError | None:
        """What stopped the current import, if it was not a file."""
        return self.progress.trouble if self.staging.active else None

    def start(self, batch_id: UUID) -> AttemptState:
        """Begin to import a batch.

        Raises InvalidRequest if it is empty, InvalidState if there is an attempt already, and WorkspaceFailed.
        """
        with self.staging.still:
            if not self.staging.get(batch_id).sources:
                raise InvalidRequest("There is nothing to import. Add some files first.")
            begun = self.registry.start()
            if not begun or begun.state.attempt_id is None:
                raise self._refusal("There is another import. Finish or discard it first.")
            self.staging.active = batch_id
            self.progress = ImportProgress(self._tell)
            self._run = ImportRun(
                self._tools,
                self.registry,
                self.staging,
                self.progress,
                self._viewer,
                begun.state.attempt_id,
                batch_id,
            )
            self._go(self._run)
        return begun.state

    def pause(self) -> AttemptState:
        """Ask the import to stop.

        Raises InvalidState if none is running, CancellationFailed if it can't be told and keeps running.
        """
        asked = self.registry.stop()
        if not asked:
            raise self._refusal("No import is running.")
        with self.staging.still:
            if (
                self._run is not None
                and self._resting.is_set()
                and self.state.status is AttemptStatus.STOPPING
            ):
                self._run.settle()  # its runner failed before it could say how it ended
        self._tell()
        return asked.state

    def resume(self) -> AttemptState:
        """Continue a paused import. Raises InvalidState if there is none, or if its workspace is gone."""
        with self.staging.still:
            resumed = self.registry.resume()
            if self._run is None or not resumed:
                paused = self.state.status is AttemptStatus.PAUSED
                raise self._refusal(LOST if paused else "No import is paused.")
            self._go(self._run)
        return resumed.state

    def resume_without_failed(self, batch_id: UUID) -> AttemptState:
        """Take out the files that can't be imported, and continue with the others.

        Raises InvalidState if there are no others, and as `resume` does.
        """
        failed = {line.source_id for line in self.progress.of(FileOutcome.FAILED)}
        for source in self.staging.get(batch_id).sources:
            if source.id in failed:
                self.staging.remove(batch_id, source.id)
        if failed and not self.staging.get(batch_id).sources:
            raise InvalidState("Nothing is left to import.")
        return self.resume()

    def leave(self, batch_id: UUID) -> Leave:
        """Say what leaving a batch would cost, even after it went into its library. Raises NotFound.

        A running import alone is not a reason to stay: what counts is whether its text is committed.
        """
        if self._run is not None and self._run.batch_id == batch_id and self._run.library_id is not None:
            return SAFE
        batch, active = self.staging.get(batch_id), self.staging.active == batch_id
        committed = active and self.state.phase is Phase.TEXT_COMMITTED
        if committed or not batch.sources or not batch.is_draft:
            return SAFE
        return IN_DOUBT if active and self.in_doubt else LOSES

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the runner rests; return whether it does."""
        return self._resting.wait(seconds)

    def _refusal(self, why: str) -> ApiError:
        return NotReady(ENDING) if self.registry.is_closed else InvalidState(why)

    def _go(self, run: ImportRun) -> None:
        """Start a thread, with its own event: the previous thread may not have ended yet."""
        resting = self._resting = threading.Event()

        def work() -> None:
            try:
                run.run_until_stopped()
            finally:
                resting.set()
                self._tell()

        try:
            # In the caller's context, whose address is for the audit log.
            target = partial(copy_context().run, work)
            threading.Thread(target=target, name="nexus-import", daemon=True).start()
        except BaseException:
            resting.set()
            self.registry.stop()
            self.registry.finish_stop(run.attempt_id, staged_work=True)
            raise
        finally:
            self._tell()


class Imports:
    """All imports of this process. Calls `listener`, from any thread, when there is something new to show."""

    def __init__(self, tools: Tools, base: Path, shares: StagedShares | None = None) -> None:
        self._tools = tools
        self._shares = shares
        self.listener: Callable[[], object] = lambda: None
        self._workspaces = Workspaces(base)
        self._lock = threading.Lock()
        self._desks: dict[UUID, ImportDesk] = {}
        self._ending = False

    def open(self) -> None:
        """Remove what processes that have ended left behind."""
        self._workspaces.clean()

    def abandoned(self, *, remove: bool) -> int:
        """Return how many ended processes left something behind; with `remove`, remove it."""
        return self._workspaces.clean(remove=remove)

    def of(self, viewer: UUID) -> ImportDesk:
        """Return the user's desk, the same one every time."""
        with self._lock:
            if viewer not in self._desks:
                desk = self._desks[viewer] = ImportDesk(
                    self._tools, self._workspaces, viewer, self._tell, self._most_copied(viewer)
                )
                if self._ending:
                    desk.registry.close()
            return self._desks[viewer]

    def _most_copied(self, viewer: UUID) -> int | None:
        shares = self._shares
        return None if shares is None or viewer == shares.owner else shares.most_bytes

    def _tell(self) -> None:
        self.listener()

    def served(self, viewer: UUID) -> ImportDesk:
        """The same for HTTP requests. Raises Conflict if another process of this Nexus serves imports."""
        if not self._workspaces.serve():
            raise Conflict(
                "Another process of this Nexus serves imports. Send this request there, or use: nexus import"
            )
        return self.of(viewer)

    def staging_folder(self) -> Path:
        """Return the folder for copies of uploaded files. Raises WorkspaceFailed."""
        return self._workspaces.staging_folder()

    def cancel(self) -> None:
        """The process is ending: tell every import to stop, and commit nothing from now on.

        Call this first, before workers stop and the database is closed. It waits only for a COMMIT that is already
        running. The next process removes the imports' folders.
        """
        with self._lock:
            self._ending = True
            desks = list(self._desks.values())
        for desk in desks:
            desk.registry.forbid()  # every one, before waiting for the first
        for desk in desks:
            with suppress(Exception):  # it is logged, and the others have to be told too
                desk.registry.close()

    def close(self) -> None:
        """Cancel all imports, and wait a moment for them to stop."""
        self.cancel()
        with self._lock:
            desks = list(self._desks.values())
        for desk in desks:
            desk.wait(CLOSE_SECONDS)
        self._workspaces.close()
