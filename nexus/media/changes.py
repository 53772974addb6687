"""What people did to an item that left its state as it was: refreshes, entered texts, shares."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Text, bindparam, case, func, literal_column, or_, select, union_all

from nexus.db.session import Query, Session
from nexus.db.tables import audit, libraries, library_media, memberships, one_of, revisions, users
from nexus.libraries import people
from nexus.libraries.audit import AuditEvent
from nexus.media.queries import ItemPage, get_media
from nexus.states.media import Origin

REFRESH, ENTER = "refresh", "enter_text"


class Change(NamedTuple):
    event: str
    at: datetime
    #: None if the audit log does not say.
    user_id: UUID | None
    #: If it is a person who shares a library with the viewer.
    name: str | None
    #: The name of the library that it is about.
    library: str | None


_mine, _theirs = memberships.alias("mine"), memberships.alias("theirs")
#: Since when somebody is in a library that holds the item.
_TOGETHER = case(
    (_theirs.c.created_at > library_media.c.added_at, _theirs.c.created_at), else_=library_media.c.added_at
)
#: Everyone who shares with the viewer a library that holds the item, the viewer included, and since when.
_SHARERS = (
    select(users.c.id, people.NAME.label("name"), func.min(_TOGETHER).label("since"))
    .join(_theirs, _theirs.c.user_id == users.c.id)
    .join(_mine, _mine.c.library_id == _theirs.c.library_id)
    .join(library_media, library_media.c.library_id == _mine.c.library_id)
    .where(_mine.c.user_id == bindparam("viewer"), library_media.c.media_id == bindparam("media_id"))
    .group_by(users.c.id)
    .subquery("sharers")
)


def _since(at: ColumnElement[datetime]) -> ColumnElement[bool]:
    return at >= bindparam("since", type_=audit.c.at.type)


#: New texts: refreshes by people who shared a library with the viewer by then, and what the viewer entered.
_TEXTS = (
    select(
        case((revisions.c.origin == Origin.ENTERED.value, ENTER), else_=REFRESH).label("event"),
        revisions.c.written_at.label("at"),
        revisions.c.made_by.label("user_id"),
        _SHARERS.c.name,
        literal_column("NULL", Text).label("library"),
    )
    .join(_SHARERS, _SHARERS.c.id == revisions.c.made_by)
    .where(
        revisions.c.media_id == bindparam("media_id"),
        or_(revisions.c.private_to.is_(None), revisions.c.private_to == bindparam("viewer")),
        _since(revisions.c.written_at),
        revisions.c.written_at >= _SHARERS.c.since,
    )
)
#: Into which of the viewer's libraries it was put, and out of which it was taken.
_SHARES = (
    select(audit.c.event, audit.c.at, audit.c.user_id, _SHARERS.c.name, libraries.c.name)
    .join(libraries, libraries.c.id == audit.c.library_id)
    .join(memberships, memberships.c.library_id == audit.c.library_id)
    .outerjoin(_SHARERS, _SHARERS.c.id == audit.c.user_id)
    .where(
        audit.c.subject_id == bindparam("media_id"),
        one_of(audit.c.event, (AuditEvent.ITEM_SHARED, AuditEvent.ITEM_REMOVED)),
        memberships.c.user_id == bindparam("viewer"),
        _since(audit.c.at),
    )
)
_CHANGES = Query(
    select(_changed := union_all(_TEXTS, _SHARES).subquery("changes")).order_by(
        _changed.c.at, _changed.c.event
    ),
    Change,
)


def list_changes(session: Session, media_id: UUID, viewer: UUID) -> ItemPage[Change]:
    """List what people did to an item since one of the viewer's libraries got it, the oldest first.

    What other people did is listed only for libraries that they share with the viewer. Raises NotFound.
    """
    found = get_media(session, media_id, viewer)
    rows = session.all(_CHANGES, media_id=media_id, viewer=viewer, since=found.row.held_since)
    return ItemPage(rows, None, found.capabilities)
