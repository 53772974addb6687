"""Worker threads that take due work from the database, woken by the local queue and by the clock."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from nexus import logging
from nexus.app import App
from nexus.media.searching.embedding import present_embedder
from nexus.media.searching.vectors import keep_sets
from nexus.search.words_postgres import refresh_counts
from nexus.upkeep import clean, retention
from nexus.work.handler import Claim, Handler
from nexus.work.turns import Turns
from nexus.worker.outbox import Outbox

log = logging.get_logger(__name__)

#: A thread claims as much as it expects to finish in this time, so that short work is claimed in bulk and long work
#: stays free for others.
AHEAD_SECONDS = 0.25
MOST = 64
PAUSE_AFTER_ERROR = 1.0
#: For how long a kind of work that had nothing due is asked last. To ask all kinds before each article would take fifty
#: queries.
EMPTY_SECONDS = 0.1
#: How long after a start upkeep begins.
FIRST_UPKEEP_SECONDS = 60.0
#: How often the vectors of the present model are looked after.
VECTOR_SECONDS = 60.0
#: How often it is looked whether the words of texts have to be counted again.
COUNT_SECONDS = 600.0
#: How long a stop waits for the work under way.
STOP_SECONDS = 30.0


class Pace:
    """Knows how long work took lately, in all threads, and so how much a thread should claim at once."""

    def __init__(self) -> None:
        self._seconds = AHEAD_SECONDS

    def batch(self) -> int:
        """Return a power of two: each number has a statement of its own, so few numbers are better."""
        fitting = max(1, min(MOST, int(AHEAD_SECONDS / self._seconds)))
        return 1 << (fitting.bit_length() - 1)

    def took(self, seconds: float) -> None:
        self._seconds = max(1e-4, 0.5 * self._seconds + 0.5 * seconds)


class Workers:
    """Started once per process. `stop` lets the work under way end first, if it ends soon, and gives the rest of a
    batch back; what does not end is left to its lease."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._kernel = app.kernel
        self._bell = app.queue.bell
        self._turns = Turns(app.sessions, app.kernel.leases.length)
        self._outbox = Outbox(app.kernel)
        threads = app.settings.worker_threads
        handlers = app.kernel.handlers.values()
        self._paces = {handler.kind: Pace() for handler in handlers}
        self._places = {
            handler.kind: threading.Semaphore(max(1, int(threads * handler.share))) for handler in handlers
        }
        #: When a batch of each kind was last begun, by count: the kind that has waited longest is asked first.
        self._begun = dict.fromkeys(self._places, 0)
        #: When each kind was last seen to have nothing due.
        self._empty = dict.fromkeys(self._places, -EMPTY_SECONDS)
        self._count = itertools.count(1)
        self._watch = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._work_for_ever, name=f"nexus-worker-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        self._outbox.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        log.info("worker_stopping", first="the work under way ends")
        self._app.tools.ears.stop()
        self._bell.ring_for_all()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._outbox.close(max(0.0, deadline - time.monotonic()))

    def _work_for_ever(self) -> None:
        while not self._stopping.is_set():
            try:
                mark = self._bell.mark()
                if not self._work_once():
                    self._wait(mark)
            except Exception as error:
                log.error("worker_stumbled", reason=type(error).__name__)  # noqa: TRY400
                self._stopping.wait(PAUSE_AFTER_ERROR)

    def _wait(self, mark: int) -> None:
        """Wait for the bell. One idle thread also looks at intervals: that is enough to find what nobody announced."""
        if not self._watch.acquire(blocking=False):
            self._bell.wait(mark, None)
            return
        try:
            self._bell.wait(mark, self._app.settings.poll_seconds)
        finally:
            self._watch.release()

    def _work_once(self) -> bool:
        """Do one batch of work; return whether there was any. Kinds of work take turns, too."""
        lately = time.monotonic() - EMPTY_SECONDS
        in_turn = sorted(
            self._kernel.handlers.values(),
            key=lambda handler: (self._empty[handler.kind] > lately, self._begun[handler.kind]),
        )
        return any(self._work_on(handler) for handler in in_turn)

    def _work_on(self, handler: Handler[Any, Any]) -> bool:
        """Do work of this kind; return whether there was any, and a thread to spare for it."""
        if not self._places[handler.kind].acquire(blocking=False):
            return False
        try:
            # Long work is claimed one by one, so that no thread idles while another has a queue of it.
            batch = self._paces[handler.kind].batch() if handler.settles_together else 1
            claims = self._turns.claim(handler, batch)
            if not claims:
                self._empty[handler.kind] = time.monotonic()
            else:
                self._begun[handler.kind] = next(self._count)
                self._bell.ring()  # for a thread that takes what is left, or watches instead of this one
            self._work_through(handler, claims)
            return bool(claims)
        finally:
            self._places[handler.kind].release()

    def _work_through(self, handler: Handler[Any, Any], claims: list[Claim[Any]]) -> None:
        left = {claim.hold: claim for claim in claims}
        self._kernel.leases.take(left)
        try:
            while left and not self._stopping.is_set():
                claim = left.pop(next(iter(left)))
                if not self._kernel.leases.holds(claim.hold):
                    continue  # those before it took so long that another worker may have it
                began = time.monotonic()
                self._finish(handler, claim)
                self._paces[handler.kind].took(time.monotonic() - began)
        finally:
            if left:
                self._kernel.give_back(left)

    def _finish(self, handler: Handler[Any, Any], claim: Claim[Any]) -> None:
        if not handler.settles_together:
            self._kernel.finish(claim)
            return
        try:
            ended = self._kernel.attempt(claim)
        except BaseException:
            self._kernel.leases.let_go(claim.hold)
            raise
        self._outbox.put(ended)


