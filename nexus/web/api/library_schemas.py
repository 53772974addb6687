"""What requests and answers about libraries and their members look like."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from nexus.web.api.schemas import EXAMPLE_ID, Body
from nexus.web.http.envelope import Answer, Moment


class LibraryBody(Body):
    name: str = Field(examples=["Research"])


class LibraryMediaBody(Body):
    media_id: UUID = Field(examples=[EXAMPLE_ID])


class MemberBody(Body):
    user_id: UUID = Field(examples=[EXAMPLE_ID])
    role: Literal["admin", "member"] = "member"


class LibraryOut(Answer):
    id: UUID
    name: str
    is_default: bool
    role: str
    created_at: Moment


class LibraryList(Answer):
    items: list[LibraryOut]


class MemberOut(Answer):
    user_id: UUID
    name: str | None = Field(examples=["Ann Lee"])
    email: str | None = Field(examples=["ann@example.com"])
    role: str = Field(description="`admin` can change the library, `member` can read what it holds.")
    created_at: Moment


class MemberList(Answer):
    items: list[MemberOut]
