"""What one person wants to hear next, in their own order. Nobody else ever sees it."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, delete, select, update

from nexus.db.recordings import listening
from nexus.db.session import Query, Session, Statement
from nexus.db.upserts import every_column, upsert
from nexus.errors import InvalidRequest, InvalidState, NotFound
from nexus.media import queries
from nexus.media.queries import View
from nexus.media.shelving import Marks, keep_readable, mark_item

#: More than anybody plans ahead, and few enough to be put in order as a whole.
MOST_QUEUED = 500
NOTHING_TO_PLAY = "This item has nothing to play. Only videos and episodes can be in the queue."


class _Queued(NamedTuple):
    media_id: UUID
    place: float


_MINE = listening.c.user_id == bindparam("user_id")
_ALL = Query(
    select(listening.c.media_id, listening.c.place)
    .where(_MINE)
    .order_by(listening.c.place, listening.c.media_id),
    _Queued,
)
_ADD = upsert(listening, every_column(listening), lambda new: new.on_conflict_do_nothing())
_MOVE = Statement(
    update(listening)
    .where(_MINE, listening.c.media_id == bindparam("media_id"))
    .values(place=bindparam("place"))
)
_REMOVE = Statement(delete(listening).where(_MINE, listening.c.media_id == bindparam("media_id")))


def list_queue(session: Session, viewer: UUID) -> list[View]:
    """Return the items that the viewer wants to hear, the next one first."""
    order = [row.media_id for row in session.all(_ALL, user_id=viewer)]
    views = queries.views_of(session, viewer, order)
    return [views[one] for one in order if one in views]


def is_queued(session: Session, media_id: UUID, viewer: UUID) -> bool:
    return any(row.media_id == media_id for row in session.all(_ALL, user_id=viewer))


def queue_item(session: Session, media_id: UUID, viewer: UUID, *, is_next: bool = False) -> None:
    """Put an item at the end of the viewer's queue, or at its beginning. At the end, one that is queued already stays
    in its place.

    Raises NotFound if the viewer can't read the item, InvalidState for one that can't be played, InvalidRequest if the
    queue is full.
    """
    keep_readable(session, media_id, viewer)
    if not queries.get_media(session, media_id, viewer).capabilities.can_play:
        raise InvalidState(NOTHING_TO_PLAY)
    rows = session.all(_ALL, user_id=viewer)
    if media_id not in {row.media_id for row in rows} and len(rows) >= MOST_QUEUED:
        raise InvalidRequest(f"Your queue has {MOST_QUEUED} items already. Remove some of them first.")
    place = (rows[0].place - 1 if is_next else rows[-1].place + 1) if rows else 0.0
    session.run(_ADD, user_id=viewer, media_id=media_id, place=place, added_at=session.now)
    if is_next:
        session.run(_MOVE, user_id=viewer, media_id=media_id, place=place)


def unqueue_item(session: Session, media_id: UUID, viewer: UUID) -> bool:
    """Take an item out of the viewer's queue; False if it was not in it."""
    return session.run(_REMOVE, user_id=viewer, media_id=media_id) > 0


def move_queued(session: Session, media_id: UUID, viewer: UUID, position: int) -> None:
    """Put an item at a position in the viewer's queue, from 0. Raises NotFound if it is not in it."""
    order = [row.media_id for row in session.all(_ALL, user_id=viewer)]
    if media_id not in order:
        raise NotFound("This item is not in your queue.")
    order.remove(media_id)
    order.insert(position, media_id)
    rows = [{"user_id": viewer, "media_id": one, "place": float(n)} for n, one in enumerate(order)]
    session.run_many(_MOVE, rows)


def next_queued(session: Session, viewer: UUID, after: UUID | None = None) -> View | None:
    """Return what to play after an item: the one behind it in the queue, or else the first other one."""
    queue = [view for view in list_queue(session, viewer) if view.capabilities.can_play]
    ids = [view.row.id for view in queue]
    behind = queue[ids.index(after) + 1 :] if after in ids else []
    others = [view for view in queue if view.row.id != after]
    return next(iter(behind or others), None)


def finish_listening(session: Session, media_id: UUID, viewer: UUID) -> View | None:
    """Note that an item was heard to its end: it counts as read and leaves the queue. Returns what to play after it.

    Raises NotFound if the viewer can't read the item.
    """
    mark_item(session, media_id, viewer, Marks(is_read=True))
    following = next_queued(session, viewer, media_id) if is_queued(session, media_id, viewer) else None
    unqueue_item(session, media_id, viewer)
    return following
