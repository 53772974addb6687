"""Who may see and change what. A viewer can read a media only if one of the viewer's libraries holds it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    Integer,
    Table,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from nexus.db.recordings import heard, listening
from nexus.db.rows import IdRow
from nexus.db.session import Query, Session
from nexus.db.shelves import shelf
from nexus.db.tables import libraries, library_media, media, memberships, one_of, users
from nexus.db.upserts import insert_or_nothing, upsert
from nexus.errors import Forbidden, NotFound
from nexus.states.media import FILE_KINDS


class Role(StrEnum):
    ADMIN = "admin"  #: can change the library
    MEMBER = "member"  #: can read what the library holds


class Access(NamedTuple):
    """What a viewer may do with a media."""

    read: bool
    manage: bool


class Membership(NamedTuple):
    """A viewer's place in a library."""

    role: Role
    is_default: bool


class _Uploader(NamedTuple):
    user_id: UUID


#: The revision that a library holds.
HOLDS = func.coalesce(library_media.c.revision, media.c.revision)


def shown_revision() -> ColumnElement[int]:
    """Return the revision that a viewer sees, in a query that groups their holdings of a media; 0 without any.

    That is what their default library holds, which nobody else can change. Without it, they see the newest
    revision that a library they administer holds; without that, the newest that others share with them.
    """
    # Written out, so that SQLite uses the partial index on default libraries.
    is_default: ColumnElement[bool] = literal_column("libraries.is_default")
    default = select(libraries.c.id).where(libraries.c.owner_user_id == bindparam("viewer"), is_default)
    own = func.max(case((library_media.c.library_id == default.scalar_subquery(), HOLDS)))
    administered = func.max(case((memberships.c.role == Role.ADMIN.value, HOLDS)))
    none: ColumnElement[int] = literal_column("0")
    return func.coalesce(
        func.nullif(own, none), func.nullif(administered, none), func.max(HOLDS), type_=Integer
    )


def _shared(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """A condition: one of the viewer's libraries holds the media of the enclosing query."""
    return exists(
        select(library_media.c.media_id)
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .where(
            library_media.c.media_id == media.c.id,
            memberships.c.user_id == bindparam("viewer"),
            *conditions,
        )
        .correlate(media)
    )


READABLE = _shared()
#: Since when one of the viewer's libraries has held the media of the enclosing query.
HELD_SINCE = (
    select(func.min(library_media.c.added_at))
    .join(memberships, memberships.c.library_id == library_media.c.library_id)
    .where(library_media.c.media_id == media.c.id, memberships.c.user_id == bindparam("viewer"))
    .correlate(media)
    .scalar_subquery()
)
MANAGED = or_(
    media.c.created_by_user_id == bindparam("viewer"), _shared(memberships.c.role == Role.ADMIN.value)
)

#: What people note about items for themselves. A row goes when its owner can't read the item any more.
PERSONAL = (shelf, heard, listening)


def still_read(noted: Table) -> ColumnElement[bool]:
    """Return whether the owner of a row of the enclosing query can still read the item that it is about."""
    return exists(
        select(library_media.c.media_id)
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .where(library_media.c.media_id == noted.c.media_id, memberships.c.user_id == noted.c.user_id)
        .correlate(noted)
    )


_ACCESS = Query(
    select(READABLE.label("read"), and_(READABLE, MANAGED).label("manage")).where(
        media.c.id == bindparam("media_id")
    ),
    Access,
)
_UPLOADER = Query(
    select(media.c.created_by_user_id.label("user_id")).where(
        media.c.id == bindparam("media_id"), one_of(media.c.kind, FILE_KINDS)
    ),
    _Uploader,
)
_USER = upsert(
    users,
    {users.c.id: bindparam("id"), users.c.created_at: bindparam("created_at")},
    lambda new: new.on_conflict_do_nothing(),
)
_LIBRARY = insert_or_nothing(libraries)
_MEMBER = insert_or_nothing(memberships)
_DEFAULT = Query(
    select(libraries.c.id).where(libraries.c.owner_user_id == bindparam("user_id"), libraries.c.is_default),
    IdRow,
)
_MEMBERSHIP = Query(
    select(memberships.c.role, libraries.c.is_default)
    .join(libraries, libraries.c.id == memberships.c.library_id)
    .where(memberships.c.user_id == bindparam("viewer"), memberships.c.library_id == bindparam("library_id")),
    Membership,
)
_KEEP = Query(
    select(libraries.c.id)
    .where(libraries.c.id == bindparam("library_id"))
    .with_for_update(read=True, key_share=True),
    IdRow,
)


def ensure_user(session: Session, user_id: UUID) -> UUID:
    """Return the user's default library; create user, library and membership on the first call.

    Of several first calls that race, one creates them and the others find them.
    """
    found = session.first(_DEFAULT, user_id=user_id)
    if found is not None:
        return found.id
    session.run(_USER, id=user_id, created_at=session.now)
    session.run(
        _LIBRARY,
        id=uuid4(),
        name="My library",
        owner_user_id=user_id,
        is_default=True,
        created_at=session.now,
    )
    library_id = default_library(session, user_id)
    session.run(
        _MEMBER, user_id=user_id, library_id=library_id, role=Role.ADMIN.value, created_at=session.now
    )
    return library_id


def default_library(session: Session, user_id: UUID) -> UUID:
    """Return the user's default library. Raises NotFound if the user has never signed in."""
    found = session.first(_DEFAULT, user_id=user_id)
    if found is None:
        raise NotFound
    return found.id


def keep_library(session: Session, library_id: UUID) -> UUID:
    """Lock a library against deletion. Raises NotFound if it is gone.

    A deletion locks the library before its media, so take this lock before any media's.
    """
    if session.first(_KEEP, library_id=library_id) is None:
        raise NotFound
    return library_id


def require_manager(session: Session, media_id: UUID, viewer: UUID) -> None:
    """Pass the creator, and admins of a library that holds the media.

    Raises Forbidden for others who can read it, NotFound for everybody else.
    """
    if not _require_readable(session, media_id, viewer).manage:
        raise Forbidden


def require_readable(session: Session, media_id: UUID, viewer: UUID) -> None:
    """Raises NotFound unless the viewer can read the media."""
    _require_readable(session, media_id, viewer)


def can_read(session: Session, media_id: UUID, viewer: UUID) -> bool:
    found = session.first(_ACCESS, media_id=media_id, viewer=viewer)
    return found is not None and found.read


def _require_readable(session: Session, media_id: UUID, viewer: UUID) -> Access:
    found = session.first(_ACCESS, media_id=media_id, viewer=viewer)
    if found is None or not found.read:
        raise NotFound
    return found


def uploader_of(session: Session, media_id: UUID) -> UUID | None:
    """Return who uploaded a file; None for what has an address."""
    found = session.first(_UPLOADER, media_id=media_id)
    return None if found is None else found.user_id


def require_member(session: Session, library_id: UUID, viewer: UUID) -> Membership:
    """Return the viewer's place in a library. Raises NotFound if there is none."""
    found = session.first(_MEMBERSHIP, library_id=library_id, viewer=viewer)
    if found is None:
        raise NotFound
    return found


def require_admin(session: Session, library_id: UUID, viewer: UUID) -> Membership:
    """The same, for admins alone. Raises Forbidden for a plain member."""
    found = require_member(session, library_id, viewer)
    if found.role is not Role.ADMIN:
        raise Forbidden("Only an admin of this library can do this. Its members are listed with their roles.")
    return found
