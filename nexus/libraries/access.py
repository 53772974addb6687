"""Who may see and do what. A viewer reads a media if and only if a library holds both."""

from __future__ import annotations

from enum import StrEnum
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, and_, bindparam, exists, or_, select

from nexus.db.session import Row, Session, Statement
from nexus.db.tables import libraries, library_media, media, memberships, users
from nexus.db.upserts import insert_or_nothing
from nexus.errors import Forbidden, NotFound


class Role(StrEnum):
    ADMIN = "admin"  #: may change the library
    MEMBER = "member"  #: may read what it holds


def _shared(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether one of the viewer's libraries holds the media of the enclosing query."""
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
MANAGED = or_(
    media.c.created_by_user_id == bindparam("viewer"), _shared(memberships.c.role == Role.ADMIN.value)
)

_MAY = Statement(
    select(READABLE.label("read"), and_(READABLE, MANAGED).label("manage")).where(
        media.c.id == bindparam("media_id")
    )
)
_USER = insert_or_nothing(users)
_LIBRARY = insert_or_nothing(libraries)
_MEMBER = insert_or_nothing(memberships)
_DEFAULT = Statement(
    select(libraries.c.id).where(libraries.c.owner_user_id == bindparam("user_id"), libraries.c.is_default)
)
_ROLE = Statement(
    select(memberships.c.role, libraries.c.is_default)
    .join(libraries, libraries.c.id == memberships.c.library_id)
    .where(memberships.c.user_id == bindparam("viewer"), memberships.c.library_id == bindparam("library_id"))
)
_KEEP = Statement(
    select(libraries.c.id)
    .where(libraries.c.id == bindparam("library_id"))
    .with_for_update(read=True, key_share=True)
)


def ensure_user(session: Session, user_id: UUID) -> UUID:
    """The user's default library; user, library and membership are made on the first call, once however many race."""
    found = session.first(_DEFAULT, user_id=user_id)
    if found is not None:
        return UUID(str(found.id))
    session.run(_USER, id=user_id, created_at=session.now)
    session.run(
        _LIBRARY,
        id=uuid4(),
        name="My library",
        owner_user_id=user_id,
        is_default=True,
        created_at=session.now,
    )
    library_id: UUID = default_library(session, user_id)
    session.run(
        _MEMBER, user_id=user_id, library_id=library_id, role=Role.ADMIN.value, created_at=session.now
    )
    return library_id


def default_library(session: Session, user_id: UUID) -> UUID:
    """Raises NotFound for a user who has never been here."""
    found = session.first(_DEFAULT, user_id=user_id)
    if found is None:
        raise NotFound
    library_id: UUID = found.id
    return library_id


def keep_library(session: Session, library_id: UUID) -> UUID:
    """Locked against its deletion; before any media's lock, as a deletion does it. Raises NotFound where it is gone."""
    if session.first(_KEEP, library_id=library_id) is None:
        raise NotFound
    return library_id


def require_manager(session: Session, media_id: UUID, viewer: UUID) -> None:
    """The creator, or an admin of a library that holds it; others who may read it are Forbidden, the rest NotFound."""
    may = session.first(_MAY, media_id=media_id, viewer=viewer)
    if may is None or not may.read:
        raise NotFound
    if not may.manage:
        raise Forbidden


def require_readable(session: Session, media_id: UUID, viewer: UUID) -> None:
    may = session.first(_MAY, media_id=media_id, viewer=viewer)
    if may is None or not may.read:
        raise NotFound


def require_member(session: Session, library_id: UUID, viewer: UUID) -> Row:
    found = session.first(_ROLE, library_id=library_id, viewer=viewer)
    if found is None:
        raise NotFound
    return found


def require_admin(session: Session, library_id: UUID, viewer: UUID) -> Row:
    found = require_member(session, library_id, viewer)
    if found.role != Role.ADMIN.value:
        raise Forbidden
    return found
