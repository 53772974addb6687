"""Where an import goes: into a library that is there, or into one that is made with it."""

from __future__ import annotations

from uuid import UUID

from nexus.db.session import Session, Sessions
from nexus.errors import InvalidRequest
from nexus.imports.service import ImportDesk
from nexus.imports.staging import Batch
from nexus.libraries import access, catalog


def open_batch(
    sessions: Sessions, desk: ImportDesk, viewer: UUID, library_id: UUID | None, name: str | None
) -> Batch:
    """Return the viewer's batch for a library, for a new one of this name, or for the default library.

    Raises InvalidRequest; NotFound or Forbidden if the library is not the viewer's to change.
    """
    if library_id is not None and name is not None:
        raise InvalidRequest("Give a library_id or a name, not both.")
    title = None if name is None else catalog.clean_name(name)
    with sessions.begin() as session:
        default = access.ensure_user(session, viewer)
        chosen = library_id or (default if title is None else None)
        if chosen is not None:
            access.require_admin(session, chosen, viewer)
    return desk.staging.open(chosen, title)


def current_batch(sessions: Sessions, desk: ImportDesk, viewer: UUID) -> Batch:
    """Return the batch that was opened last; at first that of the default library."""
    found = desk.staging.latest()
    if found is not None:
        return found
    return open_batch(sessions, desk, viewer, None, None)


def retarget_batch(
    sessions: Sessions, desk: ImportDesk, viewer: UUID, library_id: UUID | None, name: str = ""
) -> None:
    """Send the current batch to a library, or without an id to that of a name, which is made if there is none.

    Without either it goes to the default library. Raises NotFound or Forbidden if the library is not the viewer's to
    change.
    """
    with sessions.begin() as session:
        chosen = library_id or _library_named(session, viewer, name)
        if chosen is not None:
            access.require_admin(session, chosen, viewer)
    desk.staging.retarget(chosen, None if chosen else catalog.clean_name(name))


def _library_named(session: Session, viewer: UUID, name: str) -> UUID | None:
    default = access.ensure_user(session, viewer)
    return catalog.find_own_library(session, viewer, name) if name.strip() else default
