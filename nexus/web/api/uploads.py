"""Files: a place to upload to, the confirmation, and a link to download from."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin
from uuid import UUID

from fastapi import APIRouter, Request, Response

from nexus.app import App
from nexus.errors import NotFound
from nexus.media import files as store
from nexus.media import queries, uploads
from nexus.media.uploads import Begun, Expected
from nexus.states.capabilities import Capabilities
from nexus.storage import Link
from nexus.web.api.schemas import BegunOut, ConfirmedOut, Data, LinkOut, UploadBody, iso
from nexus.web.http.context import Nexus, Viewer, answers
from nexus.web.http.envelope import answer, request_id
from nexus.web.http.routing import Route

router = APIRouter(route_class=Route, prefix="/media", tags=["files"], default_response_class=Response)


@router.post(
    "/upload/init",
    responses=answers(Data[BegunOut], 413, 502),
    summary="Begin the upload of a PDF or an EPUB",
)
def begin_upload(nexus: Nexus, viewer: Viewer, body: UploadBody, request: Request) -> Response:
    """PUT the file to `upload_url` with `upload_headers`, then confirm it with POST /media/{media_id}/ingest."""
    return answer(begun_json(nexus, request, begin(nexus, viewer, body)))


@router.post(
    "/{media_id}/ingest",
    responses=answers(Data[ConfirmedOut], 403, 404, 409, 413, 503, 504),
    summary="Confirm an upload",
)
def confirm_upload(nexus: Nexus, viewer: Viewer, media_id: UUID, request: Request) -> Response:
    """The stored bytes are checked and hashed. A file that you have already answers with the one you have."""
    done = uploads.confirm(nexus.sessions, nexus.files, nexus.queue, viewer, media_id, request_id(request))
    return answer({"media_id": str(done.media_id), "duplicate": done.duplicate, "enqueued": done.enqueued})


@router.get(
    "/{media_id}/file", responses=answers(Data[LinkOut], 404, 503), summary="A link to the original file"
)
def get_file(nexus: Nexus, viewer: Viewer, media_id: UUID, request: Request) -> Response:
    """The link lives five minutes."""
    link, can = link_to(nexus, viewer, media_id)
    return answer(
        {
            "url": absolute(nexus, request, link.url),
            "expires_at": iso(link.expires_at),
            "capabilities": vars(can),
        }
    )


def begin(nexus: App, viewer: UUID, body: UploadBody) -> Begun:
    return uploads.begin(nexus.sessions, nexus.files, viewer, expected(body))


def link_to(nexus: App, viewer: UUID, media_id: UUID) -> tuple[Link, Capabilities]:
    """A fresh one, and what else can be done with the media. Raises NotFound if there is no file for this viewer."""
    with nexus.sessions.read() as session:
        view = queries.get(session, media_id, viewer)
        if not view.capabilities.can_download_file:
            raise NotFound("This has no file to download.")
        return store.link(session, nexus.files, media_id), view.capabilities


def begin_again(nexus: App, viewer: UUID, media_id: UUID, body: UploadBody | None) -> Begun | None:
    """A new place to upload to; None where it is not the upload that failed."""
    with nexus.sessions.read() as session:
        if not uploads.failed_upload(session, viewer, media_id):
            return None
    to_come = None if body is None else expected(body)
    return uploads.begin_again(nexus.sessions, nexus.files, viewer, media_id, to_come)


def expected(body: UploadBody) -> Expected:
    return Expected(body.kind, body.filename, body.content_type, body.size_bytes)


def begun_json(app: App, request: Request, begun: Begun) -> dict[str, Any]:
    return {
        "media_id": str(begun.media_id),
        "storage_path": begun.storage_path,
        "upload_url": absolute(app, request, begun.target.url),
        "upload_headers": dict(begun.target.headers),
        "expires_at": iso(begun.target.expires_at),
    }


def absolute(app: App, request: Request, url: str) -> str:
    """A link that Nexus serves itself, at the address that this client reaches it by."""
    return urljoin(app.settings.public_url or str(request.base_url), url)
