"""The pages on which somebody looks at the versions of an item, compares two, and chooses one."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Form, Query, Request
from fastapi.responses import Response

from nexus.errors import InvalidRequest
from nexus.media import differences, queries, reader, versions
from nexus.web.api.changes import MOST_TEXT
from nexus.web.http.context import Nexus, Number, PageViewer
from nexus.web.http.threads import waits_for_store
from nexus.web.views.items import show_item
from nexus.web.views.render import by_htmx, fragment, go, page, page_router
from nexus.web.views.versions import show_choice

router = page_router(prefix="/items/{media_id}/versions")
text = page_router(most_body=MOST_TEXT, prefix="/items/{media_id}/text")

Side = Annotated[int, Query(ge=1, lt=2**31)]


@router.get("")
def versions_page(request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        held = queries.get_media(session, media_id, viewer)
        found = versions.list_versions(session, held, viewer)
    return page(
        request,
        "versions.html",
        item=show_item(held, nexus.tools.extractors, viewer),
        choice=show_choice(held, found),
    )


@router.get("/compare")
@waits_for_store
def show_comparison(
    request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID, before: Side, after: Side
) -> Response:
    with nexus.sessions.read() as session:
        held = queries.get_media(session, media_id, viewer)
        sides = [versions.find_version(session, media_id, viewer, number) for number in (before, after)]
        texts = [reader.whole_text(session, media_id, viewer, number) for number in (before, after)]
    return page(
        request,
        "versions_compared.html",
        item=show_item(held, nexus.tools.extractors, viewer),
        sides=show_choice(held, sides).versions,
        difference=differences.compare(*texts),
    )


@text.post("")
def enter_text_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    title: Annotated[str, Form()] = "",
    text: Annotated[str, Form()] = "",
) -> Response:
    """Make a pasted text the viewer's own version. If that can't be done, it comes back with the reason."""
    try:
        versions.enter_own_text(nexus.sessions, media_id, viewer, title, text)
    except InvalidRequest as error:
        form = {"title": title, "text": text, "error": error.message}
        if by_htmx(request):
            return fragment(request, "enter_text.html", error.status, media_id=media_id, form=form)
        return page(request, "enter_text_page.html", error.status, media_id=media_id, form=form)
    if by_htmx(request):
        return Response(status_code=204, headers={"HX-Redirect": f"/items/{media_id}"})
    return go(f"/items/{media_id}")


@router.post("/{number}/use")
def use(nexus: Nexus, viewer: PageViewer, media_id: UUID, number: Number) -> Response:
    versions.use_version(nexus.sessions, media_id, viewer, number)
    return go(f"/items/{media_id}")
