"""Media: take in, read, retry, delete."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from nexus.errors import InvalidRequest
from nexus.libraries import catalog
from nexus.media import queries, reader, refresh, submit
from nexus.media.files import discard_all
from nexus.states.media import Status
from nexus.web.api import uploads
from nexus.web.api.schemas import (
    BegunOut,
    Data,
    DocumentOut,
    Done,
    EventPage,
    FragmentPage,
    MediaOut,
    MediaPage,
    RetriedOut,
    SubmittedOut,
    UploadBody,
    UrlBody,
    document_json,
    event_json,
    fragment_json,
    media_json,
    page_json,
    part_json,
)
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer, answers
from nexus.web.http.envelope import answer, picture, request_id
from nexus.web.http.routing import Route

router = APIRouter(route_class=Route, prefix="/media", tags=["media"], default_response_class=Response)


@router.post(
    "", responses=answers(Data[SubmittedOut | BegunOut], 413, 429, 502), summary="Take in a URL or a file"
)
def add_media(nexus: Nexus, viewer: Viewer, body: UrlBody | UploadBody, request: Request) -> Response:
    """With a `url` as POST /media/url, with the fields of a file as POST /media/upload/init."""
    if isinstance(body, UrlBody):
        return add_url(nexus, viewer, body, request)
    return uploads.begin_upload(nexus, viewer, body, request)


@router.post("/url", responses=answers(Data[SubmittedOut], 413, 429), summary="Take in a URL")
def add_url(nexus: Nexus, viewer: Viewer, body: UrlBody, request: Request) -> Response:
    """A page or a video, by its address. The same address again answers with the same media."""
    done = submit.url(
        nexus.sessions, nexus.queue, nexus.limits, viewer, body.kind, body.url, request_id(request)
    )
    return answer({"media_id": str(done.media_id), "created": done.created, "enqueued": done.enqueued})


@router.get("", responses=answers(Data[MediaPage], 404), summary="List media")
def list_media(
    nexus: Nexus,
    viewer: Viewer,
    library_id: UUID | None = None,
    status: Annotated[str | None, Query(examples=["failed"])] = None,
    cursor: Cursor = None,
    limit: Limit = queries.PAGE,
) -> Response:
    """What your libraries hold, the latest added first."""
    chosen = _status(status)
    with nexus.sessions.read() as session:
        page = queries.newest(
            session, viewer, library_id=library_id, status=chosen, cursor=cursor, most=limit
        )
    return answer(page_json(page, [media_json(view, viewer) for view in page.items]))


@router.get("/{media_id}", responses=answers(Data[MediaOut], 404), summary="One media")
def get_media(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """Its state, and what you can do with it: rely on `capabilities`, not on the status."""
    with nexus.sessions.read() as session:
        view = queries.get(session, media_id, viewer)
    return answer(media_json(view, viewer))


@router.get("/{media_id}/fragments", responses=answers(Data[FragmentPage], 404), summary="Its text")
def get_fragments(
    nexus: Nexus, viewer: Viewer, media_id: UUID, cursor: Cursor = None, limit: Limit = queries.PAGE
) -> Response:
    """In reading order."""
    with nexus.sessions.read() as session:
        page = queries.text(session, media_id, viewer, cursor, limit)
    return answer(part_json(page, [fragment_json(row) for row in page.items]))


@router.get("/{media_id}/document", responses=answers(Data[DocumentOut], 404), summary="About its text")
def get_document(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """What the text says of itself, its table of contents, and where it was read."""
    with nexus.sessions.read() as session:
        found = reader.document(session, media_id, viewer)
    return answer(document_json(found))


@router.get(
    "/{media_id}/assets/{name}",
    responses={200: {"content": {"image/*": {}}}, **answers(None, 404)},
    summary="A picture in its text",
)
def get_asset(nexus: Nexus, viewer: Viewer, media_id: UUID, name: str) -> Response:
    """The html of a fragment names it as `asset:{name}`."""
    with nexus.sessions.read() as session:
        found = reader.asset(session, media_id, viewer, name)
    return picture(found)


@router.post(
    "/{media_id}/refresh", responses=answers(Data[RetriedOut], 403, 404, 409), summary="Read it anew"
)
def refresh_media(nexus: Nexus, viewer: Viewer, media_id: UUID, request: Request) -> Response:
    """The text that is there stays until the new one takes its place, and for good where there is none."""
    enqueued = refresh.request(nexus.sessions, nexus.queue, media_id, viewer, request_id(request))
    return answer({"media_id": str(media_id), "enqueued": enqueued})


@router.get("/{media_id}/history", responses=answers(Data[EventPage], 404), summary="What happened to it")
def get_history(
    nexus: Nexus, viewer: Viewer, media_id: UUID, cursor: Cursor = None, limit: Limit = queries.PAGE
) -> Response:
    """Every transition, the first one first."""
    with nexus.sessions.read() as session:
        page = queries.events(session, media_id, viewer, cursor, limit)
    return answer(part_json(page, [event_json(row, viewer) for row in page.items]))


@router.post(
    "/{media_id}/retry", responses=answers(Data[RetriedOut], 403, 404, 409, 413, 502), summary="Try again"
)
def retry_media(
    nexus: Nexus, viewer: Viewer, media_id: UUID, request: Request, body: UploadBody | None = None
) -> Response:
    """Only what has failed can be retried, by its creator or an admin of a library that holds it.

    Where the upload failed, the answer has a new place to upload to; the body may say that another file comes.
    """
    begun = uploads.begin_again(nexus, viewer, media_id, body)
    if begun is not None:
        return answer(
            {
                "media_id": str(media_id),
                "enqueued": False,
                "upload": uploads.begun_json(nexus, request, begun),
            }
        )
    enqueued = submit.retry(nexus.sessions, nexus.queue, media_id, viewer, request_id(request))
    return answer({"media_id": str(media_id), "enqueued": enqueued})


@router.delete("/{media_id}", responses=answers(Data[Done], 403, 404), summary="Remove it")
def delete_media(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """Out of every library that you administer; it is gone when no library holds it any more."""
    with nexus.sessions.begin() as session:
        gone = catalog.delete_media(session, media_id, viewer)
    discard_all(nexus.files, gone)
    return answer({"done": True})


def _status(given: str | None) -> Status | None:
    if given is None:
        return None
    if given not in set(Status):
        raise InvalidRequest(f"There is no status of that name. Choose one of {', '.join(Status)}.")
    return Status(given)
