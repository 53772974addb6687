"""How far one person has listened to a recording. Nobody else ever sees it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select

from nexus.db.recordings import heard
from nexus.db.session import Query, Session
from nexus.db.upserts import every_column, upsert
from nexus.libraries import access
from nexus.media.shelving import keep_readable

#: Earlier times of a device are taken for this one: the databases and Python disagree about the first years of the
#: calendar.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class HeardSoFar(NamedTuple):
    seconds: float
    #: When they were there, by the clock of the device they listened on.
    at: datetime


_ONE = Query(
    select(heard.c.seconds, heard.c.at).where(
        heard.c.user_id == bindparam("user_id"), heard.c.media_id == bindparam("media_id")
    ),
    HeardSoFar,
)
_KEEP = upsert(
    heard,
    every_column(heard),
    lambda new: new.on_conflict_do_update(
        index_elements=[heard.c.user_id, heard.c.media_id],
        set_={"seconds": new.excluded.seconds, "at": new.excluded.at},
        where=heard.c.at <= new.excluded.at,
    ),
)


def heard_so_far(session: Session, media_id: UUID, viewer: UUID) -> HeardSoFar | None:
    """Return where the viewer is; None if they have not begun. Raises NotFound if they can't read the item."""
    access.require_readable(session, media_id, viewer)
    return session.first(_ONE, media_id=media_id, user_id=viewer)


def report_heard(
    session: Session, media_id: UUID, viewer: UUID, seconds: float, at: datetime | None = None
) -> HeardSoFar:
    """Note where the viewer is; return what counts then. Of several devices, the one that was there last wins.

    No device can be there in the future. Raises NotFound if the viewer can't read the item.
    """
    keep_readable(session, media_id, viewer)
    moment = session.now if at is None else max(min(at, session.now), EARLIEST)
    session.run(_KEEP, user_id=viewer, media_id=media_id, seconds=seconds, at=moment)
    return session.first(_ONE, media_id=media_id, user_id=viewer) or HeardSoFar(seconds, moment)
