"""A process that freezes itself, once, at the moment that FREEZE_AT names: NEXUS_PLUGINS=tests.freezing.

Its transactions on PostgreSQL may be idle for half a second only, so that a test need not wait a minute to see that
one is not ended.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nexus.db.drivers import postgres
from nexus.db.session import Session, Sessions
from nexus.media import settle
from nexus.storage.local import Local

FREEZE_AT = "FREEZE_AT"
IDLE_SECONDS = 0.5

_done = threading.Event()
_refusing = threading.local()


def freeze() -> None:
    """By a signal to this very thread, which stops here: one to the process might find another thread first."""
    if not _done.is_set():
        _done.set()
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def is_frozen(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def after_the_commit_of_a_refusal() -> None:
    """Of an upload that is no PDF: it has failed, and its bytes are still there."""
    mark_failed, begin = settle.mark_failed, Sessions.begin

    def noted(*given: Any, **named: Any) -> bool:
        _refusing.now = True
        return mark_failed(*given, **named)

    @contextmanager
    def begun(sessions: Sessions) -> Iterator[Session]:
        with begin(sessions) as opened:
            yield opened
        if getattr(_refusing, "now", False):
            freeze()

    settle.mark_failed = noted
    Sessions.begin = begun  # type: ignore[method-assign]


def before_an_object_is_deleted() -> None:
    delete = Local.delete

    def deleted(store: Local, path: str) -> None:
        freeze()
        delete(store, path)

    Local.delete = deleted  # type: ignore[method-assign]


MOMENTS = {
    "after the commit": after_the_commit_of_a_refusal,
    "before the deletion": before_an_object_is_deleted,
}

if moment := os.environ.get(FREEZE_AT):
    limit = f" -c idle_in_transaction_session_timeout={int(IDLE_SECONDS * 1000)}ms"
    postgres.PATIENCE["options"] += limit
    MOMENTS[moment]()
