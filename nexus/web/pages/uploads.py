"""What static/uploads.js asks for: calls of the API, with the session cookie. Errors are JSON, to be shown in place."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Request, Response

from nexus.app import App
from nexus.errors import InvalidState
from nexus.media.uploads import Begun
from nexus.web.api import uploads
from nexus.web.api.schemas import UploadBody
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.envelope import answer

router = APIRouter(
    prefix="/items", tags=["page uploads"], default_response_class=Response, include_in_schema=False
)


@router.post("/upload")
def begin_upload(nexus: Nexus, viewer: PageViewer, body: UploadBody, request: Request) -> Response:
    return _place(nexus, request, uploads.begin(nexus, viewer, body))


@router.post("/{media_id}/ingest")
def confirm_upload(nexus: Nexus, viewer: PageViewer, media_id: UUID, request: Request) -> Response:
    return uploads.confirm_upload(nexus, viewer, media_id, request)


@router.post("/{media_id}/retry-upload")
def upload_again(
    nexus: Nexus, viewer: PageViewer, media_id: UUID, body: UploadBody, request: Request
) -> Response:
    begun = uploads.begin_again(nexus, viewer, media_id, body)
    if begun is None:
        raise InvalidState("It is not the upload of this that failed. Reload the page to see how it is.")
    return _place(nexus, request, begun)


def _place(nexus: App, request: Request, begun: Begun) -> Response:
    """A link that Nexus serves stays without a host: the page reaches it where the page itself came from."""
    return answer({**uploads.begun_json(nexus, request, begun), "upload_url": begun.target.url})
