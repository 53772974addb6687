"""Preflight: reads each staged file once, says what is wrong with it, and finds out whether the user has it already."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from io import FileIO
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, select

from nexus.db.session import Query, Session
from nexus.db.tables import media
from nexus.errors import FileMissing, FileTooLarge, PdfNoText
from nexus.imports.staging import StagedSource, require_kind
from nexus.media.files import Files
from nexus.states.media import MediaStatus, Stage
from nexus.storage.digest import Digester

PIECE = 1024 * 1024
CHANGED = "This file has changed since it was checked. Resume the import to read it again."
_FileStamp = tuple[int, int, int, int, int]


class _SameFile(NamedTuple):
    id: UUID
    processing_status: MediaStatus
    failure_stage: Stage | None
    last_error_code: str | None


_SAME_FILE = Query(
    select(*(media.c[name] for name in _SameFile._fields)).where(
        media.c.created_by_user_id == bindparam("user_id"),
        media.c.kind == bindparam("kind"),
        media.c.file_sha256 == bindparam("sha256"),
    ),
    _SameFile,
)


class Standing(Enum):
    """What the user already has of a file."""

    NEW = auto()  #: nothing
    UNREAD = auto()  #: the file, but its text could not be read: this import tries again
    KNOWN = auto()  #: file and text, or a scan: the item only needs to go into the library


@dataclass(frozen=True)
class Checked:
    """A file as it was in preflight. The file that is committed must be the same."""

    source: StagedSource
    size: int
    sha256: str
    stamp: _FileStamp

    @property
    def is_same(self) -> bool:
        """Whether nobody has touched the file since."""
        try:
            return self.stamp == _stamp(self.source.path.stat())
        except OSError:
            return False


@dataclass(frozen=True)
class Candidate:
    """A checked file, and the media that it is or will be."""

    checked: Checked
    media_id: UUID
    standing: Standing

    @property
    def source(self) -> StagedSource:
        return self.checked.source


def check_source(source: StagedSource, files: Files, stopped: Callable[[], bool]) -> Checked:
    """Read a file to its end; raises what is wrong with it.

    If `stopped` becomes true meanwhile, the rest was not read and the result is worthless.
    """
    most = files.most_bytes[source.kind]
    digester = Digester()
    with open_source(source.path) as file:
        stamp = _stamp(os.fstat(file.fileno()))
        for piece in files.scanned(iter(partial(file.read, PIECE), b"")):
            digester.update(piece)
            if digester.size > most:
                raise FileTooLarge(f"This file is larger than {most // 2**20} MiB. Nexus can't import it.")
            if stopped():
                break
    found = digester.result()
    require_kind(source.kind, found.head)
    return Checked(source, found.size, found.sha256, stamp)


def find_candidate(session: Session, viewer: UUID, checked: Checked) -> Candidate:
    """Look for the same file among the viewer's own."""
    same = session.first(_SAME_FILE, user_id=viewer, kind=checked.source.kind.value, sha256=checked.sha256)
    if same is None:
        return Candidate(checked, uuid4(), Standing.NEW)
    has_failed = same.processing_status is MediaStatus.FAILED and same.failure_stage is not Stage.EMBED
    unread = has_failed and same.last_error_code != PdfNoText.code
    return Candidate(checked, same.id, Standing.UNREAD if unread else Standing.KNOWN)


@contextmanager
def open_source(path: Path) -> Iterator[FileIO]:
    """Raises FileMissing if the file can't be opened, or for an OSError inside the block."""
    try:
        with FileIO(path) as file:
            yield file
    except OSError as error:
        raise FileMissing(
            "This file can't be read. Check that it exists and that you have permission to read it, then resume."
        ) from error


def read_pieces(path: Path) -> Iterator[bytes]:
    """Raises FileMissing."""
    with open_source(path) as file:
        while piece := file.read(PIECE):
            yield piece


def _stamp(stat: os.stat_result) -> _FileStamp:
    """Differs for another file, and for the same one after a write, even if its mtime was set back."""
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
