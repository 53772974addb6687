"""What requests and answers about libraries and their members look like."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from nexus.libraries.catalog import MyLibrary
from nexus.libraries.sizes import LibrarySize
from nexus.web.api.schemas import EXAMPLE_ID, Body
from nexus.web.http.envelope import Answer, Moment


class LibraryBody(Body):
    name: str = Field(examples=["Research"])


class LibraryMediaBody(Body):
    media_id: UUID = Field(examples=[EXAMPLE_ID])
    from_library_id: UUID | None = Field(
        None, description="Move it out of this library, instead of adding it to another one as well."
    )


class MemberBody(Body):
    user_id: UUID = Field(examples=[EXAMPLE_ID])
    role: Literal["admin", "member"] = "member"


class LibraryOut(Answer):
    id: UUID
    name: str
    is_default: bool
    role: str
    created_at: Moment
    members: int = Field(description="How many people belong to it.")
    items: int = Field(description="How many items it holds.")

    @classmethod
    def of(cls, row: MyLibrary, size: LibrarySize) -> LibraryOut:
        return cls.model_validate({**row._asdict(), **size._asdict()})


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
