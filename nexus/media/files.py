"""The files of items in the store: where one is, and its removal.

An object is removed after the commit that makes it unneeded, by a process that may freeze in between for any length of
time. So there are two ways to remove one:

- `Files.remove`, at once, for paths that are never used again: those of items whose row is gone, and those of fetched
  files and pictures that no row names.
- `remove_unless`, for everything else: it locks the item's row and looks again. If the path can be used again, the row
  stays locked until the object is gone; the store may be slow, and on SQLite every other writer waits meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from tempfile import TemporaryFile
from typing import BinaryIO
from uuid import UUID

from sqlalchemy import and_, bindparam, exists, or_, select, text

from nexus import logging
from nexus.db.drivers import is_away
from nexus.db.pictures import pictures
from nexus.db.recordings import recordings
from nexus.db.session import Session, Sessions, Statement
from nexus.db.tables import media, media_file, uploads
from nexus.errors import (
    ApiError,
    FetchInfected,
    FileUnreachable,
    InfectedFile,
    NotReady,
    ScannerUnreachable,
    StorageFull,
)
from nexus.media.storage_shares import FileShares
from nexus.scan import MalwareFound, Scanner, ScannerAway
from nexus.states.media import Kind, MediaStatus
from nexus.storage import NoRoom, Storage, StorageError
from nexus.storage.names import is_fetched, object_path

log = logging.get_logger(__name__)

CONTENT_TYPES = {
    Kind.PDF: "application/pdf",
    Kind.EPUB: "application/epub+zip",
    Kind.TEXT: "text/plain",
}

#: Younger objects may belong to an upload that is being begun or confirmed right now.
GRACE = timedelta(hours=1)

_LOCK = Statement(select(media.c.id).where(media.c.id == bindparam("media_id")).with_for_update())
_STAY_LOCKED = Statement(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
#: The item has its file, a picture or its sound at this path.
IS_FILE = or_(
    *(
        exists(
            select(path.table.c.media_id)
            .where(path.table.c.media_id == media.c.id, path == bindparam("path"))
            .correlate(media)
        )
        for path in (media_file.c.storage_path, pictures.c.storage_path, recordings.c.audio_path)
    )
)
_IS_AWAITED = and_(
    media.c.processing_status == MediaStatus.PENDING.value,
    exists(select(uploads.c.media_id).where(uploads.c.media_id == media.c.id).correlate(media)),
)
_NEEDED = Statement(select(media.c.id).where(media.c.id == bindparam("media_id"), or_(IS_FILE, _IS_AWAITED)))


@dataclass(frozen=True)
class Files:
    """The store, and its limits."""

    storage: Storage
    prefix: str
    most_bytes: Mapping[Kind, int]
    link_life: timedelta
    #: An upload that was begun longer ago can't be confirmed any more.
    upload_life: timedelta
    check_seconds: float
    #: A revision that no library has held for this long is removed.
    revision_life: timedelta
    shares: FileShares
    scanner: Scanner | None

    def scanned(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield what a user has sent while the scanner sees it. Raises InfectedFile or NotReady after the last."""
        try:
            yield from pieces if self.scanner is None else self.scanner.watch(pieces)
        except MalwareFound as error:
            raise InfectedFile from error
        except ScannerAway as error:
            raise NotReady("The malware scanner gave no answer. Nothing has changed: try again.") from error

    def scan_fetched(self, data: bytes) -> None:
        """Show the scanner what a site has answered. Raises FetchInfected or ScannerUnreachable."""
        try:
            if self.scanner is not None:
                self.scanner.scan(data)
        except MalwareFound as error:
            raise FetchInfected from error
        except ScannerAway as error:
            raise ScannerUnreachable from error

    def path(self, media_id: UUID, kind: Kind) -> str:
        """Return where an uploaded or imported file is."""
        return object_path(media_id, kind.value, self.prefix)

    def remove(self, path: str) -> bool:
        """Remove an object; return whether it is gone. If not, upkeep finds it later."""
        try:
            self.storage.delete(path)
        except StorageError as error:
            log.warning("object_left_behind", reason=str(error))
            return False
        return True


def refusal(error: StorageError) -> ApiError:
    """Log an error of the store, and return what to answer to the request."""
    log.warning("store_failed", reason=str(error))
    if isinstance(error, NoRoom):
        return StorageFull()
    return NotReady("The file store can't be used at the moment. Try again; if it stays, run: nexus doctor")


@contextmanager
def locked(sessions: Sessions, media_id: UUID) -> Iterator[Session]:
    """Open a transaction that holds the item's row, in which its objects can be looked at and removed."""
    with sessions.begin() as session:
        if not session.is_sqlite:
            # PostgreSQL would end the transaction of a process that is frozen for a minute, and its lock with it: the
            # process would wake up between its look and its removal, and remove what others have put there meanwhile.
            session.run(_STAY_LOCKED)
        session.first(_LOCK, media_id=media_id)
        yield session


def remove_unless(sessions: Sessions, files: Files, media_id: UUID, path: str, needed: Statement) -> bool:
    """Remove an object unless its item needs it by now; return whether it is gone."""
    with locked(sessions, media_id) as session:
        if session.first(needed, media_id=media_id, path=path) is not None:
            return False
        if not is_fetched(path) and session.first(_LOCK, media_id=media_id) is not None:
            return files.remove(path)
    return files.remove(path)


def discard_object(sessions: Sessions, files: Files, media_id: UUID, path: str) -> None:
    """Remove an object unless its item needs it, perhaps again: as its file, as a picture, or as the upload that it
    waits for.

    If the database is away, the object is left to upkeep.
    """
    try:
        remove_unless(sessions, files, media_id, path, _NEEDED)
    except Exception as error:
        if not is_away(error):
            raise
        log.warning("object_left_behind", reason=type(error).__name__)


def temporary_file(*, is_raw: bool = False) -> BinaryIO:
    """Make a file that goes when it is closed; a raw one has no buffer between it and a process that reads it, too.

    Raises FileUnreachable, which is tried again: a full disk may have room later.
    """
    try:
        if is_raw:
            return TemporaryFile(prefix="nexus-", buffering=0)
        return TemporaryFile(prefix="nexus-")
    except OSError as error:
        raise FileUnreachable from error
