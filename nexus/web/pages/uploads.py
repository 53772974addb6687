"""What static/uploads.js calls: uploads as in the API, but with the session cookie. Errors are JSON, shown in place."""

from __future__ import annotations

from uuid import UUID

from fastapi import Request, Response

from nexus.media import submit, uploads
from nexus.media.uploads import Begun
from nexus.web.api import uploads as api
from nexus.web.api.schemas import BegunOut, ConfirmedOut, UploadBody
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.envelope import answer, request_id
from nexus.web.http.routing import Router
from nexus.web.http.threads import waits_for_store

router = Router(prefix="/items", include_in_schema=False)


@router.post("/upload")
@waits_for_store
def begin_upload_on_page(nexus: Nexus, viewer: PageViewer, body: UploadBody) -> Response:
    return _place(uploads.begin_upload(nexus.sessions, nexus.files, viewer, body.expected()))


@router.post("/{media_id}/ingest")
@waits_for_store
def confirm_upload_on_page(
    nexus: Nexus, viewer: PageViewer, media_id: UUID, request: Request, library: UUID | None = None
) -> Response:
    """The item goes into the library that is open, too."""
    if library is None:
        return api.confirm_upload(nexus, viewer, media_id, request)
    done = submit.confirm_into_library(
        nexus.sessions, nexus.files, nexus.queue, viewer, media_id, library, request_id(request)
    )
    return answer(ConfirmedOut.model_validate(done))


@router.post("/{media_id}/retry-upload")
@waits_for_store
def upload_again(nexus: Nexus, viewer: PageViewer, media_id: UUID, body: UploadBody) -> Response:
    return _place(uploads.begin_again(nexus.sessions, nexus.files, viewer, media_id, body.expected()))


def _place(begun: Begun) -> Response:
    """Leave the host out of links that Nexus serves: the browser uses that of the page."""
    return answer(BegunOut.of(begun, begun.target.url))
