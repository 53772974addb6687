"""What an item waits for: its history tells, because an item that only waits has not failed."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, literal_column, select

from nexus.db.session import Query, Session
from nexus.db.tables import history
from nexus.states.media import MEDIA


class _Last(NamedTuple):
    error_code: str | None


_OF_ITEM = (history.c.subject == MEDIA.name, history.c.subject_id == bindparam("media_id"))
_LAST = Query(
    select(history.c.error_code).where(*_OF_ITEM).order_by(history.c.id.desc()).limit(literal_column("1")),
    _Last,
)


def reason_of_wait(session: Session, media_id: UUID) -> str | None:
    """Return the code of the error that an item waits for; None if it waits for nothing but its turn."""
    found = session.first(_LAST, media_id=media_id)
    return None if found is None else found.error_code
