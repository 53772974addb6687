"""Keeps results while the database is away, and writes them when it is back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from nexus import logging
from nexus.db.drivers import is_away
from nexus.db.session import Session, Sessions

log = logging.get_logger(__name__)
T = TypeVar("T")

#: How long to wait for a database that is away, in seconds. Then the work is left to its lease.
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)


def insist(write: Callable[[], T], wait: Callable[[float], object] = time.sleep) -> T:
    """Call `write`, and repeat it while the database is away. Raises the last error.

    The answer to a COMMIT can be lost, so `write` must be fenced: a second call must do no harm.
    """
    for pause in PAUSES:
        try:
            return write()
        except Exception as error:
            if not is_away(error):
                raise
            log.warning("result_waits", reason=type(error).__name__, seconds=pause)
            wait(pause)
    return write()


def insist_on(sessions: Sessions, write: Callable[[Session], T]) -> T:
    """The same for a `write` that runs in one transaction."""

    def once() -> T:
        with sessions.begin() as session:
            return write(session)

    return insist(once)
