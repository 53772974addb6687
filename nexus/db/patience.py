"""Results outlive a database that is away: what was found is written again until it is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from nexus import logging
from nexus.db.drivers import is_away
from nexus.db.session import Session, Sessions

log = logging.get(__name__)
T = TypeVar("T")

#: How long a database that is away is waited for, in seconds, before what was found is left to its lease.
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)


def insist(write: Callable[[], T], wait: Callable[[float], object] = time.sleep) -> T:
    """Write a result, and write it again while the database is away. Raises its last error.

    The answer to a COMMIT can be lost, so `write` must be fenced: its second time must do no harm.
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
    """The same for what is written in one transaction."""

    def once() -> T:
        with sessions.begin() as session:
            return write(session)

    return insist(once)
