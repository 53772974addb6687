"""The history of an item, as a viewer may know it: nobody learns from it what strangers hold or do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Text, bindparam, cast, func, literal_column, or_, select

from nexus.db.rows import HistoryRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import history, libraries, library_media, memberships, users
from nexus.libraries import people
from nexus.media.queries import PAGE, ItemPage, View, cursor_after, get_media, number_in
from nexus.states.media import MEDIA


class KnownEvent(NamedTuple):
    """One entry of an item's history, as a viewer may know it."""

    entry: HistoryRow
    #: If it is a person who shares a library with the viewer.
    actor_name: str | None


_mine, _theirs = memberships.alias("mine"), memberships.alias("theirs")
#: Everyone who shares with the viewer a library that holds the media, the viewer included.
_SHARERS = (
    select(users.c.id, people.NAME.label("name"))
    .join(_theirs, _theirs.c.user_id == users.c.id)
    .join(_mine, _mine.c.library_id == _theirs.c.library_id)
    .join(library_media, library_media.c.library_id == _mine.c.library_id)
    .where(_mine.c.user_id == bindparam("viewer"), library_media.c.media_id == bindparam("media_id"))
    .distinct()
    .subquery("sharers")
)


def _undashed(user: ColumnElement[Any]) -> ColumnElement[str]:
    """A user's id as text: history has it with dashes, SQLite's column without."""
    return func.replace(cast(user, Text), "-", "")


#: For viewers who had the item first. A worker's clock may be behind the one that dated the item.
_EVER = datetime(1, 1, 1, tzinfo=UTC)
_IS_PERSON = func.length(history.c.actor) == literal_column(str(len(str(UUID(int=0)))))
_HISTORY = Query(
    select(*history.c, _SHARERS.c.name.label("actor_name"))
    .outerjoin(_SHARERS, _undashed(_SHARERS.c.id) == _undashed(history.c.actor))
    .where(
        history.c.subject == "media",
        history.c.subject_id == bindparam("media_id"),
        history.c.id > bindparam("after"),
        history.c.at >= bindparam("since", type_=history.c.at.type),
        or_(~_IS_PERSON, _SHARERS.c.id.is_not(None)),
    )
    .order_by(history.c.id)
    .limit(bindparam("most")),
    KnownEvent,
)
_IN_OWN_LIBRARY = Statement(
    select(library_media.c.library_id)
    .join(libraries, libraries.c.id == library_media.c.library_id)
    .where(
        library_media.c.media_id == bindparam("media_id"),
        libraries.c.owner_user_id == bindparam("viewer"),
        libraries.c.is_default,
    )
)


def events(
    session: Session, media_id: UUID, viewer: UUID, cursor: str | None = None, most: int = PAGE
) -> ItemPage[KnownEvent]:
    """Its history as the viewer may know it, the first entry first. Raises NotFound if they can't read it.

    It begins when one of their libraries got the item. What other people did is in it only if they share a library
    that holds the item with the viewer.
    """
    found = get_media(session, media_id, viewer)
    since, after = found.late_since or _EVER, number_in(cursor, 0)
    rows = session.all(_HISTORY, media_id=media_id, viewer=viewer, since=since, after=after, most=most + 1)
    if cursor is None and (not rows or rows[0].entry.event != "create"):
        rows.insert(0, _arrival(session, found, viewer))
    more = len(rows) > most
    rows = rows[:most]
    return ItemPage(rows, cursor_after(rows[-1].entry.id) if more else None, found.capabilities)


def _arrival(session: Session, found: View, viewer: UUID) -> KnownEvent:
    """The first entry for somebody who got the item when others had it already."""
    media_id = found.row.id
    by_viewer = session.first(_IN_OWN_LIBRARY, media_id=media_id, viewer=viewer) is not None
    first = HistoryRow(
        id=0,
        tx=0,
        subject=MEDIA.name,
        subject_id=media_id,
        event="create",
        from_status=None,
        to_status=MEDIA.initial.value,
        at=found.row.held_since,
        actor=str(viewer) if by_viewer else "",
        attempt=0,
        error_code=None,
    )
    return KnownEvent(first, actor_name=None)
