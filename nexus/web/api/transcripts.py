"""Transcripts that people bring, as they are: no form and no JSON around them."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Header, Query, Request, Response

from nexus.extract import Hints
from nexus.media.recordings.own_transcripts import MOST_TRANSCRIPT, bring_transcript
from nexus.web.api.changes import EnteredOut
from nexus.web.http.context import Nexus, Viewer
from nexus.web.http.envelope import Data, answer, answers
from nexus.web.http.routing import Router
from nexus.web.http.threads import waits_for_store

router = Router(most_body=MOST_TRANSCRIPT, prefix="/media", tags=["media"])

_EXAMPLE = "WEBVTT\n\n00:00:01.000 --> 00:00:04.000\n<v Ann>Good morning."
_TYPES = ("text/vtt", "application/x-subrip", "application/json", "text/plain")
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            name: {"schema": {"type": "string", "minLength": 1, "examples": [_EXAMPLE]}} for name in _TYPES
        },
    }
}


async def _whole_body(request: Request) -> bytes:
    """The body as it was sent; its route limits how long it is."""
    return await request.body()


@router.put(
    "/{media_id}/transcript",
    responses=answers(Data[EnteredOut], 403, 404, 413),
    openapi_extra=_BODY,
    summary="Add its transcript",
)
@waits_for_store
def put_transcript(
    nexus: Nexus,
    viewer: Viewer,
    media_id: UUID,
    body: Annotated[bytes, Depends(_whole_body)],
    filename: Annotated[
        str, Query(max_length=500, description="Its name: the ending tells the format if the type does not.")
    ] = "",
    content_type: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """The transcript of a video or an episode becomes a version of your own, with its times: nobody else can ever
    read it. WebVTT, SRT, JSON or plain text, of at most 10 MiB.
    """
    declared, _, charset = content_type.partition(";")
    hints = Hints(
        content_type=declared.strip().lower() or None,
        charset=charset.rpartition("charset=")[2].strip(" \"'") or None,
        filename=filename or None,
    )
    number = bring_transcript(nexus.tools, media_id, viewer, body, hints)
    return answer(EnteredOut(media_id=media_id, revision=number))
