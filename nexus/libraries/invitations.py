"""Invitations into a library: by email or by user id, answered once by the invited person.

An invitation is never compared with the people Nexus knows until its addressee looks, so inviting says nothing about
who has signed in. The answer deletes its row, so only the first of two answers counts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, delete, func, or_, select

from nexus.db.session import Query, Session, Statement
from nexus.db.tables import invitations, libraries, memberships, users
from nexus.db.upserts import every_column, upsert_returning
from nexus.errors import Conflict, DefaultLibrary, NotFound
from nexus.libraries import access, audit, members, people
from nexus.libraries.access import Role
from nexus.libraries.audit import AuditEvent

#: How many of one person's invitations may be open at a time.
MOST_OPEN = 100
GONE = "This invitation is no longer open, or it is not for you."


class Invitee(NamedTuple):
    """Who is invited: one of the two."""

    email: str | None = None
    user_id: UUID | None = None

    @classmethod
    def typed(cls, text: str) -> Invitee:
        """Read what somebody typed: a user id, or else an email."""
        try:
            return cls(user_id=UUID(text.strip()))
        except ValueError:
            return cls(email=text)


class Invitation(NamedTuple):
    """An open invitation, as the admins of its library see it."""

    id: UUID
    library_id: UUID
    email: str | None
    user_id: UUID | None
    role: Role
    invited_by: UUID
    created_at: datetime
    expires_at: datetime


class Offer(NamedTuple):
    """An open invitation, as the invited person sees it. It names the inviter."""

    id: UUID
    library_id: UUID
    library_name: str
    role: Role
    inviter_name: str | None
    inviter_email: str | None
    created_at: datetime
    expires_at: datetime


class _MemberId(NamedTuple):
    user_id: UUID


class _Open(NamedTuple):
    open: int


class _Answered(NamedTuple):
    library_id: UUID
    role: Role


def _renewing(key: str) -> Query[Invitation]:
    """One invitation for each invitee: inviting again renews it."""

    def renew(new: Any) -> Any:
        changed = ("role", "invited_by", "created_at", "expires_at")
        return new.on_conflict_do_update(
            index_elements=[invitations.c.library_id, invitations.c[key]],
            set_={name: new.excluded[name] for name in changed},
        ).returning(*invitations.c)

    on_conflict: Callable[[Any], Any] = renew
    return upsert_returning(Invitation, invitations, every_column(invitations), on_conflict)


_INVITE = {"email": _renewing("email"), "user_id": _renewing("user_id")}
_IS_OPEN = invitations.c.expires_at > bindparam("now", type_=invitations.c.expires_at.type)
_FOR_VIEWER = or_(
    invitations.c.user_id == bindparam("viewer"),
    invitations.c.email == select(users.c.email).where(users.c.id == bindparam("viewer")).scalar_subquery(),
)
_THIS = invitations.c.id == bindparam("invitation_id")
_MEMBER = Query(
    select(memberships.c.user_id)
    .join(users, users.c.id == memberships.c.user_id)
    .where(
        memberships.c.library_id == bindparam("library_id"),
        or_(
            users.c.id == bindparam("user_id", type_=users.c.id.type),
            users.c.email == bindparam("email", type_=users.c.email.type),
        ),
    ),
    _MemberId,
)
_COUNT = Query(
    select(func.count().label("open")).where(invitations.c.invited_by == bindparam("viewer"), _IS_OPEN), _Open
)
_LIST = Query(
    select(invitations)
    .where(invitations.c.library_id == bindparam("library_id"), _IS_OPEN)
    .order_by(invitations.c.created_at, invitations.c.id),
    Invitation,
)
_OFFERS = Query(
    select(
        invitations.c.id,
        invitations.c.library_id,
        libraries.c.name.label("library_name"),
        invitations.c.role,
        people.NAME.label("inviter_name"),
        users.c.email.label("inviter_email"),
        invitations.c.created_at,
        invitations.c.expires_at,
    )
    .join(libraries, libraries.c.id == invitations.c.library_id)
    .join(users, users.c.id == invitations.c.invited_by)
    .where(_FOR_VIEWER, _IS_OPEN)
    .order_by(invitations.c.created_at, invitations.c.id),
    Offer,
)
_ANSWER = (invitations.c.library_id, invitations.c.role)
_FIND = Query(select(*_ANSWER).where(_THIS, _FOR_VIEWER, _IS_OPEN), _Answered)
_TAKE = Query(delete(invitations).where(_THIS, _FOR_VIEWER, _IS_OPEN).returning(*_ANSWER), _Answered)
_REVOKE = Query(
    delete(invitations).where(_THIS, invitations.c.library_id == bindparam("library_id")).returning(*_ANSWER),
    _Answered,
)
_FORGET = Statement(
    delete(invitations).where(
        invitations.c.expires_at <= bindparam("now", type_=invitations.c.expires_at.type)
    )
)


def invite(
    session: Session, library_id: UUID, viewer: UUID, invitee: Invitee, role: Role, life: timedelta
) -> Invitation:
    """Invite somebody into a library, or renew their invitation.

    Raises NotFound, Forbidden for a plain member, DefaultLibrary, InvalidRequest for a bad email, and Conflict for
    somebody who is in the library.
    """
    email = None if invitee.email is None else people.clean_email(invitee.email)
    if members.lock_as_admin(session, library_id, viewer).is_default:
        raise DefaultLibrary
    if session.first(_MEMBER, library_id=library_id, user_id=invitee.user_id, email=email) is not None:
        raise Conflict("This person is already in the library. You can change their role.")
    made = session.first(
        _INVITE["user_id" if email is None else "email"],
        id=uuid4(),
        library_id=library_id,
        email=email,
        user_id=invitee.user_id,
        role=role.value,
        invited_by=viewer,
        created_at=session.now,
        expires_at=session.now + life,
    )
    assert made is not None  # noqa: S101 an upsert answers with its row
    (sent,) = session.all(_COUNT, viewer=viewer, now=session.now)
    if sent.open > MOST_OPEN:
        raise Conflict(f"You have {MOST_OPEN} open invitations. Revoke some, or wait for an answer.")
    audit.record(
        session,
        AuditEvent.INVITED,
        viewer,
        library_id=library_id,
        subject_id=made.id,
        about=f"{email or invitee.user_id} as {role.value}",
    )
    return made


def set_role_or_invite(
    session: Session, library_id: UUID, user_id: UUID, role: Role, viewer: UUID, life: timedelta
) -> Invitation | None:
    """Change a member's role; somebody who is not in the library is invited. Returns the invitation, if one was made.

    Raises as `members.set_role` and `invite` do.
    """
    if members.set_role(session, library_id, user_id, role, viewer):
        return None
    return invite(session, library_id, viewer, Invitee(user_id=user_id), role, life)


def list_invitations(session: Session, library_id: UUID, viewer: UUID) -> list[Invitation]:
    """Return a library's open invitations. Raises NotFound, or Forbidden for a plain member."""
    access.require_admin(session, library_id, viewer)
    return session.all(_LIST, library_id=library_id, now=session.now)


