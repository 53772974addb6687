"""How much there is of everything."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, literal_column, select

from nexus.db.session import Session, Statement
from nexus.db.tables import media
from nexus.libraries import access
from nexus.states.media import Status

_COUNTED = select(media.c.processing_status, func.count().label("media")).group_by(media.c.processing_status)
_BY_STATUS = Statement(_COUNTED)
_READABLE_BY_STATUS = Statement(_COUNTED.where(access.READABLE))
_ALIVE = Statement(select(literal_column("1").label("one")))


def by_status(session: Session, viewer: UUID | None = None) -> dict[Status, int]:
    """Of everything, or of what a viewer may read."""
    rows = session.all(_BY_STATUS) if viewer is None else session.all(_READABLE_BY_STATUS, viewer=viewer)
    counted = {Status(row.processing_status): row.media for row in rows}
    return {status: counted.get(status, 0) for status in Status}


def is_alive(session: Session) -> bool:
    return session.first(_ALIVE) is not None
