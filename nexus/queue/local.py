"""Worker threads of this process, woken at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from uuid import UUID

from nexus.queue import Queue

#: Request ids are for log lines: past this many, the oldest are forgotten, and their work is done all the same.
REMEMBERED = 10_000


class Local(Queue):
    workers_look = True

    def __init__(self) -> None:
        super().__init__()
        self._wake = threading.Condition()
        self._news = 0
        self._requests: OrderedDict[UUID, str] = OrderedDict()

    def tell(self, media_id: UUID, request_id: str | None) -> bool:
        with self._wake:
            if request_id is not None:
                self._requests[media_id] = request_id
                if len(self._requests) > REMEMBERED:
                    self._requests.popitem(last=False)
            self._news += 1
            self._wake.notify()
        return True

    def idle(self) -> bool:
        return True

    def request_id(self, media_id: UUID) -> str | None:
        """Who asked for this media, once."""
        with self._wake:
            return self._requests.pop(media_id, None)

    def news(self) -> int:
        """A mark of what has been announced so far; read it before looking for work."""
        return self._news

    def wait(self, seen: int, seconds: float) -> None:
        """Until something is announced after the mark, or the time is over."""
        with self._wake:
            self._wake.wait_for(lambda: self._news != seen, seconds)

    def wake_all(self) -> None:
        with self._wake:
            self._news += 1
            self._wake.notify_all()
