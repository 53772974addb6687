"""What you note about an item for yourself. The API calls an item a media."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Response
from pydantic import AwareDatetime, Field, StrictBool

from nexus.media import bulk, queries, shelving
from nexus.media.shelving import Marks, ReadingPlace, ReadSoFar, Shelved
from nexus.web.api.bulk import BulkOut, MediaIds
from nexus.web.api.schemas import Body, CapabilitiesOut
from nexus.web.http.context import Nexus, Viewer
from nexus.web.http.envelope import Answer, Data, Moment, answer, answers
from nexus.web.http.routing import Router

router = Router(prefix="/media", tags=["shelf"])

_Count = Annotated[int, Field(ge=0, lt=2**31, strict=True)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]


class MarksBody(Body):
    """What to change; what is left out stays as it is."""

    read: StrictBool | None = Field(
        None, examples=[True], description="With false, its progress begins at 0 again."
    )
    archived: StrictBool | None = Field(None, description="Archived items are left out of lists.")
    favourite: StrictBool | None = None
    title: str | None = Field(
        None, examples=["What I call it"], description="Your own title; empty for the original one."
    )

    def marks(self) -> Marks:
        return Marks(self.read, self.archived, self.favourite, self.title)


class BulkMarksBody(Body):
    media_ids: MediaIds
    read: StrictBool | None = Field(None, examples=[True])
    archived: StrictBool | None = None
    favourite: StrictBool | None = None


class PlaceBody(Body):
    """A place in the text, as a reader finds it again."""

    fragment: _Count = Field(examples=[3], description="The position of a fragment.")
    block: _Count = Field(0, description="Which of the elements at the top of its html.")
    far: _Share = Field(0, description="How far down in that element, from 0 to 1.")


class ProgressBody(Body):
    revision: Annotated[int, Field(ge=1, lt=2**31, strict=True)] = Field(
        examples=[1], description="The version that is read."
    )
    fraction: _Share = Field(examples=[0.4], description="How much of the text lies behind you, from 0 to 1.")
    place: PlaceBody | None = None
    at: AwareDatetime | None = Field(
        None,
        examples=["2026-01-31T12:00:00+00:00"],
        description="When you were there, if that is not now. Of several devices the latest wins.",
    )

    def progress(self, now: datetime) -> ReadSoFar:
        place = None if self.place is None else ReadingPlace(**self.place.model_dump())
        return ReadSoFar(self.revision, self.fraction, place, now if self.at is None else self.at)


class PlaceOut(Answer):
    revision: int = Field(description="The version that this is a place in.")
    fragment: int
    block: int
    far: float


class ShelfOut(Answer):
    """What you noted. Nobody else sees it."""

    media_id: UUID
    is_read: bool
    is_archived: bool
    is_favourite: bool
    read_at: Moment | None
    archived_at: Moment | None
    favourite_at: Moment | None
    title: str | None = Field(description="Your own title, if you gave it one.")
    progress: float = Field(examples=[0.4], description="How much of the text lies behind you, from 0 to 1.")
    place: PlaceOut | None
    progress_at: Moment | None = Field(description="When you were there.")

    @classmethod
    def of(cls, media_id: UUID, found: Shelved) -> ShelfOut:
        noted = found._asdict()
        flags = {f"is_{name}": noted[f"{name}_at"] is not None for name in ("read", "archived", "favourite")}
        place = None if found.revision is None else noted
        about = {"media_id": media_id, "progress": found.fraction, "place": place}
        return cls.model_validate({**noted, **flags, **about})


class ReadShelfOut(ShelfOut):
    capabilities: CapabilitiesOut


@router.get(
    "/{media_id}/shelf", responses=answers(Data[ReadShelfOut], 404), summary="What you noted about it"
)
def get_shelf(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """Whether you have read, archived or marked it, your own title for it, and where you are in it."""
    with nexus.sessions.read() as session:
        can = queries.get_media(session, media_id, viewer).capabilities
        found = shelving.read_shelf(session, media_id, viewer)
    noted = ShelfOut.of(media_id, found).model_dump()
    return answer(ReadShelfOut.model_validate({**noted, "capabilities": can}))


@router.patch(
    "/{media_id}/shelf", responses=answers(Data[ShelfOut], 404, 413), summary="Note something about it"
)
def mark_item(nexus: Nexus, viewer: Viewer, media_id: UUID, body: MarksBody) -> Response:
    """Read, archived, favourite, and a title of your own. Nobody else sees any of it."""
    with nexus.sessions.begin() as session:
        found = shelving.mark_item(session, media_id, viewer, body.marks())
    return answer(ShelfOut.of(media_id, found))


@router.put(
    "/{media_id}/progress", responses=answers(Data[ShelfOut], 404, 413), summary="Say how far you have read"
)
def report_progress(nexus: Nexus, viewer: Viewer, media_id: UUID, body: ProgressBody) -> Response:
    """The answer is what counts now: that of another device, if you were there later.

    Reaching the end marks the item as read. A place means something in its own version only; the fraction stays when
    you read another.
    """
    with nexus.sessions.begin() as session:
        found = shelving.report_progress(session, media_id, viewer, body.progress(session.now))
    return answer(ShelfOut.of(media_id, found))


@router.post("/mark", responses=answers(Data[BulkOut], 413), summary="Mark several items")
def mark_items(nexus: Nexus, viewer: Viewer, body: BulkMarksBody) -> Response:
    """The same for many items at once: read, archived or favourite."""
    marks = Marks(body.read, body.archived, body.favourite)
    done = bulk.mark_each(nexus.sessions, viewer, body.media_ids, marks)
    return answer(BulkOut.model_validate(done))
