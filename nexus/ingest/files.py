"""The store as the verbs see it: where a media's file stands, a link to it, and its removal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from nexus import logging
from nexus.db.session import Session
from nexus.errors import NotFound, NotReady
from nexus.ingest import documents
from nexus.ingest.libraries import Gone
from nexus.states.media import FILE_KINDS, Kind
from nexus.storage import Link, Storage, StorageError
from nexus.storage.names import object_path

log = logging.get(__name__)

CONTENT_TYPES = {Kind.PDF: "application/pdf", Kind.EPUB: "application/epub+zip"}


@dataclass(frozen=True)
class Files:
    """The store, and what it takes."""

    storage: Storage
    prefix: str
    most_bytes: Mapping[Kind, int]
    link_life: timedelta
    #: An upload that was begun longer ago is not confirmed any more.
    upload_life: timedelta
    check_seconds: float

    def path(self, media_id: UUID, kind: Kind) -> str:
        return object_path(media_id, kind.value, self.prefix)

    def remove(self, path: str) -> None:
        """Where the store is away the object stays behind, and `nexus clean` finds it."""
        try:
            self.storage.delete(path)
        except StorageError as error:
            log.warning("object_left_behind", reason=str(error))


def link(session: Session, files: Files, media_id: UUID) -> Link:
    """To the file of a media that the caller may read. Raises NotFound where it has none."""
    found = documents.file_of(session, media_id)
    if found is None:
        raise NotFound
    try:
        return files.storage.sign_download(
            found.storage_path, found.filename, found.content_type, files.link_life
        )
    except StorageError as error:
        raise NotReady("The file store can't be reached. Try again in a moment.") from error


def discard(files: Files, media_id: UUID, kind: Kind) -> None:
    """Remove what was uploaded for a media."""
    if kind in FILE_KINDS:
        files.remove(files.path(media_id, kind))


def discard_all(files: Files, gone: Iterable[Gone]) -> None:
    """After the commit: the objects of media that no library holds any more."""
    for each in gone:
        if each.storage_path is None:
            discard(files, each.media_id, each.kind)
        else:
            files.remove(each.storage_path)
