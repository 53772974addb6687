"""The versions of an item that a viewer can read, and how libraries move from one to another.

A library holds the base revision until somebody who administers it asks for another. `access.shown_revision` says which
of several a viewer sees.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Integer,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)

from nexus.db.list_keys import TEXT_KEYS
from nexus.db.rows import IdRow, MediaRow
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import earlier_holdings, libraries, library_media, media, memberships, revisions
from nexus.db.upserts import upsert_from
from nexus.errors import EmptyContent, Forbidden, InvalidRequest, NotFound
from nexus.extract import Extraction
from nexus.libraries import access, catalog
from nexus.libraries.access import HOLDS, Role
from nexus.media import queries
from nexus.media import revisions as texts
from nexus.media.queries import View
from nexus.media.texts import Found, Readable, storable
from nexus.states.media import Origin

ENTERED_BY = "entered by hand"
TITLE_LENGTH = 500
TEXT_LENGTH = 2_000_000


class Version(NamedTuple):
    """A revision as a viewer may know it."""

    number: int
    title: str | None
    origin: Origin
    extractor: str
    byline: str | None
    site: str | None
    published: str | None
    language: str | None
    excerpt: str | None
    words: int
    fetched_url: str | None
    written_at: datetime
    seen_at: datetime
    #: Whether one of the viewer's libraries holds it, or did before.
    is_held: bool
    was_held: bool


_MINE = select(memberships.c.library_id).where(memberships.c.user_id == bindparam("viewer"))
_ADMINISTERED = _MINE.where(memberships.c.role == Role.ADMIN.value)
_DEFAULT = select(libraries.c.id).where(
    libraries.c.owner_user_id == bindparam("viewer"), libraries.c.is_default
)
_IS_HELD = exists(
    select(library_media.c.media_id)
    .where(
        library_media.c.media_id == revisions.c.media_id,
        library_media.c.library_id.in_(_MINE),
        revisions.c.number == HOLDS,
    )
    .correlate(revisions, media)
)
_WAS_HELD = exists(
    select(earlier_holdings.c.media_id)
    .where(
        earlier_holdings.c.media_id == revisions.c.media_id,
        earlier_holdings.c.revision == revisions.c.number,
        earlier_holdings.c.library_id.in_(_MINE),
    )
    .correlate(revisions)
)
_MAY_READ = or_(revisions.c.private_to.is_(None), revisions.c.private_to == bindparam("viewer"))
_IS_OFFERED = and_(revisions.c.private_to.is_(None), revisions.c.number > bindparam("shown", type_=Integer))
_VERSIONS = (
    select(
        *(revisions.c[name] for name in Version._fields if name in revisions.c),
        _IS_HELD.label("is_held"),
        _WAS_HELD.label("was_held"),
    )
    .join_from(revisions, media, media.c.id == revisions.c.media_id)
    .where(revisions.c.media_id == bindparam("media_id"), _MAY_READ, or_(_IS_HELD, _WAS_HELD, _IS_OFFERED))
)
_ALL = Query(_VERSIONS.order_by(revisions.c.number.desc()).limit(bindparam("most")), Version)
_ONE = Query(_VERSIONS.where(revisions.c.number == bindparam("number")), Version)
_LOCK = Query(
    select(media).where(media.c.id == bindparam("media_id")).with_for_update(key_share=True), MediaRow
)
_HOLDER = Query(
    select(library_media.c.library_id.label("id"))
    .where(library_media.c.media_id == bindparam("media_id"), library_media.c.library_id.in_(_ADMINISTERED))
    .limit(literal_column("1")),
    IdRow,
)


def _remember(chosen: Select[Any]) -> Statement:
    """Remember what libraries have held until now. 0 stands for an item without a text."""
    rows = (
        select(
            library_media.c.library_id,
            library_media.c.media_id,
            HOLDS,
            bindparam("now", type_=earlier_holdings.c.until.type),
        )
        .join_from(library_media, media, media.c.id == library_media.c.media_id)
        .join(revisions, and_(revisions.c.media_id == media.c.id, revisions.c.number == HOLDS))
        .where(
            library_media.c.media_id == bindparam("media_id"),
            library_media.c.library_id.in_(chosen),
            bindparam("number", type_=Integer) != HOLDS,
        )
    )
    return upsert_from(
        earlier_holdings,
        ["library_id", "media_id", "revision", "until"],
        rows,
        lambda new: new.on_conflict_do_update(
            index_elements=[
                earlier_holdings.c.library_id,
                earlier_holdings.c.media_id,
                earlier_holdings.c.revision,
            ],
            set_={"until": new.excluded.until},
        ),
    )


def _move(chosen: Select[Any]) -> Statement:
    base = select(media.c.revision).where(media.c.id == library_media.c.media_id).scalar_subquery()
    text = and_(
        revisions.c.media_id == library_media.c.media_id,
        revisions.c.number == bindparam("number", type_=Integer),
    )
    keys = {name: select(key).where(text).scalar_subquery() for name, key in TEXT_KEYS.items()}
    return Statement(
        update(library_media)
        .where(
            library_media.c.media_id == bindparam("media_id"),
            library_media.c.library_id.in_(chosen),
            func.coalesce(library_media.c.revision, base) != bindparam("number", type_=Integer),
        )
        .values(revision=bindparam("number"), moved_at=bindparam("now"), **keys)
    )


#: By whether the revision is the viewer's own: such a text goes into their default library, which nobody else can read.
_MOVES = {
    True: (_remember(_DEFAULT), _move(_DEFAULT)),
    False: (_remember(_ADMINISTERED), _move(_ADMINISTERED)),
}


def list_versions(session: Session, held: View, viewer: UUID, most: int = queries.MOST) -> list[Version]:
    """List what the viewer's libraries hold and have held of an item, and what is newer; the newest first."""
    return session.all(_ALL, media_id=held.row.id, viewer=viewer, shown=held.row.revision, most=most)


