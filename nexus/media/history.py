"""The history of an item, as a viewer may know it: nobody learns from it what strangers hold or do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from nexus.db.rows import HistoryRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import (
    audit,
    history,
    libraries,
    library_media,
    memberships,
    one_of,
    revisions,
    users,
)
from nexus.libraries import people
from nexus.libraries.audit import AuditEvent
from nexus.media.queries import PAGE, ItemPage, View, cursor_after, get_media, number_in
from nexus.states.media import MEDIA, Origin

#: What changes no state.
REFRESH, ENTER = "refresh", "enter_text"


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


class Change(NamedTuple):
    """What somebody did to an item that left its state as it was."""

    event: str
    at: datetime
    #: None if the audit log does not say.
    user_id: UUID | None
    #: If it is a person who shares a library with the viewer.
    name: str | None
    #: The name of the library that it is about.
    library: str | None


def _since(at: ColumnElement[datetime]) -> ColumnElement[bool]:
    return at >= bindparam("since", type_=history.c.at.type)


#: New texts: refreshes by people who share a library with the viewer, and what the viewer entered.
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
        _since(history.c.at),
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


def changes(session: Session, media_id: UUID, viewer: UUID) -> ItemPage[Change]:
    """What people did to an item beside its transitions, the first first: refreshes, entered texts, shares.

    As in its history, other people's doings are told only inside libraries that they share with the viewer. Raises
    NotFound.
    """
    found = get_media(session, media_id, viewer)
    since = found.late_since or _EVER
    rows = session.all(_CHANGES, media_id=media_id, viewer=viewer, since=since)
    return ItemPage(rows, None, found.capabilities)


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
