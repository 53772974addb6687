"""Libraries: what they hold and who belongs to them. A default library is its owner's alone."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

from sqlalchemy import bindparam, delete, exists, func, select

from nexus.db.session import Row, Session, Statement
from nexus.db.tables import (
    history,
    insert_all,
    libraries,
    library_media,
    media,
    media_file,
    memberships,
    users,
)
from nexus.db.upserts import every_column, insert_or_nothing, upsert
from nexus.errors import Conflict, DefaultLibrary, Forbidden, InvalidRequest, NotFound
from nexus.libraries import access
from nexus.libraries.access import Role
from nexus.states.media import Kind

NAME_LENGTH = 200


@dataclass(frozen=True)
class Gone:
    """A media that no library holds any more: its rows are deleted, its object is yet to be."""

    media_id: UUID
    kind: Kind
    #: Where its file was, if it had one.
    storage_path: str | None


_CREATE = Statement(insert_all(libraries))
_DELETE = Statement(delete(libraries).where(libraries.c.id == bindparam("library_id")))
_LOCK = Statement(select(libraries.c.id).where(libraries.c.id == bindparam("library_id")).with_for_update())
_SELECTED = select(
    libraries.c.id, libraries.c.name, libraries.c.is_default, libraries.c.created_at, memberships.c.role
).join(memberships, memberships.c.library_id == libraries.c.id)
_MINE = Statement(
    _SELECTED.where(memberships.c.user_id == bindparam("viewer")).order_by(
        libraries.c.is_default.desc(), libraries.c.created_at, libraries.c.id
    )
)
_ONE = Statement(
    _SELECTED.where(memberships.c.user_id == bindparam("viewer"), libraries.c.id == bindparam("library_id"))
)
_MEMBERS = Statement(
    select(memberships.c.user_id, memberships.c.role, memberships.c.created_at)
    .where(memberships.c.library_id == bindparam("library_id"))
    .order_by(memberships.c.created_at, memberships.c.user_id)
)
_KNOWN = Statement(select(users.c.id).where(users.c.id == bindparam("user_id")))
_SET_ROLE = upsert(
    memberships,
    every_column(memberships),
    lambda new: new.on_conflict_do_update(
        index_elements=[memberships.c.user_id, memberships.c.library_id], set_={"role": new.excluded.role}
    ),
)
_LEAVE = Statement(
    delete(memberships).where(
        memberships.c.library_id == bindparam("library_id"), memberships.c.user_id == bindparam("user_id")
    )
)
_ADMINS = Statement(
    select(func.count().label("admins")).where(
        memberships.c.library_id == bindparam("library_id"), memberships.c.role == Role.ADMIN.value
    )
)
_HELD = Statement(
    select(library_media.c.media_id).where(library_media.c.library_id == bindparam("library_id"))
)
_DROP = Statement(
    delete(library_media).where(
        library_media.c.library_id == bindparam("library_id"),
        library_media.c.media_id == bindparam("media_id"),
    )
)
_ADMINISTERED = select(memberships.c.library_id).where(
    memberships.c.user_id == bindparam("viewer"), memberships.c.role == Role.ADMIN.value
)
_DROP_ADMINISTERED = Statement(
    delete(library_media).where(
        library_media.c.media_id == bindparam("media_id"), library_media.c.library_id.in_(_ADMINISTERED)
    )
)
_HOLD = insert_or_nothing(library_media)
_LOCK_MEDIA = Statement(select(media.c.id).where(media.c.id == bindparam("media_id")).with_for_update())
_HOLDERS = exists(
    select(library_media.c.media_id).where(library_media.c.media_id == media.c.id).correlate(media)
)
_DELETE_UNHELD = Statement(
    delete(media).where(media.c.id == bindparam("media_id"), ~_HOLDERS).returning(media.c.kind)
)
_FILE = Statement(select(media_file.c.storage_path).where(media_file.c.media_id == bindparam("media_id")))
_DELETE_HISTORY = Statement(
    delete(history).where(history.c.subject == "media", history.c.subject_id == bindparam("media_id"))
)


def mine(session: Session, viewer: UUID) -> list[Row]:
    """The default library first."""
    return session.all(_MINE, viewer=viewer)


def get(session: Session, library_id: UUID, viewer: UUID) -> Row:
    found = session.first(_ONE, library_id=library_id, viewer=viewer)
    if found is None:
        raise NotFound
    return found


def create(session: Session, viewer: UUID, name: str) -> UUID:
    """The viewer becomes its admin."""
    title = proper_name(name)
    access.ensure_user(session, viewer)
    library_id = uuid4()
    session.run(
        _CREATE, id=library_id, name=title, owner_user_id=viewer, is_default=False, created_at=session.now
    )
    _set_role(session, library_id, viewer, Role.ADMIN)
    return library_id


def named(session: Session, viewer: UUID, name: str) -> UUID | None:
    """The oldest of this name that the viewer may change."""
    wanted = " ".join(name.split())
    own = (row for row in mine(session, viewer) if row.role == Role.ADMIN.value)
    return next((row.id for row in own if row.name == wanted), None)


def proper_name(name: str) -> str:
    """Raises InvalidRequest for what no library can be called."""
    title = " ".join(name.split())
    if not title or len(title) > NAME_LENGTH or "\x00" in title:
        raise InvalidRequest(f"A library needs a name of 1 to {NAME_LENGTH} characters.")
    return title


def delete_library(session: Session, library_id: UUID, viewer: UUID) -> list[Gone]:
    """Media that no other library holds go with it: these are answered, so that their objects can go too."""
    if _lock_as_admin(session, library_id, viewer).is_default:
        raise Forbidden("A default library can't be deleted. Remove what is in it instead.")
    held = sorted(row.media_id for row in session.all(_HELD, library_id=library_id))
    gone = [each for media_id in held for each in _drop(session, library_id, media_id) or []]
    session.run(_DELETE, library_id=library_id)
    return gone


def add_media(session: Session, library_id: UUID, media_id: UUID, viewer: UUID) -> None:
    access.require_admin(session, library_id, viewer)
    access.keep_library(session, library_id)
    access.require_readable(session, media_id, viewer)
    if not lock_media(session, media_id):
        raise NotFound
    hold(session, library_id, media_id)


def hold(session: Session, library_id: UUID, *media_ids: UUID) -> None:
    """Put media into a library; nothing where they are already."""
    held = {"library_id": library_id, "added_at": session.now}
    session.run_many(_HOLD, [{**held, "media_id": media_id} for media_id in media_ids])


def remove_media(session: Session, library_id: UUID, media_id: UUID, viewer: UUID) -> list[Gone]:
    """Out of this library; the rows go when no library holds it any more. Raises NotFound where it is not in it."""
    access.require_admin(session, library_id, viewer)
    gone = _drop(session, library_id, media_id)
    if gone is None:
        raise NotFound
    return gone


def delete_media(session: Session, media_id: UUID, viewer: UUID) -> list[Gone]:
    """Out of every library that the viewer administers; the rows go when no other holds it."""
    lock_media(session, media_id)
    access.require_readable(session, media_id, viewer)
    if session.run(_DROP_ADMINISTERED, media_id=media_id, viewer=viewer) == 0:
        raise Forbidden
    return _delete_unheld(session, media_id)


def lock_media(session: Session, media_id: UUID) -> bool:
    """Against its deletion, after any library's lock; whether it is there. Several are locked in the order of ids."""
    return session.first(_LOCK_MEDIA, media_id=media_id) is not None


