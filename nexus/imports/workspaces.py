"""Where an attempt keeps what it has done so far: a folder that is gone when the attempt ends.

Each process has a folder of its own, and holds a lock on it for as long as it lives. The system lets go of the lock
with the process, however it ends: what nobody holds was abandoned, and the next start removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

from nexus import logging

log = logging.get(__name__)

LOCK = "held"
PIECES = "pieces"
STAGED = "staged"
SERVING = "serving"


class WorkspaceFailed(Exception):
    """The folder of an attempt can't be made, or is gone. Free some disk space, then start anew."""


class Workspace:
    """Pieces of an attempt's work, each there whole or not at all.

    They lie one behind the other in one file, since a file for each would take longer than the pieces themselves.
    Where they begin is known here alone: they are of no use to another process.
    """

    def __init__(self, attempt_id: UUID, folder: Path) -> None:
        self.attempt_id = attempt_id
        self._folder = folder
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._file = os.open(folder / PIECES, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # Not before the last one who may still write: by then its number could mean another file.
        weakref.finalize(self, os.close, self._file)

    @property
    def is_there(self) -> bool:
        """Unless somebody took its folder away."""
        return self._folder.is_dir()

    def put(self, name: str, data: bytes) -> None:
        """Raises OSError where there is no room for it."""
        with self._lock:
            start, self._end = self._end, self._end + len(data)
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, memoryview(data)[written:], start + written)
        self._places[name] = start, len(data)

    def get(self, name: str) -> bytes | None:
        place = self._places.get(name)
        return None if place is None else os.pread(self._file, place[1], place[0])

    def has(self, name: str) -> bool:
        return name in self._places

    def drop(self, name: str) -> None:
        self._places.pop(name, None)

    def remove(self) -> None:
        """What can't be removed now is removed at the next start."""
        shutil.rmtree(self._folder, ignore_errors=True)


class Workspaces:
    """Those of this process."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._lock = threading.Lock()
        self._held: int | None = None
        self._serving: int | None = None
        self._own = base
        self._known: dict[UUID, Workspace] = {}
        self._abandoned = False

    def create(self, attempt_id: UUID) -> Workspace:
        """Raises WorkspaceFailed."""
        with self._lock:
            try:
                self._hold()
                folder = self._own / attempt_id.hex
                folder.mkdir(mode=0o700)
                made = self._known[attempt_id] = Workspace(attempt_id, folder)
            except OSError as error:
                raise WorkspaceFailed from error
        return made

    def room(self) -> Path:
        """Where copies of files wait that were sent to be imported. Raises WorkspaceFailed."""
        with self._lock:
            try:
                self._hold()
                (self._own / STAGED).mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise WorkspaceFailed from error
        return self._own / STAGED

    def find(self, attempt_id: UUID) -> Workspace | None:
        """None for an attempt that has none here, or whose folder somebody took away."""
        found = self._known.get(attempt_id)
        return found if found is not None and found.is_there else None

    def remove(self, attempt_id: UUID) -> None:
        found = self._known.get(attempt_id)
        if found is not None:
            found.remove()
        with self._lock:
            self._known.pop(attempt_id, None)

    def abandon(self, attempt_id: UUID) -> None:
        """This process is ending: the next one removes it."""
        with self._lock:
            self._known.pop(attempt_id, None)
            self._abandoned = True

    def serve(self) -> bool:
        """Whether this process is the one that has imports over HTTP: the first that asks, while it lives."""
        with self._lock:
            if self._serving is None:
                with suppress(OSError):
                    self._base.mkdir(parents=True, mode=0o700, exist_ok=True)
                    self._serving = _locked(self._base / SERVING)
            return self._serving is not None

    def clean(self, *, remove: bool = True) -> int:
        """Remove what processes left behind that are no more, or only look; how many of them."""
        found = [path for path in self._base.iterdir() if path.is_dir()] if self._base.is_dir() else []
        abandoned = sum(_is_abandoned(folder, remove) for folder in found if folder != self._own)
        if abandoned and remove:
            log.info("workspaces_removed", count=abandoned)
        return abandoned

    def close(self) -> None:
        """Where no attempt was abandoned, nothing is left for the next start."""
        with self._lock:
            if self._held is not None and not self._abandoned:
                with suppress(OSError):
                    _remove(self._own)
            for line in (self._held, self._serving):
                if line is not None:
                    os.close(line)
            self._held = self._serving = None

    def _hold(self) -> None:
        """A folder that somebody else locks first is being removed by him: then another, as for one that was taken
        away."""
        if self._held is not None and not _is_at(self._held, self._own / LOCK):
            os.close(self._held)
            self._held = None
        while self._held is None:
            self._own = self._base / uuid4().hex
            self._own.mkdir(parents=True, mode=0o700)
            with suppress(BlockingIOError, FileNotFoundError):
                held = _locked(self._own / LOCK)
                if _is_at(held, self._own / LOCK):
                    self._held = held
                else:
                    os.close(held)


def _is_at(line: int, path: Path) -> bool:
    """Whether it is this very file that stands there."""
    try:
        return os.path.samestat(os.fstat(line), path.stat())
    except OSError:
        return False


def _locked(path: Path) -> int:
    """Raises BlockingIOError where another process holds it."""
    line = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(line)
        raise
    return line


def _is_abandoned(folder: Path, remove: bool) -> bool:
    """Whether nobody holds it; then it is removed, if that is wanted."""
    if not (folder / LOCK).exists():
        # Just being made, or all but removed: only an empty one goes, and who is making it makes another.
        with suppress(OSError):
            folder.rmdir()
        return False
    with suppress(OSError):
        line = _locked(folder / LOCK)
        try:
            if remove:
                _remove(folder)
        finally:
            os.close(line)
        return True
    return False


def _remove(folder: Path) -> None:
    """The lock last: who is cut off leaves a folder that the next one finds abandoned. What can't be removed now is
    removed then."""
    for path in folder.iterdir():
        if path.name != LOCK:
            shutil.rmtree(path, ignore_errors=True)
    if [path.name for path in folder.iterdir()] == [LOCK]:
        (folder / LOCK).unlink()
        folder.rmdir()