class Rounds:
    """Does one thing at intervals, in a thread of its own, as long as the process lives."""

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
        """Stop the thread, if it was ever started: a Celery worker may never find its broker."""
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
        self._app.kernel.sweep(self._app.queue, self._stopping.is_set)


class Upkeep(Rounds):
    """Removes what crashes left behind, every hour or so: what `nexus clean --remove` would, as far as that is safe
    without anybody looking. Not at once, because a start has more urgent things to do."""

    def __init__(self, app: App) -> None:
        seconds = app.settings.upkeep_hours * 3600
        super().__init__("upkeep", self._keep_up, seconds, min(seconds, FIRST_UPKEEP_SECONDS))
        self._app = app

    def _keep_up(self) -> None:
        with clean.only_cleaner(self._app.sessions) as granted:
            if granted:
                self._clean()

    def _clean(self) -> None:
        removed = Counter(imports=self._app.imports.abandoned(remove=True))
        stopped = self._stopping.is_set
        removed.update(
            each.kind for each in clean.remove_safe_leftovers(self._app.sessions, self._app.files, stopped)
        )
        if removed.total():
            log.info("upkeep_removed", **{kind: many for kind, many in removed.items() if many})


class Forgetting(Rounds):
    """Deletes old entries of the audit log and expired invitations, as often as upkeep is done. Unlike upkeep, this
    is done with every store: it touches the database alone."""

    def __init__(self, app: App) -> None:
        seconds = app.settings.upkeep_hours * 3600
        super().__init__("forgetting", self._forget, seconds, min(seconds, FIRST_UPKEEP_SECONDS))
        self._app = app

    def _forget(self) -> None:
        forgotten = retention.forget_old(self._app.sessions, self._app.settings.audit_days)
        if any(forgotten.values()):
            log.info("forgotten", **forgotten)


class VectorSets(Rounds):
    """Asks for vectors that the present model has not made yet, and removes those of others when it has made all."""

    def __init__(self, app: App) -> None:
        super().__init__("vectors", self._keep, VECTOR_SECONDS)
        self._app = app

    def _keep(self) -> None:
        embedder = present_embedder(self._app.tools)
        if embedder is not None:
            keep_sets(self._app.sessions, embedder.model)
            self._app.queue.bell.ring()


class WordCounts(Rounds):
    """Counts how rare each word is, for PostgreSQL to rank by: SQLite knows."""

    def __init__(self, app: App) -> None:
        super().__init__("counts", self._count, COUNT_SECONDS, FIRST_UPKEEP_SECONDS)
        self._app = app

    def _count(self) -> None:
        with self._app.sessions.begin() as session:
            refresh_counts(session)


def rounds(app: App) -> list[Rounds]:
    """Return what a working process does at intervals."""
    upkeep: list[Rounds] = [Upkeep(app)] if app.settings.does_upkeep else []
    return [Sweeper(app), Forgetting(app), VectorSets(app), WordCounts(app), *upkeep]
