"""Libraries and what they hold. Nobody but its owner sees a default library."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, and_, bindparam, case, delete, exists, func, select, union, update

from nexus.db.list_keys import KEYS_IF_THERE
from nexus.db.pictures import pictures
from nexus.db.recordings import recordings
from nexus.db.rows import IdRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import (
    history,
    insert_all,
    libraries,
    library_media,
    media,
    media_file,
    memberships,
    revisions,
)
from nexus.db.upserts import upsert_from
from nexus.errors import Conflict, Forbidden, InvalidRequest, NotFound
from nexus.libraries import access, audit, members
from nexus.libraries.access import Role
from nexus.libraries.audit import AuditEvent
from nexus.states.media import Kind

NAME_LENGTH = 200


@dataclass(frozen=True)
class Gone:
    """A file or picture of a media that no library holds any more. Its rows are deleted; the object still has to be."""

    media_id: UUID
    kind: Kind
    #: The path of the object; None for a media that had none.
    storage_path: str | None


class MyLibrary(NamedTuple):
    """A library as one of its members sees it."""

    id: UUID
    name: str
    is_default: bool
    created_at: datetime
    role: Role


class _SharedText(NamedTuple):
    """The revision that somebody sees, if others may read it too."""

    base: int
    number: int


class _Held(NamedTuple):
    media_id: UUID


class _Holder(NamedTuple):
    library_id: UUID


class _Deleted(NamedTuple):
    kind: Kind


class _File(NamedTuple):
    storage_path: str


_CREATE = Statement(insert_all(libraries))
_DELETE = Statement(delete(libraries).where(libraries.c.id == bindparam("library_id")))
_SELECTED = select(
    libraries.c.id, libraries.c.name, libraries.c.is_default, libraries.c.created_at, memberships.c.role
).join(memberships, memberships.c.library_id == libraries.c.id)
_MINE = Query(
    _SELECTED.where(memberships.c.user_id == bindparam("viewer")).order_by(
        libraries.c.is_default.desc(), libraries.c.created_at, libraries.c.id
    ),
    MyLibrary,
)
_RENAME = Statement(
    update(libraries).where(libraries.c.id == bindparam("library_id")).values(name=bindparam("new_name"))
)
_ONE = Query(
    _SELECTED.where(memberships.c.user_id == bindparam("viewer"), libraries.c.id == bindparam("library_id")),
    MyLibrary,
)
_HOLDING = Query(
    _SELECTED.join(library_media, library_media.c.library_id == libraries.c.id)
    .where(memberships.c.user_id == bindparam("viewer"), library_media.c.media_id == bindparam("media_id"))
    .order_by(libraries.c.is_default.desc(), libraries.c.created_at, libraries.c.id),
    MyLibrary,
)
_HELD = Query(
    select(library_media.c.media_id).where(library_media.c.library_id == bindparam("library_id")), _Held
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
_DROP_ADMINISTERED = Query(
    delete(library_media)
    .where(library_media.c.media_id == bindparam("media_id"), library_media.c.library_id.in_(_ADMINISTERED))
    .returning(library_media.c.library_id),
    _Holder,
)
_DROP_EVERYWHERE = Query(
    delete(library_media)
    .where(library_media.c.media_id == bindparam("media_id"))
    .returning(library_media.c.library_id),
    _Holder,
)


def _hold(revision: ColumnElement[Any]) -> Statement:
    """An INSERT of a holding, with what the library's list is sorted by, that leaves an existing one as it is."""
    values: dict[str, ColumnElement[Any]] = {
        "library_id": bindparam("library_id", type_=library_media.c.library_id.type),
        "media_id": media.c.id,
        "added_at": bindparam("added_at", type_=library_media.c.added_at.type),
        "revision": revision,
        "host": media.c.host,
        **KEYS_IF_THERE,
    }
    held = func.coalesce(revision, media.c.revision)
    text = and_(revisions.c.media_id == media.c.id, revisions.c.number == held)
    rows = select(*values.values()).outerjoin_from(media, revisions, text)
    return upsert_from(
        library_media,
        list(values),
        rows.where(media.c.id == bindparam("media_id")),
        lambda new: new.on_conflict_do_nothing(),
    )


