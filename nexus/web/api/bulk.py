"""Many items at once. The API calls an item a media."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Request, Response
from pydantic import Field

from nexus.errors import InvalidRequest
from nexus.media import bulk
from nexus.media.failures import failed_items
from nexus.web.api.schemas import Body
from nexus.web.http.context import Nexus, Viewer
from nexus.web.http.envelope import Answer, Data, answer, answers, request_id
from nexus.web.http.routing import Router

router = Router(prefix="/media", tags=["media"])

MediaIds = Annotated[list[UUID], Field(min_length=1, max_length=bulk.MOST)]


class BulkRetryBody(Body):
    """Which items to retry: those named, or all that failed with an error."""

    media_ids: MediaIds | None = None
    error_code: str | None = Field(None, examples=["E_FETCH_TIMEOUT"])


class RemoveBody(Body):
    media_ids: MediaIds


class RefusalOut(Answer):
    media_id: UUID
    code: str = Field(examples=["E_NOT_FOUND"])
    message: str


class BulkOut(Answer):
    done: list[UUID]
    refused: list[RefusalOut] = Field(description="The items that stay as they are, and why.")


@router.post("/retry", responses=answers(Data[BulkOut], 413), summary="Retry several items")
def retry_items(nexus: Nexus, viewer: Viewer, body: BulkRetryBody, request: Request) -> Response:
    """Retries the items that you name, or everything of yours that failed with an error. Give one of the two."""
    if (body.media_ids is None) == (body.error_code is None):
        raise InvalidRequest(
            "Name the items by their ids, or give an error_code for all that failed with it."
        )
    chosen = body.media_ids
    if chosen is None:
        with nexus.sessions.read() as session:
            chosen = failed_items(session, viewer, body.error_code)
    done = bulk.retry_each(nexus.sessions, nexus.queue, viewer, chosen, request_id(request))
    return answer(BulkOut.model_validate(done))


@router.post("/remove", responses=answers(Data[BulkOut], 413), summary="Remove several items")
def remove_items(nexus: Nexus, viewer: Viewer, body: RemoveBody) -> Response:
    """Removes each from every library that you administer, as DELETE /media/{media_id} does."""
    done = bulk.delete_each(nexus.sessions, nexus.files, viewer, body.media_ids)
    return answer(BulkOut.model_validate(done))
