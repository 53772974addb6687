"""Listening: the sound of a recording, how far you have heard it, and what you want to hear next."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Request, Response
from pydantic import AwareDatetime, Field, StrictBool

from nexus.media import queries
from nexus.media.recordings import heard, listening
from nexus.media.recordings.heard import HeardSoFar
from nexus.web.api.schemas import Body, CapabilitiesOut, Done, MediaOut
from nexus.web.http.context import Nexus, Viewer
from nexus.web.http.envelope import Answer, Data, Moment, answer, answers
from nexus.web.http.routing import Router
from nexus.web.http.sound import sound_response
from nexus.web.http.threads import waits_for_site

router = Router(tags=["listening"])

#: A thousand hours.
LONGEST_SECONDS = 3_600_000
_Seconds = Annotated[float, Field(ge=0, le=LONGEST_SECONDS, allow_inf_nan=False, strict=True)]


class HeardBody(Body):
    seconds: _Seconds = Field(examples=[754.2], description="Where you are, from the beginning.")
    at: AwareDatetime | None = Field(
        None,
        examples=["2026-01-31T12:00:00+00:00"],
        description="When you were there, if that is not now. Of several devices the latest wins.",
    )


class HeardOut(Answer):
    """How far you have listened. Nobody else sees it."""

    media_id: UUID
    seconds: float = Field(examples=[754.2], description="Where you are; 0 if you have not begun.")
    at: Moment | None = Field(description="When you were there.")
    capabilities: CapabilitiesOut

    @classmethod
    def of(cls, media_id: UUID, found: HeardSoFar | None, can: object) -> HeardOut:
        seconds, at = (0.0, None) if found is None else found
        return cls.model_validate({"media_id": media_id, "seconds": seconds, "at": at, "capabilities": can})


class QueuedBody(Body):
    media_id: UUID
    next: StrictBool = Field(False, description="Whether to play it before all others.")


class MovedBody(Body):
    position: Annotated[int, Field(ge=0, le=listening.MOST_QUEUED, strict=True)] = Field(
        examples=[0], description="Its new place in the queue, from 0."
    )


class QueueOut(Answer):
    items: list[MediaOut]


@router.get(
    "/media/{media_id}/sound",
    responses={200: {"content": {"audio/*": {}, "video/*": {}}}, **answers(None, 404, 502)},
    summary="Play it",
)
@waits_for_site
def get_sound(request: Request, nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """The recording of an episode or a video, from where it is published. Takes a `Range` of bytes.

    Videos of sites that give no file can be played on those sites alone, and are answered with 404.
    """
    return sound_response(request, nexus, viewer, media_id)


@router.get("/media/{media_id}/heard", responses=answers(Data[HeardOut], 404), summary="How far you listened")
def get_heard(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """Where you are in a recording, on whatever device."""
    with nexus.sessions.read() as session:
        can = queries.get_media(session, media_id, viewer).capabilities
        found = heard.heard_so_far(session, media_id, viewer)
    return answer(HeardOut.of(media_id, found, can))


@router.put(
    "/media/{media_id}/heard", responses=answers(Data[HeardOut], 404, 413), summary="Say how far you listened"
)
def put_heard(nexus: Nexus, viewer: Viewer, media_id: UUID, body: HeardBody) -> Response:
    """The answer is what counts now: that of another device, if you were there later."""
    with nexus.sessions.begin() as session:
        found = heard.report_heard(session, media_id, viewer, body.seconds, body.at)
        can = queries.get_media(session, media_id, viewer).capabilities
    return answer(HeardOut.of(media_id, found, can))


@router.get("/listening", responses=answers(Data[QueueOut]), summary="What you want to hear")
def get_queue(nexus: Nexus, viewer: Viewer) -> Response:
    """Your queue, the next item first."""
    with nexus.sessions.read() as session:
        found = listening.list_queue(session, viewer)
    return answer(QueueOut(items=[MediaOut.of(view, viewer) for view in found]))


@router.post("/listening", responses=answers(Data[Done], 404, 409, 413), summary="Add to your queue")
def add_to_queue(nexus: Nexus, viewer: Viewer, body: QueuedBody) -> Response:
    """Puts a video or an episode at the end, or before all others. One that is there already is not doubled."""
    with nexus.sessions.begin() as session:
        listening.queue_item(session, body.media_id, viewer, is_next=body.next)
    return answer(Done(done=True))


@router.put("/listening/{media_id}", responses=answers(Data[Done], 404, 413), summary="Move in your queue")
def move_in_queue(nexus: Nexus, viewer: Viewer, media_id: UUID, body: MovedBody) -> Response:
    with nexus.sessions.begin() as session:
        listening.move_queued(session, media_id, viewer, body.position)
    return answer(Done(done=True))


@router.delete("/listening/{media_id}", responses=answers(Data[Done], 404), summary="Remove from your queue")
def remove_from_queue(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """Doing it again changes nothing."""
    with nexus.sessions.begin() as session:
        listening.unqueue_item(session, media_id, viewer)
    return answer(Done(done=True))
