"""Deleting items and libraries, and then the files that nobody else has."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from nexus.db.session import Sessions
from nexus.libraries import catalog
from nexus.libraries.catalog import Gone
from nexus.media.files import Files
from nexus.states.media import FILE_KINDS


def discard_all(files: Files, gone: Iterable[Gone]) -> None:
    """Remove the files of deleted items. Call it after the commit."""
    for each in gone:
        if each.storage_path is not None:
            files.remove(each.storage_path)
        elif each.kind in FILE_KINDS:
            files.remove(files.path(each.media_id, each.kind))


def delete_media_and_files(sessions: Sessions, files: Files, viewer: UUID, media_id: UUID) -> None:
    """Take an item out of every library that the viewer administers, and its file if no library holds it then."""
    with sessions.begin() as session:
        gone = catalog.delete_media(session, media_id, viewer)
    discard_all(files, gone)


def remove_media_and_files(
    sessions: Sessions, files: Files, viewer: UUID, library_id: UUID, media_id: UUID
) -> None:
    """Take an item out of one library, and its file if no other library holds it."""
    with sessions.begin() as session:
        gone = catalog.remove_media(session, library_id, media_id, viewer)
    discard_all(files, gone)


def delete_library_and_files(sessions: Sessions, files: Files, viewer: UUID, library_id: UUID) -> None:
    """Delete a library, and the files of items that no other library holds."""
    with sessions.begin() as session:
        gone = catalog.delete_library(session, library_id, viewer)
    discard_all(files, gone)