def list_offers(session: Session, viewer: UUID) -> list[Offer]:
    """Return the open invitations to the viewer: to their id, or to their verified email."""
    return session.all(_OFFERS, viewer=viewer, now=session.now)


def accept(session: Session, invitation_id: UUID, viewer: UUID) -> UUID:
    """Make the viewer a member; return the library. Raises NotFound unless the invitation is open and theirs."""
    found = session.first(_FIND, invitation_id=invitation_id, viewer=viewer, now=session.now)
    # Libraries are locked before what belongs to them.
    if found is None or not members.lock_library(session, found.library_id):
        raise NotFound(GONE)
    taken = session.first(_TAKE, invitation_id=invitation_id, viewer=viewer, now=session.now)
    if taken is None:
        raise NotFound(GONE)
    members.join(session, taken.library_id, viewer, taken.role)
    audit.record(
        session,
        AuditEvent.INVITATION_ACCEPTED,
        viewer,
        library_id=taken.library_id,
        subject_id=invitation_id,
        about=taken.role.value,
    )
    return taken.library_id


def decline(session: Session, invitation_id: UUID, viewer: UUID) -> None:
    """Raises NotFound likewise. The library's admins don't learn who declined: the entry is not in its log."""
    taken = session.first(_TAKE, invitation_id=invitation_id, viewer=viewer, now=session.now)
    if taken is None:
        raise NotFound(GONE)
    audit.record(session, AuditEvent.INVITATION_DECLINED, viewer, subject_id=invitation_id)


def revoke_invitation(session: Session, library_id: UUID, invitation_id: UUID, viewer: UUID) -> None:
    """Take an invitation back. Raises NotFound if it is not open, or Forbidden for a plain member."""
    members.lock_as_admin(session, library_id, viewer)
    if session.first(_REVOKE, invitation_id=invitation_id, library_id=library_id) is None:
        raise NotFound("This invitation is no longer open.")
    audit.record(
        session, AuditEvent.INVITATION_REVOKED, viewer, library_id=library_id, subject_id=invitation_id
    )


def forget_expired(session: Session) -> int:
    """Delete invitations that can't be accepted any more; return how many there were."""
    return session.run(_FORGET, now=session.now)
