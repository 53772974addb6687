"""How large libraries are. It is counted, so lists of items don't ask for it."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, func, select

from nexus.db.session import Query, Session
from nexus.db.tables import libraries, library_media, memberships
from nexus.errors import NotFound


class LibrarySize(NamedTuple):
    """How many people belong to a library, and how many items it holds."""

    id: UUID
    members: int
    items: int


_fellows = memberships.alias("fellows")
_SIZED = select(
    libraries.c.id,
    select(func.count())
    .select_from(_fellows)
    .where(_fellows.c.library_id == libraries.c.id)
    .correlate(libraries)
    .scalar_subquery()
    .label("members"),
    select(func.count())
    .select_from(library_media)
    .where(library_media.c.library_id == libraries.c.id)
    .correlate(libraries)
    .scalar_subquery()
    .label("items"),
)
_SIZES = Query(
    _SIZED.join(memberships, memberships.c.library_id == libraries.c.id).where(
        memberships.c.user_id == bindparam("viewer")
    ),
    LibrarySize,
)
_SIZE = Query(_SIZED.where(libraries.c.id == bindparam("library_id")), LibrarySize)


def size_libraries(session: Session, viewer: UUID) -> dict[UUID, LibrarySize]:
    """Return how large each of the viewer's libraries is."""
    return {row.id: row for row in session.all(_SIZES, viewer=viewer)}


def size_library(session: Session, library_id: UUID) -> LibrarySize:
    """Return how large one library is; who may know that is the caller's to check. Raises NotFound if it is gone."""
    found = session.first(_SIZE, library_id=library_id)
    if found is None:
        raise NotFound
    return found
