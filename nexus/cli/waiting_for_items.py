"""Waits until items come to rest, and does their work if nobody else does."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from uuid import UUID

from nexus.app import App
from nexus.cli.follow import rests
from nexus.errors import NotFound
from nexus.media import queries
from nexus.media.lifecycle import EXTRACTION
from nexus.media.queries import View
from nexus.media.recordings.timings import transcribed_so_far
from nexus.queue import Work
from nexus.queue.off import OffQueue
from nexus.states.capabilities import PLAYABLE
from nexus.states.media import MediaStatus

#: Seconds between two looks into the database while nothing ends here.
TICK = 0.2
#: After this many seconds without a change, tell the user what is going on.
SILENCE = 5.0

#: An item that has changed and its new state, None if it is gone; and the minute that is being transcribed.
Tell = Callable[[UUID, View | None, str], None]


class Hands:
    """Threads that work on chosen items. They are abandoned if the command ends early."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._todo: queue.SimpleQueue[UUID] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._taken: set[UUID] = set()
        self._error: Exception | None = None
        for number in range(app.settings.worker_threads):
            threading.Thread(target=self._work, name=f"nexus-hand-{number}", daemon=True).start()

    def take(self, media_id: UUID) -> None:
        """Start work on an item, unless it is already taken."""
        with self._changed:
            if media_id not in self._taken:
                self._taken.add(media_id)
                self._todo.put(media_id)

    def wait(self, seconds: float) -> None:
        """Wait until one run ends or the time is over. Raises what broke a run, such as a database that is away."""
        with self._changed:
            self._changed.wait(seconds)
            if self._error is not None:
                raise self._error

    def _work(self) -> None:
        while True:
            media_id = self._todo.get()
            error = None
            try:
                self._app.kernel.run(Work(EXTRACTION, media_id))
            except Exception as raised:
                error = raised
            with self._changed:
                self._error = self._error or error
                self._taken.discard(media_id)
                self._changed.notify_all()


class WaitForItems:
    """Waits until each item is readable, has failed, is gone, or can't be worked on here."""

    def __init__(
        self,
        app: App,
        viewer: UUID,
        media_ids: Iterable[UUID],
        tell: Tell,
        silent: Callable[[], None] = lambda: None,
    ) -> None:
        self._app = app
        self._silent = silent
        self._viewer = viewer
        self._tell = tell
        #: Items that are not at rest, and the status and the minute each was last seen in.
        self.left: dict[UUID, tuple[MediaStatus, str] | None] = dict.fromkeys(media_ids)
        self._hands = None if app.queue.works_elsewhere else Hands(app)
        self._swept = 0.0
        self._moved = time.monotonic()
        self._hinted = False

    def run(self) -> None:
        self._look()
        while self.left:
            if self._hands is None:
                time.sleep(TICK)
                self._break_silence()
            else:
                self._sweep()
                self._hands.wait(TICK)
            self._look()

    def give_back(self) -> None:
        """Make unfinished items due again at once, for any worker; late results of this process are refused."""
        self._app.kernel.give_back(self._app.kernel.leases.held())

    def _look(self) -> None:
        for media_id, before in list(self.left.items()):
            view, minute = self._view(media_id)
            is_over = view is None or rests(self._app, view)
            seen = None if view is None else (view.row.processing_status, minute)
            if is_over or seen != before:
                self._tell(media_id, view, minute)
                self._moved = time.monotonic()
            if view is None or is_over:
                del self.left[media_id]
                continue
            self.left[media_id] = seen
            status = view.row.processing_status
            due = view.row.run_after <= self._app.sessions.clock()
            if self._hands is not None and status is MediaStatus.PENDING and due:
                self._hands.take(media_id)

    def _view(self, media_id: UUID) -> tuple[View | None, str]:
        try:
            with self._app.sessions.read() as session:
                view = queries.get_media(session, media_id, self._viewer)
                listens = view.row.kind in PLAYABLE and view.row.processing_status is MediaStatus.EXTRACTING
                so_far = transcribed_so_far(session, media_id) if listens else None
        except NotFound:
            return None, ""
        return view, "" if so_far is None else f"minute {so_far.minute} of {so_far.minutes}"

    def _break_silence(self) -> None:
        """Say once that there may be no worker running."""
        if not self._hinted and time.monotonic() - self._moved > SILENCE:
            self._hinted = True
            self._silent()

    def _sweep(self) -> None:
        """Take back work of dead workers: without a server, nobody else does."""
        if time.monotonic() - self._swept > self._app.settings.sweep_seconds:
            self._app.kernel.sweep(OffQueue())
            self._swept = time.monotonic()
