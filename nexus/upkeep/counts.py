"""How many items there are, by status."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Integer, func, literal_column, select

from nexus.db.session import Query, Session
from nexus.db.tables import media
from nexus.states.media import MediaStatus


class _StatusCount(NamedTuple):
    processing_status: MediaStatus
    total: int


class _Alive(NamedTuple):
    one: int


_COUNTED = select(media.c.processing_status, func.count().label("total")).group_by(media.c.processing_status)
_BY_STATUS = Query(_COUNTED, _StatusCount)
_ALIVE = Query(select(literal_column("1", Integer).label("one")), _Alive)


def by_status(session: Session) -> dict[MediaStatus, int]:
    """Count all items."""
    return _counted(session.all(_BY_STATUS))


def _counted(rows: list[_StatusCount]) -> dict[MediaStatus, int]:
    counted = {row.processing_status: row.total for row in rows}
    return {status: counted.get(status, 0) for status in MediaStatus}


def is_alive(session: Session) -> bool:
    """Whether the database answers. Raises what its driver raises if it does not."""
    return session.first(_ALIVE) is not None
