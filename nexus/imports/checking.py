"""Before anything runs: each file is read once, and what is wrong with it is said by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from io import FileIO
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import bindparam, select

from nexus.db.session import Session, Statement
from nexus.db.tables import media
from nexus.errors import FileMissing, FileTooLarge
from nexus.imports.staging import Source, require_kind
from nexus.media.files import Files
from nexus.states.media import Kind, Stage, Status
from nexus.storage.digest import Digester

PIECE = 1024 * 1024
CHANGED = "This file has changed since it was checked. Go on, and it is read anew."
Identity = tuple[int, int, int, int, int]

_TWIN = Statement(
    select(media.c.id, media.c.processing_status, media.c.failure_stage).where(
        media.c.created_by_user_id == bindparam("user_id"),
        media.c.kind == bindparam("kind"),
        media.c.file_sha256 == bindparam("sha256"),
    )
)


class Standing(Enum):
    """What the user has of a file."""

    NEW = auto()  #: nothing
    UNREAD = auto()  #: the file, whose text could not be read: this import tries it again
    KNOWN = auto()  #: all of it: it only needs to be put into the library


@dataclass(frozen=True)
class Checked:
    """A file as it is: what it is committed as must be the same."""

    source: Source
    size: int
    sha256: str
    identity: Identity

    @property
    def is_same(self) -> bool:
        """Whether nobody has touched it since."""
        try:
            return self.identity == _identity(self.source.path.stat())
        except OSError:
            return False


@dataclass(frozen=True)
class Candidate:
    """A file, and the media that it is or will be."""

    checked: Checked
    media_id: UUID
    standing: Standing

    @property
    def source(self) -> Source:
        return self.checked.source


def check(source: Source, files: Files, stopped: Callable[[], bool]) -> Checked:
    """Raises what is wrong with it. Where somebody stopped it, it was not read to its end."""
    most = most_bytes(files, source.kind)
    digester = Digester()
    with opened(source.path) as file:
        identity = _identity(os.fstat(file.fileno()))
        while piece := file.read(PIECE):
            digester.update(piece)
            if digester.size > most:
                raise FileTooLarge(f"This file is larger than {most // 2**20} MiB. Nexus can't take it in.")
            if stopped():
                break
    found = digester.result()
    require_kind(source.kind, found.head)
    return Checked(source, found.size, found.sha256, identity)


def candidate(session: Session, viewer: UUID, checked: Checked) -> Candidate:
    """By the same file among the user's own."""
    twin = session.first(_TWIN, user_id=viewer, kind=checked.source.kind.value, sha256=checked.sha256)
    if twin is None:
        return Candidate(checked, uuid4(), Standing.NEW)
    unread = Status(twin.processing_status) is Status.FAILED and twin.failure_stage != Stage.EMBED.value
    return Candidate(checked, twin.id, Standing.UNREAD if unread else Standing.KNOWN)


@contextmanager
def opened(path: Path) -> Iterator[FileIO]:
    """Raises FileMissing, also for what goes wrong while it is read."""
    try:
        with FileIO(path) as file:
            yield file
    except OSError as error:
        raise FileMissing(
            "This file can't be read. Check that it is there and that you may read it, then go on."
        ) from error


def pieces(path: Path) -> Iterator[bytes]:
    """Raises FileMissing."""
    with opened(path) as file:
        while piece := file.read(PIECE):
            yield piece


def _identity(stat: os.stat_result) -> Identity:
    """Another file has another, and so has this one once somebody wrote to it, whatever time he gave it then."""
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def most_bytes(files: Files, kind: Kind) -> int:
    """A text may be as long as a book."""
    return files.most_bytes.get(kind, files.most_bytes[Kind.EPUB])
