"""How much there is of everything."""

from __future__ import annotations

from sqlalchemy import func, literal_column, select

from nexus.db.session import Session, Statement
from nexus.db.tables import media
from nexus.states.media import Status

_BY_STATUS = Statement(
    select(media.c.processing_status, func.count().label("media")).group_by(media.c.processing_status)
)
_ALIVE = Statement(select(literal_column("1").label("one")))


def by_status(session: Session) -> dict[Status, int]:
    counted = {Status(row.processing_status): row.media for row in session.all(_BY_STATUS)}
    return {status: counted.get(status, 0) for status in Status}


def is_alive(session: Session) -> bool:
    return session.first(_ALIVE) is not None
