"""How many items there are, by status."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Integer, bindparam, exists, func, literal_column, select

from nexus.db.session import Query, Session
from nexus.db.tables import library_media, media
from nexus.libraries import access
from nexus.states.media import MediaStatus


class _StatusCount(NamedTuple):
    processing_status: MediaStatus
    total: int


class _Alive(NamedTuple):
    one: int


_COUNTED = select(media.c.processing_status, func.count().label("total")).group_by(media.c.processing_status)
_BY_STATUS = Query(_COUNTED, _StatusCount)
_READABLE_BY_STATUS = Query(_COUNTED.where(access.READABLE), _StatusCount)
_IN_LIBRARY = exists(
    select(library_media.c.media_id).where(
        library_media.c.media_id == media.c.id, library_media.c.library_id == bindparam("library_id")
    )
)
_HELD_BY_STATUS = Query(_COUNTED.where(access.READABLE, _IN_LIBRARY), _StatusCount)
_ALIVE = Query(select(literal_column("1", Integer).label("one")), _Alive)


def by_status(session: Session) -> dict[MediaStatus, int]:
    """Count all items."""
    return _counted(session.all(_BY_STATUS))


def readable_by_status(
    session: Session, viewer: UUID, library_id: UUID | None = None
) -> dict[MediaStatus, int]:
    """Count the items that a viewer can read, in all libraries or in one of them."""
    if library_id is None:
        return _counted(session.all(_READABLE_BY_STATUS, viewer=viewer))
    return _counted(session.all(_HELD_BY_STATUS, viewer=viewer, library_id=library_id))


def _counted(rows: list[_StatusCount]) -> dict[MediaStatus, int]:
    counted = {row.processing_status: row.total for row in rows}
    return {status: counted.get(status, 0) for status in MediaStatus}


def is_alive(session: Session) -> bool:
    """Whether the database answers. Raises what its driver raises if it does not."""
    return session.first(_ALIVE) is not None
