"""The form on which somebody drops or pastes the transcript of a video or an episode."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import File, Form, Request, UploadFile
from fastapi.responses import Response

from nexus.errors import InvalidRequest
from nexus.extract import Hints
from nexus.media.recordings.own_transcripts import MOST_TRANSCRIPT, bring_transcript
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.threads import waits_for_store
from nexus.web.views.render import by_htmx, fragment, go, page, page_router

#: The file, and what a form writes around it.
router = page_router(most_body=MOST_TRANSCRIPT + 64 * 1024, prefix="/items/{media_id}/transcript")


@router.post("")
@waits_for_store
def bring_transcript_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    file: Annotated[UploadFile | None, File()] = None,
    text: Annotated[str, Form()] = "",
) -> Response:
    """Take the file, or else the pasted text. If it can't be read, the form comes back with the reason."""
    try:
        if file is not None and file.filename:
            data, hints = file.file.read(MOST_TRANSCRIPT + 1), Hints(filename=file.filename)
        else:
            data, hints = text.encode(errors="replace"), Hints()
        bring_transcript(nexus.tools, media_id, viewer, data, hints)
    except InvalidRequest as error:
        form = {"text": text, "error": error.message}
        if by_htmx(request):
            return fragment(request, "bring_transcript.html", error.status, media_id=media_id, form=form)
        return page(request, "bring_transcript_page.html", error.status, media_id=media_id, form=form)
    if by_htmx(request):
        return Response(status_code=204, headers={"HX-Redirect": f"/items/{media_id}"})
    return go(f"/items/{media_id}")
