"""The audit log: who did what, when, and from where. An entry is written in the transaction that makes the change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, delete, func, insert, or_, select

from nexus.db.session import Query, Session, Statement
from nexus.db.tables import audit, memberships
from nexus.libraries.access import Role

PAGE = 50
MOST = 200


class AuditEvent(StrEnum):
    SIGNED_IN = "signed_in"
    SIGNED_OUT = "signed_out"
    TOKEN_CREATED = "token_created"  # noqa: S105 a name, not a token
    TOKEN_REVOKED = "token_revoked"  # noqa: S105
    INVITED = "invited"
    INVITATION_ACCEPTED = "invitation_accepted"
    INVITATION_DECLINED = "invitation_declined"
    INVITATION_REVOKED = "invitation_revoked"
    ROLE_CHANGED = "role_changed"
    MEMBER_REMOVED = "member_removed"
    MEMBER_LEFT = "member_left"
    ITEM_SHARED = "item_shared"
    ITEM_REMOVED = "item_removed"
    ITEM_DELETED = "item_deleted"
    LIBRARY_RENAMED = "library_renamed"
    LIBRARY_DELETED = "library_deleted"
    SETTING_CHANGED = "setting_changed"
    SUBSCRIBED = "subscribed"
    UNSUBSCRIBED = "unsubscribed"
    JOB_REMOVED = "job_removed"


class AuditEntry(NamedTuple):
    id: int
    at: datetime
    event: AuditEvent
    #: None if nobody was signed in.
    user_id: UUID | None
    #: None for the command line.
    address: str | None
    library_id: UUID | None
    #: The item, person, invitation, token, subscription or job that it is about.
    subject_id: UUID | None
    about: str | None


class Extent(NamedTuple):
    """How many entries there are, and since when."""

    entries: int
    oldest: datetime | None


@dataclass(frozen=True)
class AuditFilter:
    """Which entries are wanted; None means all."""

    library_id: UUID | None = None
    user_id: UUID | None = None
    event: AuditEvent | None = None


_ADDRESS: ContextVar[str | None] = ContextVar("audit_address", default=None)
_RECORD = Statement(insert(audit).values({c: bindparam(c.name) for c in audit.c if c.name != "id"}).inline())
_FORGET = Statement(delete(audit).where(audit.c.at < bindparam("before", type_=audit.c.at.type)))
_EXTENT = Query(select(func.count().label("entries"), func.min(audit.c.at).label("oldest")), Extent)
_ADMINISTERED = select(memberships.c.library_id).where(
    memberships.c.user_id == bindparam("viewer"), memberships.c.role == Role.ADMIN.value
)
_OWN = or_(audit.c.user_id == bindparam("viewer"), audit.c.library_id.in_(_ADMINISTERED))


@contextmanager
def called_from(address: str | None) -> Iterator[None]:
    """Name the caller's address in every entry that is recorded inside the block."""
    before = _ADDRESS.set(address)
    try:
        yield
    finally:
        _ADDRESS.reset(before)


def record(
    session: Session,
    event: AuditEvent,
    user_id: UUID | None,
    *,
    library_id: UUID | None = None,
    subject_id: UUID | None = None,
    about: str | None = None,
) -> None:
    """Write an entry. Call this in the transaction that makes the change, so that neither is there without the other.

    An entry with a library is for the admins of that library too. `about` is a few words: never a secret, never a text.
    """
    session.run(
        _RECORD,
        at=session.now,
        event=event.value,
        user_id=user_id,
        address=_ADDRESS.get(),
        library_id=library_id,
        subject_id=subject_id,
        about=about,
    )


def entries(
    session: Session,
    viewer: UUID,
    wanted: AuditFilter,
    *,
    everything: bool,
    before: int | None = None,
    most: int = PAGE,
) -> list[AuditEntry]:
    """Return what the viewer did and what happened in libraries that they administer, the latest first.

    With `everything`, which is for operators, return all entries.
    """
    given = {"library_id": wanted.library_id, "by": wanted.user_id, "event": wanted.event, "before": before}
    values = {name: value for name, value in given.items() if value is not None}
    found = _entries(frozenset(values), everything)
    return session.all(found, viewer=viewer, most=most, **values)


def extent(session: Session) -> Extent:
    (found,) = session.all(_EXTENT)
    return found


def forget(session: Session, before: datetime) -> int:
    """Delete entries that are older; return how many there were."""
    return session.run(_FORGET, before=before)


@lru_cache
def _entries(given: frozenset[str], everything: bool) -> Query[AuditEntry]:
    conditions: dict[str, ColumnElement[bool]] = {
        "library_id": audit.c.library_id == bindparam("library_id"),
        "by": audit.c.user_id == bindparam("by", type_=audit.c.user_id.type),
        "event": audit.c.event == bindparam("event"),
        "before": audit.c.id < bindparam("before", type_=audit.c.id.type),
    }
    chosen = [conditions[name] for name in sorted(given)] + ([] if everything else [_OWN])
    query = select(audit).where(*chosen).order_by(audit.c.id.desc()).limit(bindparam("most"))
    return Query(query, AuditEntry)
