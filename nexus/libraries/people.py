"""Who people are: a name and a verified email. Only people who share a library learn them from each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, exists, func, or_, select, update

from nexus.db.session import Query, Session, Statement
from nexus.db.tables import memberships, users
from nexus.errors import InvalidRequest, NotFound
from nexus.libraries import audit
from nexus.libraries.audit import AuditEvent

NAME_LENGTH = 100
EMAIL_LENGTH = 254
FOUND = 50
#: Loose on purpose: who gets mail at an address is for the identity provider to verify.
_EMAIL = re.compile(r"[^\s@<>,;\"]{1,64}@[^\s@<>,;\"]{1,253}")


class Person(NamedTuple):
    user_id: UUID
    name: str | None
    email: str | None


@dataclass(frozen=True)
class Profile:
    """What an identity provider says about somebody."""

    name: str | None = None
    #: Only if the provider has verified it.
    email: str | None = None
    #: One that the provider names without having verified it, so that an earlier word to the contrary ends.
    unverified: str | None = None

    @classmethod
    def of(cls, claims: Mapping[str, Any]) -> Profile:
        """Read the claims of a checked token. Malformed ones are ignored."""
        name, email = claims.get("name") or claims.get("preferred_username"), claims.get("email")
        shown = _clean(name) if isinstance(name, str) else ""
        try:
            address = clean_email(email) if isinstance(email, str) else None
        except InvalidRequest:
            address = None
        verified = claims.get("email_verified") is True
        return cls(shown[:NAME_LENGTH] or None, address if verified else None, None if verified else address)


#: The name that others see.
NAME = func.coalesce(users.c.own_name, users.c.claimed_name)
_mine, _theirs = memberships.alias("mine"), memberships.alias("theirs")
_SHARES = exists(
    select(_theirs.c.user_id)
    .join(_mine, _mine.c.library_id == _theirs.c.library_id)
    .where(_mine.c.user_id == bindparam("viewer"), _theirs.c.user_id == users.c.id)
    .correlate(users)
)
_PERSON = select(users.c.id.label("user_id"), NAME.label("name"), users.c.email)
_ONE = Query(_PERSON.where(users.c.id == bindparam("user_id")), Person)
_KNOWN = Query(
    _PERSON.where(or_(users.c.id == bindparam("viewer"), _SHARES)).order_by(users.c.created_at, users.c.id),
    Person,
)
_TEXT = users.c.email.type
_REMEMBER = Statement(
    update(users)
    .where(users.c.id == bindparam("user_id"))
    .values(
        claimed_name=func.coalesce(bindparam("name", type_=_TEXT), users.c.claimed_name),
        email=func.coalesce(
            bindparam("email", type_=_TEXT),
            func.nullif(users.c.email, bindparam("unverified", type_=_TEXT)),
        ),
    )
)
_NAME = Statement(
    update(users).where(users.c.id == bindparam("user_id")).values(own_name=bindparam("name", type_=_TEXT))
)
_EMAIL_OF = Statement(
    update(users).where(users.c.id == bindparam("user_id")).values(email=bindparam("email", type_=_TEXT))
)


def remember(session: Session, user_id: UUID, profile: Profile) -> None:
    """Keep what the identity provider says about a user. What it does not say stays as it was."""
    session.run(
        _REMEMBER,
        user_id=user_id,
        name=profile.name,
        email=profile.email,
        unverified=profile.unverified,
    )


def get_person(session: Session, user_id: UUID) -> Person:
    """Return a user's own profile. Raises NotFound if they have never signed in."""
    found = session.first(_ONE, user_id=user_id)
    if found is None:
        raise NotFound
    return found


def known_people(session: Session, viewer: UUID) -> dict[UUID, Person]:
    """Return the viewer, and everyone who shares a library with them."""
    return {person.user_id: person for person in session.all(_KNOWN, viewer=viewer)}


def search_people(session: Session, viewer: UUID, wanted: str) -> list[Person]:
    """Find people by a part of their name or email, among those who share a library with the viewer."""
    looked_for = wanted.strip().casefold()
    found = (
        person
        for person in known_people(session, viewer).values()
        if any(looked_for in (word or "").casefold() for word in (person.name, person.email))
    )
    return sorted(found, key=lambda person: ((person.name or person.email or "").casefold(), person.user_id))[
        :FOUND
    ]


def set_name(session: Session, user_id: UUID, name: str) -> None:
    """Change what others call the user; an empty name brings back the provider's. Raises InvalidRequest."""
    shown = _clean(name)
    if len(shown) > NAME_LENGTH:
        raise InvalidRequest(f"A name has at most {NAME_LENGTH} characters.")
    session.run(_NAME, user_id=user_id, name=shown or None)
    audit.record(session, AuditEvent.SETTING_CHANGED, user_id, subject_id=user_id, about="name")


def set_email(session: Session, user_id: UUID, email: str) -> None:
    """Set a user's email for the operator, who vouches for it; an empty one removes it. Raises InvalidRequest."""
    session.run(_EMAIL_OF, user_id=user_id, email=clean_email(email) if email.strip() else None)
    audit.record(session, AuditEvent.SETTING_CHANGED, user_id, subject_id=user_id, about="email")


def clean_email(given: str) -> str:
    """Return an address as it is compared. Raises InvalidRequest if it is not an address.

    Only ASCII letters lose their case: other alphabets have letters that differ for a mail server and turn into the
    same ones here.
    """
    email = "".join(letter.lower() if letter.isascii() else letter for letter in given.strip())
    if len(email) > EMAIL_LENGTH or not _EMAIL.fullmatch(email) or not email.isprintable():
        raise InvalidRequest("This is not an email address. Give one such as ann@example.com.")
    return email


def name_shown(person: Person | None) -> str:
    """What to call somebody: their name, else their email, else a general word."""
    return (person and (person.name or person.email)) or "another reader"


def _clean(name: str) -> str:
    """One line without control characters or marks that change the direction of the text."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in name).split())
