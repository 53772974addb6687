"""A process that freezes itself, once, at the moment that FREEZE_AT names: NEXUS_PLUGINS=tests.kit.plugins.freeze_once.

Its transactions on PostgreSQL may be idle for only half a second, so that a test soon sees
that the server does not end them.
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
from nexus.media import uploads
from nexus.storage.local import LocalStorage

FREEZE_AT = "FREEZE_AT"
IDLE_SECONDS = 0.5

_done = threading.Event()
_refusing = threading.local()


def freeze() -> None:
    """Stop this very thread by a signal; one to the process might reach another thread first."""
    if not _done.is_set():
        _done.set()
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def is_frozen(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def after_the_commit_of_a_refusal() -> None:
    """Freeze when an upload that is no PDF has failed and its bytes are still stored."""
    mark_failed, begin = uploads.mark_failed, Sessions.begin

    def noted(*given: Any, **named: Any) -> bool:
        _refusing.now = True
        return mark_failed(*given, **named)

    @contextmanager
    def begun(sessions: Sessions) -> Iterator[Session]:
        with begin(sessions) as opened:
            yield opened
        if getattr(_refusing, "now", False):
            freeze()

    uploads.mark_failed = noted
    Sessions.begin = begun  # type: ignore[method-assign]


def before_an_object_is_deleted() -> None:
    delete = LocalStorage.delete

    def deleted(store: LocalStorage, path: str) -> None:
        freeze()
        delete(store, path)

    LocalStorage.delete = deleted  # type: ignore[method-assign]


MOMENTS = {
    "after the commit": after_the_commit_of_a_refusal,
    "before the deletion": before_an_object_is_deleted,
}

if moment := os.environ.get(FREEZE_AT):
    limit = f" -c idle_in_transaction_session_timeout={int(IDLE_SECONDS * 1000)}ms"
    postgres.PATIENCE["options"] += limit
    MOMENTS[moment]()
