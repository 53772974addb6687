"""Writes results of attempts into the database. Those that arrive while others are written go together."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from nexus import logging
from nexus.db.patience import insist
from nexus.work.handler import EndedAttempt
from nexus.work.kernel import Kernel

log = logging.get_logger(__name__)
AnyEnded = EndedAttempt[Any, Any]

#: How many results are written together, and how many may wait before a thread that adds one has to wait.
MOST = 32
#: The most text that is written together, in characters. A larger result goes alone.
MOST_TEXT = 8_000_000


class Outbox:
    """One per process, with a thread of its own. Nothing waits for company. A lease is let go when its result is
    written."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._waiting: deque[AnyEnded] = deque()
        lock = threading.Lock()
        self._news, self._room = threading.Condition(lock), threading.Condition(lock)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_for_ever, name="nexus-outbox", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, seconds: float) -> None:
        """Write what is there first, unless that takes too long."""
        self._closing.set()
        with self._news:
            self._news.notify()
        self._thread.join(seconds)

    def put(self, ended: AnyEnded) -> None:
        with self._room:
            self._room.wait_for(lambda: len(self._waiting) < MOST)
            self._waiting.append(ended)
            self._news.notify()

    def _write_for_ever(self) -> None:
        while batch := self._next():
            self._write(batch)
            self._kernel.leases.let_go(*(ended.claim.hold for ended in batch))

    def _next(self) -> list[AnyEnded]:
        """Return waiting results of one kind, as many as go together; none if the outbox is closed and empty."""
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._closing.is_set())
            batch: list[AnyEnded] = []
            size = 0
            while self._waiting:
                first = self._waiting[0]
                kind = first.claim.hold.work.kind
                size += self._kernel.handlers[kind].size_of(first.result)
                if batch and (size > MOST_TEXT or kind != batch[0].claim.hold.work.kind):
                    break
                batch.append(self._waiting.popleft())
            self._room.notify(len(batch))
            return batch

    def _write(self, batch: list[AnyEnded]) -> None:
        """Write a batch. If the database refuses it, write its results one by one."""
        try:
            self._kernel.settle(batch)
        except Exception as error:
            log.warning("results_refused", count=len(batch), reason=type(error).__name__)
            for ended in batch:
                self._write_alone(ended)

    def _write_alone(self, ended: AnyEnded) -> None:
        """Write results one by one. Those that were written before the batch broke stay."""
        try:
            insist(lambda: self._kernel.settle([ended]), self._closing.wait)
        except Exception as error:
            work = ended.claim.hold.work
            log.error("result_refused", kind=work.kind, id=str(work.id), reason=type(error).__name__)  # noqa: TRY400