#: Somebody who adds an item later than others gets the newest text that everybody may read.
_HOLD = _hold(case((media.c.newest_revision > media.c.revision, media.c.newest_revision)))
_HOLD_REVISION = _hold(bindparam("number", type_=library_media.c.revision.type))
_SHOWN = (
    select(media.c.id, media.c.revision.label("base"), access.shown_revision().label("number"))
    .join_from(library_media, memberships, memberships.c.library_id == library_media.c.library_id)
    .join(media, media.c.id == library_media.c.media_id)
    .where(media.c.id == bindparam("media_id"), memberships.c.user_id == bindparam("viewer"))
    .group_by(media.c.id)
    .subquery("shown")
)
_SHARED_TEXT = Query(
    select(_SHOWN.c.base, _SHOWN.c.number)
    .join(revisions, and_(revisions.c.media_id == _SHOWN.c.id, revisions.c.number == _SHOWN.c.number))
    .where(revisions.c.private_to.is_(None)),
    _SharedText,
)
_OWN_TEXT = Query(
    select(library_media.c.media_id)
    .join(
        revisions,
        and_(
            revisions.c.media_id == library_media.c.media_id, revisions.c.number == library_media.c.revision
        ),
    )
    .where(
        library_media.c.library_id == bindparam("library_id"),
        library_media.c.media_id == bindparam("media_id"),
        revisions.c.private_to.is_not(None),
    ),
    _Held,
)
_LOCK_MEDIA = Query(select(media.c.id).where(media.c.id == bindparam("media_id")).with_for_update(), IdRow)
_HOLDERS = exists(
    select(library_media.c.media_id).where(library_media.c.media_id == media.c.id).correlate(media)
)
_DELETE_UNHELD = Query(
    delete(media).where(media.c.id == bindparam("media_id"), ~_HOLDERS).returning(media.c.kind), _Deleted
)
_FILES = Query(
    union(
        select(media_file.c.storage_path).where(media_file.c.media_id == bindparam("media_id")),
        select(pictures.c.storage_path).where(
            pictures.c.media_id == bindparam("media_id"), pictures.c.storage_path.is_not(None)
        ),
        select(recordings.c.audio_path).where(
            recordings.c.media_id == bindparam("media_id"), recordings.c.audio_path.is_not(None)
        ),
    ),
    _File,
)
#: What people have noted about an item that they can't read any more.
_FORGET = [
    Statement(delete(noted).where(noted.c.media_id == bindparam("media_id"), ~access.still_read(noted)))
    for noted in access.PERSONAL
]
_DELETE_HISTORY = Statement(
    delete(history).where(history.c.subject == "media", history.c.subject_id == bindparam("media_id"))
)


def list_libraries(session: Session, viewer: UUID) -> list[MyLibrary]:
    """Return the libraries that the viewer belongs to, the default one first."""
    return session.all(_MINE, viewer=viewer)


def get_library(session: Session, library_id: UUID, viewer: UUID) -> MyLibrary:
    """Raises NotFound unless the viewer belongs to it."""
    found = session.first(_ONE, library_id=library_id, viewer=viewer)
    if found is None:
        raise NotFound
    return found


def list_holding(session: Session, media_id: UUID, viewer: UUID) -> list[MyLibrary]:
    """Return those of the viewer's libraries that hold a media, the default one first."""
    return session.all(_HOLDING, media_id=media_id, viewer=viewer)


def create_library(session: Session, viewer: UUID, name: str) -> UUID:
    """Create a library with the viewer as its admin; return its id. Raises InvalidRequest for a bad name."""
    title = clean_name(name)
    access.ensure_user(session, viewer)
    library_id = uuid4()
    session.run(
        _CREATE, id=library_id, name=title, owner_user_id=viewer, is_default=False, created_at=session.now
    )
    members.join(session, library_id, viewer, Role.ADMIN)
    return library_id


def find_own_library(session: Session, viewer: UUID, name: str) -> UUID | None:
    """Return the oldest library of this name that the viewer can change."""
    wanted = " ".join(name.split())
    own = (row for row in list_libraries(session, viewer) if row.role is Role.ADMIN)
    return next((row.id for row in own if row.name == wanted), None)


def rename_library(session: Session, library_id: UUID, viewer: UUID, name: str) -> None:
    """Give a library another name, for all of its members; a default library too, which has only one.

    Raises NotFound, Forbidden for a plain member, InvalidRequest for a bad name.
    """
    title = clean_name(name)
    members.lock_as_admin(session, library_id, viewer)
    session.run(_RENAME, library_id=library_id, new_name=title)
    audit.record(session, AuditEvent.LIBRARY_RENAMED, viewer, library_id=library_id, about=title)


def clean_name(name: str) -> str:
    """Return the name as it is stored. Raises InvalidRequest if a library can't have it."""
    title = " ".join(name.split())
    if not title or len(title) > NAME_LENGTH or "\x00" in title:
        raise InvalidRequest(f"A library needs a name of 1 to {NAME_LENGTH} characters.")
    return title


def delete_library(session: Session, library_id: UUID, viewer: UUID) -> list[Gone]:
    """Delete a library, and every media that no other library holds.

    Returns the deleted media: once this is committed, their files have to be removed from storage.
    """
    if members.lock_as_admin(session, library_id, viewer).is_default:
        raise Forbidden("A default library can't be deleted. Remove what is in it instead.")
    name = get_library(session, library_id, viewer).name
    held = sorted(row.media_id for row in session.all(_HELD, library_id=library_id))
    gone = [each for media_id in held for each in _drop(session, library_id, media_id, viewer) or []]
    session.run(_DELETE, library_id=library_id)
    audit.record(session, AuditEvent.LIBRARY_DELETED, viewer, library_id=library_id, about=name)
    return gone


