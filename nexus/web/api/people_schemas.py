"""What requests and answers about people, invitations and the audit log look like."""

from __future__ import annotations

from typing import Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from nexus.libraries.invitations import Invitee
from nexus.libraries.people import NAME_LENGTH
from nexus.web.api.schemas import Body, Done
from nexus.web.http.envelope import Answer, Moment

_EXAMPLE_ID = "6f1c9a52-7d0e-4d8e-9d7c-0a7e3a1b2c3d"
_EMAIL = "ann@example.com"


class InvitationBody(Body):
    """Whom to invite: an `email` or a `user_id`."""

    email: str | None = Field(None, examples=[_EMAIL])
    user_id: UUID | None = Field(None, examples=[_EXAMPLE_ID])
    role: Literal["admin", "member"] = "member"

    @model_validator(mode="after")
    def _has_one_invitee(self) -> Self:
        if (self.email is None) == (self.user_id is None):
            raise ValueError("give an email or a user_id")
        return self

    def invitee(self) -> Invitee:
        return Invitee(self.email, self.user_id)


class NameBody(Body):
    name: str = Field(examples=["Ann Lee"], max_length=4 * NAME_LENGTH)


class InvitationOut(Answer):
    id: UUID
    library_id: UUID
    email: str | None = Field(examples=[_EMAIL])
    user_id: UUID | None
    role: str
    invited_by: UUID
    created_at: Moment
    expires_at: Moment


class InvitationList(Answer):
    items: list[InvitationOut]


class MemberSetOut(Done):
    invitation: InvitationOut | None = Field(None, description="If they are not in the library yet.")


class OfferOut(Answer):
    id: UUID
    library_id: UUID
    library_name: str
    role: str
    inviter_name: str | None
    inviter_email: str | None
    created_at: Moment
    expires_at: Moment


class OfferList(Answer):
    items: list[OfferOut]


class AcceptedOut(Answer):
    library_id: UUID


class PersonOut(Answer):
    user_id: UUID
    name: str | None
    email: str | None = Field(description="Verified by the identity provider, or set by the operator.")


class PersonList(Answer):
    items: list[PersonOut]


class AuditOut(Answer):
    id: int
    at: Moment
    event: str = Field(examples=["invited"])
    user_id: UUID | None = Field(description="Null if nobody was signed in.")
    user_name: str | None = Field(description="If you share a library with them.")
    address: str | None = Field(examples=["192.0.2.7"], description="Null for the command line.")
    library_id: UUID | None
    subject_id: UUID | None = Field(description="The item, person, invitation or token that it is about.")
    about: str | None


class AuditPage(Answer):
    items: list[AuditOut]
    next_cursor: str | None
