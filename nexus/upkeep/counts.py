"""How many items there are, by status."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Integer, func, literal_column, select

from nexus.db.session import Query, Session
from nexus.db.tables import media
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
_ALIVE = Query(select(literal_column("1", Integer).label("one")), _Alive)


def by_status(session: Session, viewer: UUID | None = None) -> dict[MediaStatus, int]:
    """Count all media, or those that a viewer can read."""
    rows = session.all(_BY_STATUS) if viewer is None else session.all(_READABLE_BY_STATUS, viewer=viewer)
    counted = {row.processing_status: row.total for row in rows}
    return {status: counted.get(status, 0) for status in MediaStatus}


def is_alive(session: Session) -> bool:
    """Whether the database answers. Raises what its driver raises if it does not."""
    return session.first(_ALIVE) is not None