def add_media(session: Session, library_id: UUID, media_id: UUID, viewer: UUID) -> None:
    """Put a media that the viewer can read into a library that the viewer can change, with the text that they see.

    Only its uploader may put a file into a library. The media is locked first: what is checked after that stays
    true until the library holds it.
    """
    place = access.require_admin(session, library_id, viewer)
    access.keep_library(session, library_id)
    lock_media(session, media_id)
    access.require_readable(session, media_id, viewer)
    if access.uploader_of(session, media_id) not in {None, viewer}:
        raise Forbidden("Only the uploader can add this file to a library. Ask them to.")
    if _hold_shown(session, library_id, media_id, viewer) and not place.is_default:
        audit.record(session, AuditEvent.ITEM_SHARED, viewer, library_id=library_id, subject_id=media_id)


def move_media(
    session: Session, media_id: UUID, viewer: UUID, from_library_id: UUID, to_library_id: UUID
) -> None:
    """Take a media out of one library and put it into another, both or neither. The viewer can change both.

    It is never deleted on the way. Raises NotFound if the first does not hold it, Conflict if it holds a text that the
    viewer entered, which no other library may have.
    """
    for library_id in sorted({from_library_id, to_library_id}):
        access.keep_library(session, library_id)
    access.require_admin(session, from_library_id, viewer)
    lock_media(session, media_id)
    if session.first(_OWN_TEXT, library_id=from_library_id, media_id=media_id) is not None:
        raise Conflict(
            "You entered the text of this item, and only your own library can hold it. Copy the item."
        )
    add_media(session, to_library_id, media_id, viewer)
    if from_library_id != to_library_id:
        remove_media(session, from_library_id, media_id, viewer)


def _hold_shown(session: Session, library_id: UUID, media_id: UUID, viewer: UUID) -> bool:
    """Put a media into a library, in the revision that the viewer sees; return whether it is new there.

    The viewer's own text is not for others: instead of it, the library gets the newest that everybody may read.
    """
    held = {"library_id": library_id, "media_id": media_id, "added_at": session.now}
    shown = session.first(_SHARED_TEXT, media_id=media_id, viewer=viewer)
    if shown is None:
        return session.run(_HOLD, **held) > 0
    revision = None if shown.number == shown.base else shown.number
    return session.run(_HOLD_REVISION, number=revision, **held) > 0


def hold_media(session: Session, library_id: UUID, *media_ids: UUID) -> None:
    """Put media into a library, without asking who may. Those that it holds already stay as they are."""
    held = {"library_id": library_id, "added_at": session.now}
    session.run_many(_HOLD, [{**held, "media_id": media_id} for media_id in media_ids])


def remove_media(session: Session, library_id: UUID, media_id: UUID, viewer: UUID) -> list[Gone]:
    """Take a media out of a library, and delete it if no other library holds it.

    Raises NotFound if the library does not hold it.
    """
    access.require_admin(session, library_id, viewer)
    gone = _drop(session, library_id, media_id, viewer)
    if gone is None:
        raise NotFound
    audit.record(session, AuditEvent.ITEM_REMOVED, viewer, library_id=library_id, subject_id=media_id)
    return gone


def delete_media(session: Session, media_id: UUID, viewer: UUID) -> list[Gone]:
    """Take a media out of every library that the viewer administers, and delete it if no other library holds it.

    The uploader of a file takes it out of all libraries, also of those that they have left.
    """
    lock_media(session, media_id)
    if access.uploader_of(session, media_id) == viewer:
        holders = session.all(_DROP_EVERYWHERE, media_id=media_id)
    else:
        access.require_readable(session, media_id, viewer)
        holders = session.all(_DROP_ADMINISTERED, media_id=media_id, viewer=viewer)
        if not holders:
            raise Forbidden("Only an admin of a library that holds this item can remove it from there.")
    for holder in holders:
        audit.record(
            session, AuditEvent.ITEM_REMOVED, viewer, library_id=holder.library_id, subject_id=media_id
        )
    return _delete_unheld(session, media_id, viewer)


def lock_media(session: Session, media_id: UUID) -> bool:
    """Lock a media against deletion; return whether it exists.

    To avoid deadlocks, lock libraries before media, and several media in the order of their ids.
    """
    return session.first(_LOCK_MEDIA, media_id=media_id) is not None


def _drop(session: Session, library_id: UUID, media_id: UUID, viewer: UUID) -> list[Gone] | None:
    """None if the library does not hold it."""
    lock_media(session, media_id)
    if session.run(_DROP, library_id=library_id, media_id=media_id) == 0:
        return None
    return _delete_unheld(session, media_id, viewer)


def _delete_unheld(session: Session, media_id: UUID, viewer: UUID) -> list[Gone]:
    files = session.all(_FILES, media_id=media_id)
    deleted = session.first(_DELETE_UNHELD, media_id=media_id)
    if deleted is None:
        for forget in _FORGET:
            session.run(forget, media_id=media_id)
        return []
    session.run(_DELETE_HISTORY, media_id=media_id)
    audit.record(session, AuditEvent.ITEM_DELETED, viewer, subject_id=media_id, about=deleted.kind.value)
    paths: list[str | None] = [file.storage_path for file in files]
    return [Gone(media_id, deleted.kind, path) for path in paths or [None]]