def members(session: Session, library_id: UUID, viewer: UUID) -> list[Row]:
    access.require_member(session, library_id, viewer)
    return session.all(_MEMBERS, library_id=library_id)


def set_member(session: Session, library_id: UUID, user_id: UUID, role: Role, viewer: UUID) -> None:
    """Let a user in, or change what he is. At least one admin stays."""
    if _lock_as_admin(session, library_id, viewer).is_default:
        raise DefaultLibrary
    if session.first(_KNOWN, user_id=user_id) is None:
        raise NotFound("There is no such user. He has to sign in once before he can be let in.")
    _set_role(session, library_id, user_id, role)
    _require_an_admin(session, library_id)


def remove_member(session: Session, library_id: UUID, user_id: UUID, viewer: UUID) -> None:
    """Admins remove anyone; everyone may leave. At least one admin stays."""
    session.first(_LOCK, library_id=library_id)
    found = access.require_member(session, library_id, viewer)
    if user_id != viewer and found.role != Role.ADMIN.value:
        raise Forbidden
    if found.is_default:
        raise DefaultLibrary
    if session.run(_LEAVE, library_id=library_id, user_id=user_id) == 0:
        raise NotFound
    _require_an_admin(session, library_id)


def _lock_as_admin(session: Session, library_id: UUID, viewer: UUID) -> Row:
    """The lock keeps two admins from demoting each other at once, and whatever is added from being orphaned."""
    session.first(_LOCK, library_id=library_id)
    return access.require_admin(session, library_id, viewer)


def _set_role(session: Session, library_id: UUID, user_id: UUID, role: Role) -> None:
    session.run(_SET_ROLE, library_id=library_id, user_id=user_id, role=role.value, created_at=session.now)


def _require_an_admin(session: Session, library_id: UUID) -> None:
    found = session.first(_ADMINS, library_id=library_id)
    if found is None or found.admins == 0:
        raise Conflict("A library needs an admin. Make someone else admin first.")


def _drop(session: Session, library_id: UUID, media_id: UUID) -> list[Gone] | None:
    """What is gone with it; None where the library does not hold it."""
    lock_media(session, media_id)
    if session.run(_DROP, library_id=library_id, media_id=media_id) == 0:
        return None
    return _delete_unheld(session, media_id)


def _delete_unheld(session: Session, media_id: UUID) -> list[Gone]:
    file = session.first(_FILE, media_id=media_id)
    deleted = session.first(_DELETE_UNHELD, media_id=media_id)
    if deleted is None:
        return []
    session.run(_DELETE_HISTORY, media_id=media_id)
    return [Gone(media_id, Kind(deleted.kind), file and file.storage_path)]
