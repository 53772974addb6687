"""Links to the files of items, for viewers who may read them."""

from __future__ import annotations

from uuid import UUID

from nexus.db.session import Sessions
from nexus.errors import NotFound
from nexus.media import revisions, versions
from nexus.media.files import Files, refusal
from nexus.states.capabilities import Capabilities
from nexus.storage import Link, StorageError
from nexus.storage.names import download_name


def link_for(
    sessions: Sessions, files: Files, viewer: UUID, media_id: UUID, number: int | None = None
) -> tuple[Link, Capabilities]:
    """Return a new link to the file of an item, or of a version of it, and what else the viewer can do with it.

    Raises NotFound.
    """
    with sessions.read() as session:
        view = versions.view_version(session, media_id, viewer, number)
        found = revisions.file_of(session, media_id, view.row.revision)
    if found is None:
        raise NotFound("This item has no file to download.")
    try:
        signed = files.storage.sign_download(
            found.storage_path,
            download_name(found.filename, found.content_type),
            found.content_type,
            files.link_life,
        )
    except StorageError as error:
        raise refusal(error) from error
    return signed, view.capabilities
