"""The imports of one process: for each user his batches, his one attempt, and the thread that works on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from nexus.errors import ApiError, Conflict, InvalidRequest, InvalidState, NotReady
from nexus.imports import leaving
from nexus.imports.attempts import IDLE, Registry, State
from nexus.imports.leaving import Leave
from nexus.imports.progress import Line, Progress, Trouble
from nexus.imports.runner import Run
from nexus.imports.staging import Staging
from nexus.imports.workspaces import Workspaces
from nexus.media.workbench import Tools
from nexus.states.attempt import Phase, Status

#: How long the end of the process waits for runners that have been told to stop.
CLOSE_SECONDS = 5.0
ENDING = "Nexus is being stopped. Try again when it runs."
LOST = "The folder in which this import worked is gone. Discard it, then start anew."


class Desk:
    """What one user imports."""

    def __init__(self, tools: Tools, workspaces: Workspaces, viewer: UUID, tell: Callable[[], None]) -> None:
        self._tools = tools
        self._lock = threading.Lock()
        #: Goes up with everything that there is to show, also from one process to the next.
        self.version = time.time_ns() // 1000
        self._viewer = viewer
        self._listener = tell
        self.registry = Registry(workspaces)
        self.staging = Staging(self.registry, self._tell)
        self.progress = Progress(self._tell)
        self._run: Run | None = None
        # Not the thread itself: Python 3.11 takes one for ended when Ctrl-C interrupts who joins it.
        self._resting = threading.Event()
        self._resting.set()

    def _tell(self) -> None:
        with self._lock:
            self.version += 1
        self._listener()

    @property
    def is_blank(self) -> bool:
        """Nothing is staged, and nothing has been imported."""
        return self.state == IDLE and not self.staging.all()

    @property
    def state(self) -> State:
        return self.registry.state

    @property
    def library_id(self) -> UUID | None:
        """Where the last batch went."""
        return self._run.library_id if self._run else None

    @property
    def is_committed(self) -> bool:
        """Whether the last batch is in its library, from the moment of the commit."""
        return self.library_id is not None or self.state.phase is Phase.TEXT_COMMITTED

    @property
    def in_doubt(self) -> bool:
        """Whether the commit has been sent and its outcome is not known."""
        return self._run is not None and self._run.in_doubt

    @property
    def ended(self) -> list[Line]:
        """The files of the last import, where it is committed and no other is begun."""
        return [] if self.staging.active or self.library_id is None else self.progress.lines()

    @property
    def share(self) -> float:
        """How much is done of what is being imported, or was."""
        return self.progress.share if self.staging.active or self.ended else 0.0

    @property
    def trouble(self) -> Trouble | None:
        """What stopped the present import, where that is no file's fault."""
        return self.progress.trouble if self.staging.active else None

    def start(self, batch_id: UUID) -> State:
        """Raises InvalidRequest for an empty batch, InvalidState while there is an attempt, WorkspaceFailed."""
        with self.staging.still:
            if not self.staging.get(batch_id).sources:
                raise InvalidRequest("There is nothing to import. Add some files first.")
            begun = self.registry.start()
            if not begun or begun.state.attempt_id is None:
                raise self._refusal("There is an import already. Finish or discard it first.")
            self.staging.active = batch_id
            self.progress = Progress(self._tell)
            self._run = self._new_run(begun.state.attempt_id, batch_id)
            self._go(self._run)
        return begun.state

    def pause(self) -> State:
        """Raises InvalidState if nothing runs, CancellationFailed if it can't be told; it runs on then."""
        asked = self.registry.stop()
        if not asked:
            raise self._refusal("No import is running.")
        with self.staging.still:
            if self._run is not None and self._resting.is_set() and self.state.status is Status.STOPPING:
                self._run.settle()  # its runner broke before it could say how it ended
        self._tell()
        return asked.state

    def resume(self) -> State:
        """Raises InvalidState where nothing is paused, or its workspace is gone."""
        with self.staging.still:
            resumed = self.registry.resume()
            if self._run is None or not resumed:
                paused = self.state.status is Status.PAUSED
                raise self._refusal(LOST if paused else "No import is paused.")
            self._go(self._run)
        return resumed.state

    def leave(self, batch_id: UUID) -> Leave:
        """Also of a batch that is gone because it is in its library. Raises NotFound."""
        if self._run is not None and self._run.batch_id == batch_id and self._run.library_id is not None:
            return leaving.SAFE
        active = self.staging.active == batch_id
        return leaving.judge(self.staging.get(batch_id), self.state, active=active, in_doubt=self.in_doubt)

    def wait(self, seconds: float | None = None) -> bool:
        """Until the runner rests; whether it does."""
        return self._resting.wait(seconds)

    def _refusal(self, why: str) -> ApiError:
        return NotReady(ENDING) if self.registry.is_closed else InvalidState(why)

    def _new_run(self, attempt_id: UUID, batch_id: UUID) -> Run:
        return Run(
            self._tools, self.registry, self.staging, self.progress, self._viewer, attempt_id, batch_id
        )

    def _go(self, run: Run) -> None:
        """Each time with a sign of its own: the thread before may still be on its way out."""
        resting = self._resting = threading.Event()

        def work() -> None:
            try:
                run.go()
            finally:
                resting.set()
                self._tell()

        try:
            threading.Thread(target=work, name="nexus-import", daemon=True).start()
        except BaseException:
            resting.set()
            self.registry.stop()
            self.registry.finish_stop(run.attempt_id, staged_work=True)
            raise
        finally:
            self._tell()


class Imports:
    """One per process. Whoever listens is told when there is something new to show, from any thread."""

    def __init__(self, tools: Tools, base: Path) -> None:
        self._tools = tools
        self.listener: Callable[[], object] = lambda: None
        self._workspaces = Workspaces(base)
        self._lock = threading.Lock()
        self._desks: dict[UUID, Desk] = {}
        self._ending = False

    def open(self) -> None:
        """Remove what processes left behind that are no more."""
        self._workspaces.clean()

    def abandoned(self, *, remove: bool) -> int:
        """How many processes have left something behind."""
        return self._workspaces.clean(remove=remove)

    def of(self, viewer: UUID) -> Desk:
        with self._lock:
            if viewer not in self._desks:
                desk = self._desks[viewer] = Desk(self._tools, self._workspaces, viewer, self._tell)
                if self._ending:
                    desk.registry.close()
            return self._desks[viewer]

    def _tell(self) -> None:
        self.listener()

    def served(self, viewer: UUID) -> Desk:
        """The same over HTTP. Raises Conflict where another process of this Nexus has the imports."""
        if not self._workspaces.serve():
            raise Conflict(
                "Imports are served by another process of this Nexus. Send this there, or use: nexus import"
            )
        return self.of(viewer)

    def room(self) -> Path:
        return self._workspaces.room()

    def cancel(self) -> None:
        """The process is ending: whatever runs is told to stop, and nothing is committed from now on.

        This comes first at a stop, before workers end their work and before the database is closed. Only a COMMIT that
        is under way is waited for. Its folder is the next start's to remove.
        """
        with self._lock:
            self._ending = True
            desks = list(self._desks.values())
        for desk in desks:
            desk.registry.forbid()  # all of them before the first is waited for
        for desk in desks:
            with suppress(Exception):  # it is logged there, and the others have to be told too
                desk.registry.close()

    def close(self) -> None:
        """Cancel what runs, and wait a moment for it."""
        self.cancel()
        with self._lock:
            desks = list(self._desks.values())
        for desk in desks:
            desk.wait(CLOSE_SECONDS)
        self._workspaces.close()
