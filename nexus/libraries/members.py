"""Who belongs to a library. People join by accepting an invitation; a library always has an admin."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, case, delete, func, or_, select, update

from nexus.db.rows import IdRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import invitations, libraries, library_media, memberships, users
from nexus.db.upserts import every_column, upsert
from nexus.errors import Conflict, DefaultLibrary, Forbidden, NotFound
from nexus.libraries import access, audit
from nexus.libraries.access import Membership, Role
from nexus.libraries.audit import AuditEvent
from nexus.libraries.people import NAME


class Member(NamedTuple):
    """Somebody in a library, as its other members see them."""

    user_id: UUID
    name: str | None
    email: str | None
    role: Role
    created_at: datetime


class _Admins(NamedTuple):
    admins: int


_LOCK = Query(
    select(libraries.c.id).where(libraries.c.id == bindparam("library_id")).with_for_update(), IdRow
)
_MEMBERS = Query(
    select(
        memberships.c.user_id,
        NAME.label("name"),
        users.c.email,
        memberships.c.role,
        memberships.c.created_at,
    )
    .join(users, users.c.id == memberships.c.user_id)
    .where(memberships.c.library_id == bindparam("library_id"))
    .order_by(memberships.c.created_at, memberships.c.user_id),
    Member,
)
_IS_ADMIN = memberships.c.role == Role.ADMIN.value
_JOIN = upsert(
    memberships,
    every_column(memberships),
    lambda new: new.on_conflict_do_update(
        index_elements=[memberships.c.user_id, memberships.c.library_id],
        set_={"role": case((_IS_ADMIN, memberships.c.role), else_=new.excluded.role)},
    ),
)
_ONE = (memberships.c.library_id == bindparam("library_id"), memberships.c.user_id == bindparam("user_id"))
_SET_ROLE = Statement(update(memberships).where(*_ONE).values(role=bindparam("new_role")))
_LEAVE = Statement(delete(memberships).where(*_ONE))
_ADMINS = Query(
    select(func.count().label("admins")).where(
        memberships.c.library_id == bindparam("library_id"), _IS_ADMIN
    ),
    _Admins,
)
_BY_THEM = invitations.c.invited_by == bindparam("user_id")
_TO_THEM = or_(
    invitations.c.user_id == bindparam("user_id"),
    invitations.c.email == select(users.c.email).where(users.c.id == bindparam("user_id")).scalar_subquery(),
)
_IN_LIBRARY = invitations.c.library_id == bindparam("library_id")
_FORGET = [
    Statement(
        delete(noted).where(
            noted.c.user_id == bindparam("user_id"),
            noted.c.media_id.in_(
                select(library_media.c.media_id).where(library_media.c.library_id == bindparam("library_id"))
            ),
            ~access.still_read(noted),
        )
    )
    for noted in access.PERSONAL
]
_WITHDRAW = Statement(delete(invitations).where(_IN_LIBRARY, _BY_THEM))
_WITHDRAW_ALL = Statement(delete(invitations).where(_IN_LIBRARY, or_(_BY_THEM, _TO_THEM)))


def lock_library(session: Session, library_id: UUID) -> bool:
    """Lock a library against other changes of its members; return whether it exists.

    Two admins can't demote each other at once then, and nothing is added during a deletion.
    """
    return session.first(_LOCK, library_id=library_id) is not None


def lock_as_admin(session: Session, library_id: UUID, viewer: UUID) -> Membership:
    """Lock a library, and return the viewer's place in it. Raises NotFound, or Forbidden for a plain member."""
    lock_library(session, library_id)
    return access.require_admin(session, library_id, viewer)


def list_members(session: Session, library_id: UUID, viewer: UUID) -> list[Member]:
    """Raises NotFound unless the viewer is one of them."""
    access.require_member(session, library_id, viewer)
    return session.all(_MEMBERS, library_id=library_id)


def join(session: Session, library_id: UUID, user_id: UUID, role: Role) -> None:
    """Make a user a member, without asking anybody. Somebody who is an admin already stays one."""
    session.run(_JOIN, library_id=library_id, user_id=user_id, role=role.value, created_at=session.now)


def set_role(session: Session, library_id: UUID, user_id: UUID, role: Role, viewer: UUID) -> bool:
    """Change a member's role; False if they are not in the library. Raises Conflict if that would leave no admin.

    The open invitations of an admin who becomes a plain member are void.
    """
    if lock_as_admin(session, library_id, viewer).is_default:
        raise DefaultLibrary
    if session.run(_SET_ROLE, library_id=library_id, user_id=user_id, new_role=role.value) == 0:
        return False
    _require_an_admin(session, library_id)
    if role is not Role.ADMIN:
        session.run(_WITHDRAW, library_id=library_id, user_id=user_id)
    audit.record(
        session,
        AuditEvent.ROLE_CHANGED,
        viewer,
        library_id=library_id,
        subject_id=user_id,
        about=role.value,
    )
    return True


def remove_member(session: Session, library_id: UUID, user_id: UUID, viewer: UUID) -> None:
    """Remove a member: admins can remove anyone, others only themselves.

    Invitations by them and to them are void, so that there is no way back in; what they have noted about items that
    they can't read any more goes. Raises Conflict if that would leave no
    admin.
    """
    lock_library(session, library_id)
    found = access.require_member(session, library_id, viewer)
    if user_id != viewer and found.role is not Role.ADMIN:
        raise Forbidden("Only an admin of this library can remove others from it.")
    if found.is_default:
        raise DefaultLibrary
    if session.run(_LEAVE, library_id=library_id, user_id=user_id) == 0:
        raise NotFound
    _require_an_admin(session, library_id)
    session.run(_WITHDRAW_ALL, library_id=library_id, user_id=user_id)
    for forget in _FORGET:
        session.run(forget, library_id=library_id, user_id=user_id)
    event = AuditEvent.MEMBER_LEFT if user_id == viewer else AuditEvent.MEMBER_REMOVED
    audit.record(session, event, viewer, library_id=library_id, subject_id=user_id)


def _require_an_admin(session: Session, library_id: UUID) -> None:
    found = session.first(_ADMINS, library_id=library_id)
    if found is None or found.admins == 0:
        raise Conflict("A library needs an admin. Make someone else admin first.")
