"""Files of items: where to upload one, its confirmation, and a link to download it."""

from __future__ import annotations

from urllib.parse import urljoin
from uuid import UUID

from fastapi import Request, Response

from nexus.app import App
from nexus.errors import InvalidKind
from nexus.media import file_links, uploads
from nexus.media.uploads import Begun
from nexus.states.media import Kind
from nexus.web.api.schemas import BegunOut, ConfirmedOut, LinkOut, UploadBody
from nexus.web.http.context import Nexus, Revision, Viewer
from nexus.web.http.envelope import Data, answer, answers, request_id
from nexus.web.http.routing import Router
from nexus.web.http.scopes import adds
from nexus.web.http.threads import waits_for_store

router = Router(prefix="/media", tags=["files"])


@router.post(
    "/upload/init",
    responses=answers(Data[BegunOut], 413, 502, 507),
    summary="Begin the upload of a PDF or an EPUB",
)
@adds
@waits_for_store
def begin_upload(nexus: Nexus, viewer: Viewer, body: UploadBody, request: Request) -> Response:
    """PUT the file to `upload_url` with `upload_headers`, then confirm it with POST /media/{media_id}/ingest."""
    if body.kind == Kind.TEXT.value:
        raise InvalidKind("Only a pdf or an epub can be uploaded with this call. Import text files instead.")
    begun = uploads.begin_upload(nexus.sessions, nexus.files, viewer, body.expected())
    return answer(upload_place(nexus, request, begun))


@router.post(
    "/{media_id}/ingest",
    responses=answers(Data[ConfirmedOut], 403, 404, 409, 413, 503, 504),
    summary="Confirm an upload",
)
@adds
@waits_for_store
def confirm_upload(nexus: Nexus, viewer: Viewer, media_id: UUID, request: Request) -> Response:
    """Checks and hashes the stored file. For a file that you have already, the answer names the item you have."""
    done = uploads.confirm_upload(
        nexus.sessions, nexus.files, nexus.queue, viewer, media_id, request_id(request)
    )
    return answer(ConfirmedOut.model_validate(done))


@router.get(
    "/{media_id}/file", responses=answers(Data[LinkOut], 404, 503), summary="Get a link to the original file"
)
@waits_for_store
def get_file(
    nexus: Nexus, viewer: Viewer, media_id: UUID, request: Request, revision: Revision = None
) -> Response:
    """The link works for five minutes."""
    link, capabilities = file_links.link_for(nexus.sessions, nexus.files, viewer, media_id, revision)
    url = _absolute(nexus, request, link.url)
    return answer(
        LinkOut.model_validate({"url": url, "expires_at": link.expires_at, "capabilities": capabilities})
    )


def upload_place(nexus: App, request: Request, begun: Begun) -> BegunOut:
    """Where a client uploads to: a link that Nexus serves has the host by which this client reaches it."""
    return BegunOut.of(begun, _absolute(nexus, request, begun.target.url))


def _absolute(nexus: App, request: Request, url: str) -> str:
    return urljoin(nexus.settings.public_url or str(request.base_url), url)
