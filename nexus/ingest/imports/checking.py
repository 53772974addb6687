"""Before anything runs: each file is read once, and what is wrong with it is said by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

from sqlalchemy import bindparam, select

from nexus.db.session import Row, Session, Statement
from nexus.db.tables import media
from nexus.errors import FileMissing, FileTooLarge
from nexus.ingest.files import Files
from nexus.ingest.imports.staging import Source, kind_of
from nexus.states.media import Kind
from nexus.storage.digest import Digester

PIECE = 1024 * 1024

_TWIN = Statement(
    select(media.c.id).where(
        media.c.created_by_user_id == bindparam("user_id"),
        media.c.kind == bindparam("kind"),
        media.c.file_sha256 == bindparam("sha256"),
    )
)


@dataclass(frozen=True)
class Checked:
    """A file as it is: what it is committed as must be the same."""

    source: Source
    size: int
    sha256: str
    #: Something that the user has already, and that only needs to be put into the library.
    twin: UUID | None = None


def check(source: Source, files: Files, stopped: Callable[[], bool]) -> Checked:
    """Raises what is wrong with it."""
    kind_of(source.name, source.path)
    digester = Digester()
    try:
        for piece in pieces(source.path):
            digester.update(piece)
            if stopped():
                break
    except OSError as error:
        raise FileMissing(
            "This file can't be read. Check that it is there and that you may read it."
        ) from error
    found = digester.result()
    most = most_bytes(files, source.kind)
    if found.size > most:
        raise FileTooLarge(f"This file is larger than {most // 2**20} MiB. Nexus can't take it in.")
    return Checked(source, found.size, found.sha256)


def twin_of(session: Session, viewer: UUID, checked: Checked) -> Row | None:
    """The same file among the user's own."""
    return session.first(_TWIN, user_id=viewer, kind=checked.source.kind.value, sha256=checked.sha256)


def pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(partial(file.read, PIECE), b"")


def most_bytes(files: Files, kind: Kind) -> int:
    """A text may be as long as a book."""
    return files.most_bytes.get(kind, files.most_bytes[Kind.EPUB])
