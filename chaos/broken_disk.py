"""A disk that is full or read-only while a file says so: NEXUS_PLUGINS=chaos.broken_disk.

Python asks its audit hooks before it opens, makes or removes a file. This one refuses below the folder that
CHAOS_DISK names, as the kernel would, while `full` or `read-only` stands beside it. So it breaks whatever writes
there, without root, and whatever code does it.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

FOLDER = "CHAOS_DISK"
FULL, READ_ONLY = ".full", ".read-only"
#: The suffix of the file that says that a broken disk has refused something.
REFUSED = ".refused"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MAKING = {"os.mkdir", "os.link", "os.rename"}
_REMOVING = {"os.remove", "os.rmdir"}


def flag(folder: Path, kind: str) -> Path:
    """Return the file that breaks the disk below the folder in this way while it exists."""
    return folder.with_name(folder.name + kind)


def _refuse(event: str, given: tuple[object, ...]) -> None:
    writes = event in _MAKING or (event == "open" and isinstance(given[2], int) and given[2] & _WRITING)
    if not (writes or event in _REMOVING) or not _is_below(given[0]):
        return
    if os.path.exists(_READ_ONLY):  # noqa: PTH110
        raise _refusal(_READ_ONLY, errno.EROFS)
    if writes and os.path.exists(_FULL):  # noqa: PTH110
        raise _refusal(_FULL, errno.ENOSPC)


def _refusal(broken: str, code: int) -> OSError:
    Path(broken + REFUSED).touch()
    return OSError(code, os.strerror(code))


def _is_below(path: object) -> bool:
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(_BELOW)


if _named := os.environ.get(FOLDER):
    _BELOW = os.path.join(_named, "")  # noqa: PTH118
    _FULL, _READ_ONLY = (os.fspath(flag(Path(_named), kind)) for kind in (FULL, READ_ONLY))
    sys.addaudithook(_refuse)
