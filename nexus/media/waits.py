"""What an item waits for: its history tells, because an item that only waits has not failed."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, exists, func, literal_column, select

from nexus.db.session import Query, Session
from nexus.db.tables import history
from nexus.errors import WorkError
from nexus.states.media import MEDIA, RELEASE, START


class _Count(NamedTuple):
    waits: int


class _Last(NamedTuple):
    error_code: str | None


_OF_ITEM = (history.c.subject == MEDIA.name, history.c.subject_id == bindparam("media_id"))
_since = history.alias("since")
_COUNT = Query(
    select(func.count().label("waits"))
    .select_from(history)
    .where(
        *_OF_ITEM,
        history.c.event == RELEASE.verb,
        history.c.error_code == bindparam("code"),
        ~exists(
            select(_since.c.id).where(
                _since.c.subject == history.c.subject,
                _since.c.subject_id == history.c.subject_id,
                _since.c.id > history.c.id,
                _since.c.event != START.verb,
                _since.c.event != RELEASE.verb,
            )
        ),
    ),
    _Count,
)
_LAST = Query(
    select(history.c.error_code).where(*_OF_ITEM).order_by(history.c.id.desc()).limit(literal_column("1")),
    _Last,
)


def count_waits(session: Session, media_id: UUID, error: WorkError) -> int:
    """Return how often an item has waited for the end of an error since anything else became of it."""
    found = session.first(_COUNT, media_id=media_id, code=error.code)
    return 0 if found is None else found.waits


def reason_of_wait(session: Session, media_id: UUID) -> str | None:
    """Return the code of the error that an item waits for; None if it waits for nothing but its turn."""
    found = session.first(_LAST, media_id=media_id)
    return None if found is None else found.error_code
