"""Worker threads that take due work from the database, woken by the local queue and by the clock."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from nexus import logging
from nexus.app import App
from nexus.db.session import Row
from nexus.editorial import editing
from nexus.media import refresh, runner
from nexus.media.turns import Turns
from nexus.queue.local import Local
from nexus.upkeep import clean, sweep
from nexus.work.leases import Hold
from nexus.worker.outbox import Outbox

log = logging.get(__name__)

#: A thread claims as much as it expects to finish in this time, so that short work is claimed in bulk and long work
#: stays free for others.
AHEAD_SECONDS = 0.25
MOST = 64
PAUSE_AFTER_ERROR = 1.0
#: How long after a start upkeep begins.
FIRST_UPKEEP_SECONDS = 60.0
#: How long a stop waits for the work under way.
STOP_SECONDS = 30.0


class Pace:
    """How long one media took lately, in whichever thread, and so how many a thread claims at once."""

    def __init__(self) -> None:
        self._seconds = AHEAD_SECONDS

    def batch(self) -> int:
        """A power of two: the database has a statement for each number, so few of them are better."""
        fitting = max(1, min(MOST, int(AHEAD_SECONDS / self._seconds)))
        return 1 << (fitting.bit_length() - 1)

    def took(self, seconds: float) -> None:
        self._seconds = max(1e-4, 0.5 * self._seconds + 0.5 * seconds)


class Workers:
    """Started once per process. `stop` lets the work under way end first, if it ends soon, and gives the rest of a
    batch back; what does not end is left to its lease."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._queue = app.queue if isinstance(app.queue, Local) else Local()
        self._turns = Turns(app.sessions, app.tools.leases.length)
        self._outbox = Outbox(app.tools)
        self._pace = Pace()
        self._editors = threading.Semaphore(max(1, app.settings.worker_threads // 2))
        self._stopping = threading.Event()
        names = [f"nexus-worker-{n}" for n in range(app.settings.worker_threads)]
        self._threads = [
            threading.Thread(target=self._work_for_ever, name=name, daemon=True) for name in names
        ]

    def start(self) -> None:
        self._outbox.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._queue.wake_all()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._outbox.close(max(0.0, deadline - time.monotonic()))

    def _work_for_ever(self) -> None:
        while not self._stopping.is_set():
            try:
                seen = self._queue.news()
                if not self._work_once():
                    self._queue.wait(seen, self._app.settings.poll_seconds)
            except Exception as error:
                log.error("worker_stumbled", reason=type(error).__name__)  # noqa: TRY400
                self._stopping.wait(PAUSE_AFTER_ERROR)

    def _work_once(self) -> bool:
        """Whether there was anything to do."""
        if self._edited():  # somebody waits for it at the screen
            return True
        claims = self._turns.claim(self._app.tools.extractors, self._pace.batch())
        if not claims:
            return refresh.run_next(self._app.tools)
        left = {(claim.id, claim.processing_attempts): claim for claim in claims}
        self._app.tools.leases.take(left)
        try:
            while left and not self._stopping.is_set():
                hold = next(iter(left))
                self._work_on(left.pop(hold), hold)
        finally:
            if left:
                runner.give_back(self._app.tools, left)
        return True

    def _edited(self) -> bool:
        """Whether there was a job's step to take. Some threads are always left to media: a model may take its time."""
        if not self._editors.acquire(blocking=False):
            return False
        try:
            return editing.run_next(self._app.tools, self._queue.request_id)
        finally:
            self._editors.release()

    def _work_on(self, claim: Row, hold: Hold) -> None:
        began = time.monotonic()
        request_id = self._queue.request_id(claim.id)
        with logging.task_log_context(request_id=request_id, media_id=claim.id):
            try:
                done = runner.attempt(self._app.tools, claim, request_id)
            except BaseException:
                self._app.tools.leases.let_go(hold)
                raise
        self._pace.took(time.monotonic() - began)
        self._outbox.put(done)


class Rounds:
    """Does one thing again and again, in a thread of its own, for as long as the process lives."""

    def __init__(
        self, name: str, act: Callable[[], object], seconds: float, first_seconds: float = 0
    ) -> None:
        self._name = name
        self._act = act
        self._seconds = seconds
        self._first_seconds = first_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._go_round, name=f"nexus-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Nothing if it never started, as in a Celery worker that never found its broker."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _go_round(self) -> None:
        wait = self._first_seconds
        while not self._stopping.wait(wait):
            wait = self._seconds
            try:
                self._act()
            except Exception as error:
                log.error(f"{self._name}_stumbled", reason=type(error).__name__)  # noqa: TRY400


class Sweeper(Rounds):
    """Runs the sweep every few seconds."""

    def __init__(self, app: App) -> None:
        super().__init__("sweep", self._sweep, app.settings.sweep_seconds)
        self._app = app

    def _sweep(self) -> None:
        sweep.run(self._app.tools, self._app.queue, self._stopping.is_set)


class Upkeep(Rounds):
    """Removes what crashes left behind, every hour or so: what `nexus clean --remove` would, as far as that is safe
    without anybody looking. Not at once, because a start has more urgent things to do."""

    def __init__(self, app: App) -> None:
        seconds = app.settings.upkeep_hours * 3600
        super().__init__("upkeep", self._keep_up, seconds, min(seconds, FIRST_UPKEEP_SECONDS))
        self._app = app

    def _keep_up(self) -> None:
        with clean.alone(self._app.sessions) as granted:
            if granted:
                self._clean()

    def _clean(self) -> None:
        removed = Counter(imports=self._app.imports.abandoned(remove=True))
        stopped = self._stopping.is_set
        removed.update(each.kind for each in clean.clean_safely(self._app.sessions, self._app.files, stopped))
        if removed.total():
            log.info("upkeep_removed", **{kind: many for kind, many in removed.items() if many})


def rounds(app: App) -> list[Rounds]:
    """Those of a process that works."""
    return [Sweeper(app), Upkeep(app)] if app.settings.does_upkeep else [Sweeper(app)]
