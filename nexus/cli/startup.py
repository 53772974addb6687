"""Starts a server or a worker. If the database or the broker is away, it waits and says so, instead of ending."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from nexus import logging
from nexus.app import App
from nexus.cli.failures import explain, is_refusal
from nexus.db import migrate
from nexus.db.drivers import is_away
from nexus.queue import Away
from nexus.web.http.readiness import STARTING, Readiness

log = logging.get_logger(__name__)

#: Seconds between two tries to reach something that is away.
LOOK_SECONDS = 1.0
#: Seconds between two log lines about it.
REMIND_SECONDS = 60.0


class ServerPart(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


class Opening:
    """Starts the other parts once the database is there and migrated, in a thread of its own.

    It is ready once the broker has been reached too; `ready` is called again if the database goes away meanwhile. It
    waits only for PostgreSQL and the broker: a broken SQLite file or a wrong password stays wrong until somebody
    corrects it.
    """

    def __init__(
        self,
        app: App,
        parts: list[ServerPart],
        ready: Callable[[], None],
        broke: Callable[[], None],
        readiness: Readiness | None = None,
    ) -> None:
        self._app = app
        self._parts = parts
        self._ready, self._broke = ready, broke
        self._readiness = readiness or Readiness()
        self._readiness.close()
        self._lock = threading.Lock()
        self._started: list[ServerPart] = []
        self._stopping = threading.Event()
        #: The error that ended it, once `broke` was called.
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="nexus-opening", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop at once, even while connecting: the thread ends with the process."""
        with self._lock:
            self._stopping.set()
        for part in self._started:
            part.stop()

    def _run(self) -> None:
        try:
            self._open()
        except Exception as error:
            self.failure = error
            self._broke()

    def _open(self) -> None:
        if not self._until("database", self._migrate, self._is_database_away):
            return
        with self._lock:
            if self._stopping.is_set():
                return
            self._app.imports.open()
            for part in self._parts:
                self._started.append(part)
                part.start()
        self._readiness.is_open, self._readiness.reason = True, STARTING
        if self._until("broker", self._app.queue.reach, lambda error: isinstance(error, Away)):
            self._until("database", self._announce, self._is_database_away)

    def _announce(self) -> None:
        self._readiness.reason = None
        self._ready()

    def _migrate(self) -> None:
        migrate.upgrade_schema(self._app.settings.database)

    def _is_database_away(self, error: Exception) -> bool:
        is_file = self._app.sessions.engine.dialect.name == "sqlite"
        return not is_file and is_away(error) and not is_refusal(error)

    def _until(self, name: str, look: Callable[[], None], away: Callable[[Exception], bool]) -> bool:
        """Wait for something; return False if the process is stopped first. Raises errors that waiting can't cure."""
        said = -REMIND_SECONDS
        while not self._stopping.is_set():
            try:
                look()
            except Exception as error:
                if not away(error):
                    raise
                if time.monotonic() - said >= REMIND_SECONDS:
                    said = time.monotonic()
                    self._say(name, error)
            else:
                return True
            self._stopping.wait(LOOK_SECONDS)
        return False

    def _say(self, name: str, error: Exception) -> None:
        sentence, _ = explain(error) or (f"The {name} can't be reached.", 1)
        log.warning(f"waiting_for_{name}", says=sentence)
        # Leave out the driver's message: it names hosts and users, and anybody may ask /readyz.
        self._readiness.reason = sentence.partition(" (")[0]
