"""Attempts that have ended, on their way into the database: those that end while others are written go together."""

from __future__ import annotations

import threading
from collections import deque

from nexus import logging
from nexus.db.patience import insist
from nexus.media import runner
from nexus.media.runner import Done
from nexus.media.workbench import Tools

log = logging.get(__name__)

#: Written together, and also how many may wait: then whoever brings another waits.
MOST = 32
#: Their text, in characters; one that is larger goes alone.
MOST_TEXT = 8_000_000


class Outbox:
    """One per process, with a thread of its own. Nothing waits for company. A lease is let go when its result is
    written."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._waiting: deque[Done] = deque()
        lock = threading.Lock()
        self._news, self._room = threading.Condition(lock), threading.Condition(lock)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_for_ever, name="nexus-outbox", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float) -> None:
        """What is there is written first, unless that takes too long."""
        self._closing.set()
        with self._news:
            self._news.notify()
        self._thread.join(seconds)

    def put(self, done: Done) -> None:
        with self._room:
            self._room.wait_for(lambda: len(self._waiting) < MOST)
            self._waiting.append(done)
            self._news.notify()

    def _write_for_ever(self) -> None:
        while batch := self._next():
            self._write(batch)
            self._tools.leases.let_go(*(done.hold for done in batch))

    def _next(self) -> list[Done]:
        """What waits now, as much of it as goes together; nothing when the outbox is closed and empty."""
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._closing.is_set())
            batch: list[Done] = []
            size = 0
            while self._waiting:
                size += self._waiting[0].size
                if batch and size > MOST_TEXT:
                    break
                batch.append(self._waiting.popleft())
            self._room.notify(len(batch))
            return batch

    def _write(self, batch: list[Done]) -> None:
        """One that the database refuses must not take its neighbours with it."""
        try:
            runner.settle(self._tools, batch)
        except Exception as error:
            log.warning("results_refused", count=len(batch), reason=type(error).__name__)
            for done in batch:
                self._write_alone(done)

    def _write_alone(self, done: Done) -> None:
        """What was written with the batch before it broke stays as it is."""
        try:
            insist(lambda: runner.settle(self._tools, [done]), self._closing.wait)
        except Exception as error:
            log.error("result_refused", media_id=str(done.claim.id), reason=type(error).__name__)  # noqa: TRY400
