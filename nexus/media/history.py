"""The history of an item, as a viewer may know it: nobody learns from it what strangers hold or do."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Uuid, bindparam, case, cast, exists, func, or_, select

from nexus.db.rows import HistoryRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import history, libraries, library_media, media, memberships, users
from nexus.libraries import people
from nexus.media.queries import PAGE, ItemPage, View, cursor_after, get_media, number_in
from nexus.states.media import MEDIA


class KnownEvent(NamedTuple):
    """One entry of an item's history, as a viewer may know it."""

    entry: HistoryRow
    #: If it is a person who shares a library with the viewer.
    actor_name: str | None


_theirs = memberships.alias("theirs")


def _person(rows: FromClause) -> ColumnElement[UUID]:
    """Who did it; NULL if it was no person."""
    is_person = func.length(rows.c.actor) == len(str(UUID(int=0)))
    return case((is_person, cast(func.replace(rows.c.actor, "-", ""), Uuid)))


def knowable(rows: FromClause, viewer: ColumnElement[UUID]) -> ColumnElement[bool]:
    """A condition: through the holding of the enclosing query, a viewer may know of a row of an item's history.

    That holding is a row of `library_media`, beside its `media`. It tells what happened since the library got the
    item, and of other people only what they did as members of that library. Somebody who had the item first may know
    of everything: a worker's clock can be behind the one that dated the item.
    """
    since = or_(library_media.c.added_at <= rows.c.at, library_media.c.added_at <= media.c.created_at)
    as_member = exists(
        select(_theirs.c.user_id)
        .where(
            _theirs.c.user_id == _person(rows),
            _theirs.c.library_id == library_media.c.library_id,
            _theirs.c.created_at <= rows.c.at,
        )
        .correlate_except(_theirs)
    )
    return since & or_(_person(rows).is_(None), _person(rows) == viewer, as_member)


def known(rows: FromClause) -> ColumnElement[bool]:
    """A condition: the viewer may know of a row of an item's history through one of their libraries."""
    viewer = bindparam("viewer", type_=Uuid())
    return exists(
        select(library_media.c.media_id)
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .join(media, media.c.id == library_media.c.media_id)
        .where(
            library_media.c.media_id == rows.c.subject_id,
            memberships.c.user_id == viewer,
            knowable(rows, viewer),
        )
        .correlate(rows)
    )


_HISTORY = Query(
    select(*history.c, people.NAME.label("actor_name"))
    .outerjoin(users, users.c.id == _person(history))
    .where(
        history.c.subject == MEDIA.name,
        history.c.subject_id == bindparam("media_id"),
        history.c.id > bindparam("after"),
        known(history),
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
    """Its history as the viewer may know it, the oldest entry first. Raises NotFound if they can't read it.

    It begins when one of their libraries got the item. What other people did is in it only if they did it as members
    of a library that holds the item and that the viewer shares.
    """
    found = get_media(session, media_id, viewer)
    after = number_in(cursor, 0)
    rows = session.all(_HISTORY, media_id=media_id, viewer=viewer, after=after, most=most + 1)
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
