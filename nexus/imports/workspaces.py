"""Where an attempt keeps what it has done so far: a folder that is removed when the attempt ends.

Each process has its own folder and holds a lock on it while it lives. The system releases the lock when the process
ends, however that happens. A folder without a lock is abandoned, and the next process removes it.
docs/decisions/0023-locks-and-links.md says why the lock is our own.
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
from nexus.errors import WorkspaceFailed

log = logging.get_logger(__name__)

LOCK = "held"
PIECES = "pieces"
STAGED = "staged"
SERVING = "serving"


class Workspace:
    """The pieces of work that an attempt has done, each of them whole.

    All lie in one file, because a file for each would take longer to create than to write. Only this object knows where
    each begins: they are of no use to another process.
    """

    def __init__(self, attempt_id: UUID, folder: Path) -> None:
        self.attempt_id = attempt_id
        self._folder = folder
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._file = os.open(folder / PIECES, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # Closed only when no thread can write any more: the same number could mean another file by then.
        weakref.finalize(self, os.close, self._file)

    @property
    def is_there(self) -> bool:
        """Whether its folder still exists."""
        return self._folder.is_dir()

    def put(self, name: str, data: bytes) -> None:
        """Keep a piece under a name. Raises OSError if the disk is full."""
        with self._lock:
            start, self._end = self._end, self._end + len(data)
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, memoryview(data)[written:], start + written)
        self._places[name] = start, len(data)

    def get(self, name: str) -> bytes | None:
        """Return a piece, or None if it was not put."""
        place = self._places.get(name)
        return None if place is None else os.pread(self._file, place[1], place[0])

    def has(self, name: str) -> bool:
        return name in self._places

    def drop(self, name: str) -> None:
        self._places.pop(name, None)

    def remove(self) -> None:
        """Remove the folder; what can't be removed now is removed by the next process."""
        shutil.rmtree(self._folder, ignore_errors=True)


class Workspaces:
    """The workspaces of this process."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._lock = threading.Lock()
        self._held: int | None = None
        self._serving: int | None = None
        self._own = base
        self._known: dict[UUID, Workspace] = {}
        self._abandoned = False

    def create(self, attempt_id: UUID) -> Workspace:
        """Create an attempt's workspace. Raises WorkspaceFailed."""
        with self._lock:
            try:
                self._hold()
                folder = self._own / attempt_id.hex
                folder.mkdir(mode=0o700)
                made = self._known[attempt_id] = Workspace(attempt_id, folder)
            except OSError as error:
                raise WorkspaceFailed from error
        return made

    def staging_folder(self) -> Path:
        """Return the folder for copies of uploaded files. Raises WorkspaceFailed."""
        with self._lock:
            try:
                self._hold()
                (self._own / STAGED).mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise WorkspaceFailed from error
        return self._own / STAGED

    def find(self, attempt_id: UUID) -> Workspace | None:
        """Return an attempt's workspace, or None if it has none or its folder is gone."""
        found = self._known.get(attempt_id)
        return found if found is not None and found.is_there else None

    def remove(self, attempt_id: UUID) -> None:
        found = self._known.get(attempt_id)
        if found is not None:
            found.remove()
        with self._lock:
            self._known.pop(attempt_id, None)

    def abandon(self, attempt_id: UUID) -> None:
        """Leave a workspace to the next process: this one is ending."""
        with self._lock:
            self._known.pop(attempt_id, None)
            self._abandoned = True

    def serve(self) -> bool:
        """Whether this process serves imports over HTTP: the first that asks does, while it lives."""
        with self._lock:
            if self._serving is None:
                with suppress(OSError):
                    self._base.mkdir(parents=True, mode=0o700, exist_ok=True)
                    self._serving = _open_locked(self._base / SERVING)
            return self._serving is not None

    def clean(self, *, remove: bool = True) -> int:
        """Remove what ended processes left behind, or only look; return how many of them there are."""
        found = [path for path in self._base.iterdir() if path.is_dir()] if self._base.is_dir() else []
        abandoned = sum(_is_abandoned(folder, remove) for folder in found if folder != self._own)
        if abandoned and remove:
            log.info("workspaces_removed", count=abandoned)
        return abandoned

    def close(self) -> None:
        """Release the locks. Leave the folder to the next process only if an attempt was abandoned."""
        with self._lock:
            if self._held is not None and not self._abandoned:
                with suppress(OSError):
                    _remove(self._own)
            for line in (self._held, self._serving):
                if line is not None:
                    os.close(line)
            self._held = self._serving = None

    def _hold(self) -> None:
        """Create and lock this process's folder, if it has none or somebody removed it.

        If another process locks the new folder first, it is about to remove it: try another one.
        """
        if self._held is not None and not _is_at(self._held, self._own / LOCK):
            os.close(self._held)
            self._held = None
        while self._held is None:
            self._own = self._base / uuid4().hex
            self._own.mkdir(parents=True, mode=0o700)
            with suppress(BlockingIOError, FileNotFoundError):
                held = _open_locked(self._own / LOCK)
                if _is_at(held, self._own / LOCK):
                    self._held = held
                else:
                    os.close(held)


def _is_at(line: int, path: Path) -> bool:
    """Whether the open file is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(line), path.stat())
    except OSError:
        return False


def _open_locked(path: Path) -> int:
    """Open and lock a file. Raises BlockingIOError if another process holds the lock."""
    line = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(line)
        raise
    return line


def _is_abandoned(folder: Path, remove: bool) -> bool:
    """Whether nobody holds it. With `remove`, an abandoned folder is removed."""
    if not (folder / LOCK).exists():
        # Just being created, or nearly removed. Only an empty one is removed; its creator then tries another.
        with suppress(OSError):
            folder.rmdir()
        return False
    with suppress(OSError):
        line = _open_locked(folder / LOCK)
        try:
            if remove:
                _remove(folder)
        finally:
            os.close(line)
        return True
    return False


def _remove(folder: Path) -> None:
    """Remove the lock file last: if this is cut short, the next process finds the folder abandoned."""
    for path in folder.iterdir():
        if path.name != LOCK:
            shutil.rmtree(path, ignore_errors=True)
    if [path.name for path in folder.iterdir()] == [LOCK]:
        (folder / LOCK).unlink()
        folder.rmdir()