def find_version(session: Session, media_id: UUID, viewer: UUID, number: int) -> Version:
    """Return one of these. Raises NotFound for every other."""
    shown = queries.get_media(session, media_id, viewer).row.revision
    found = session.first(_ONE, media_id=media_id, viewer=viewer, shown=shown, number=number)
    if found is None:
        raise NotFound("You have no such version of this item. List its versions.")
    return found


def view_version(session: Session, media_id: UUID, viewer: UUID, number: int | None) -> View:
    """Return an item at one of these versions, or as the viewer sees it. Raises NotFound."""
    if number is not None:
        find_version(session, media_id, viewer, number)
    return queries.get_media(session, media_id, viewer, number)


def require_holder(session: Session, media_id: UUID, viewer: UUID) -> None:
    """Pass admins of a library that holds the item. Raises Forbidden for other readers, NotFound for all others."""
    access.require_readable(session, media_id, viewer)
    if session.first(_HOLDER, media_id=media_id, viewer=viewer) is None:
        raise Forbidden("Only an admin of a library that holds this item can choose its version.")


def use_version(sessions: Sessions, media_id: UUID, viewer: UUID, number: int) -> int:
    """Move the libraries that the viewer administers to a version; return how many moved.

    Raises NotFound, or Forbidden if they administer none that holds the item.
    """
    with sessions.begin() as session:
        lock_item(session, media_id)
        require_holder(session, media_id, viewer)
        found = find_version(session, media_id, viewer, number)
        return move_libraries(session, media_id, viewer, number, own=found.origin is Origin.ENTERED)


def move_libraries(session: Session, media_id: UUID, viewer: UUID, number: int, *, own: bool = False) -> int:
    """Let the libraries that a user administers hold a revision; return how many held another.

    The caller holds the item's row.
    """
    values = {"media_id": media_id, "viewer": viewer, "number": number, "now": session.now}
    remember, move = _MOVES[own]
    session.run(remember, **values)
    return session.run(move, **values)


def lock_item(session: Session, media_id: UUID) -> MediaRow:
    """Lock an item against deletion and against other changes of its revisions. Raises NotFound if it is gone."""
    found = session.first(_LOCK, media_id=media_id)
    if found is None:
        raise NotFound
    return found


def enter_own_text(sessions: Sessions, media_id: UUID, viewer: UUID, title: str, text: str) -> int:
    """Make a text that the viewer brings their own version of an item; return its number. Nobody else can read it.

    Raises NotFound, InvalidRequest for a text that is empty or too long, and Forbidden for somebody else's file, which
    only its uploader may put into a library.
    """
    if len(title) > TITLE_LENGTH or len(text) > TEXT_LENGTH:
        raise InvalidRequest(f"A title has at most {TITLE_LENGTH:,} characters, a text {TEXT_LENGTH:,}.")
    try:
        entered = storable(Extraction.plain(" ".join(title.split()) or None, text))
    except EmptyContent as error:
        raise InvalidRequest("The text is empty. Paste the text of the page.") from error
    return hold_own_text(sessions, media_id, viewer, entered)


def hold_own_text(sessions: Sessions, media_id: UUID, viewer: UUID, entered: Extraction) -> int:
    """Write a storable text as the viewer's own version of an item, for their default library; return its number.

    Raises NotFound, and Forbidden for somebody else's file.
    """
    ready = Readable.of(media_id, 0, Found(entered, ENTERED_BY), owner=viewer)
    with sessions.begin() as session:
        lock_item(session, media_id)
        access.require_readable(session, media_id, viewer)
        if access.uploader_of(session, media_id) not in {None, viewer}:
            raise Forbidden("Only the uploader can enter the text of this file.")
        catalog.hold_media(session, access.ensure_user(session, viewer), media_id)
        number = texts.add_revision(session, ready, made_by=viewer)
        move_libraries(session, media_id, viewer, number, own=True)
    return number
