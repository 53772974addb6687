"""What somebody notes about an item on its page or in a list: read, archived, favourite, a title, how far they read."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Form, Request, Response

from nexus.errors import InvalidRequest
from nexus.media import bulk, shelving
from nexus.media.shelving import Marks
from nexus.web.api import shelf
from nexus.web.api.shelf import ProgressBody
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.routing import Router
from nexus.web.pages.bulk import Chosen, Shown, lead_back
from nexus.web.views.lists import ItemList
from nexus.web.views.render import by_htmx, go, noted, page_router

router = page_router(prefix="/items")
#: What static/reader.js sends.
script = Router(prefix="/items", include_in_schema=False)

Mark = Annotated[bool | None, Form()]
Text = Annotated[str, Form()]
#: The buttons above a list: what each notes about the items that are selected.
BUTTONS = {
    "read": Marks(is_read=True),
    "unread": Marks(is_read=False),
    "archived": Marks(is_archived=True),
    "unarchived": Marks(is_archived=False),
}


@router.post("/{media_id}/marks")
def mark_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    read: Mark = None,
    archived: Mark = None,
    favourite: Mark = None,
    back: Text = "list",
    shown: Shown = "",
) -> Response:
    with nexus.sessions.begin() as session:
        shelving.mark_item(session, media_id, viewer, Marks(read, archived, favourite))
    if by_htmx(request):
        return Response(status_code=204, headers=noted(media_id))
    return go(f"/items/{media_id}" if back == "item" else ItemList.typed(shown).address())


@router.post("/{media_id}/title")
def title_by_form(nexus: Nexus, viewer: PageViewer, media_id: UUID, title: Text = "") -> Response:
    """An empty title brings back the original one."""
    with nexus.sessions.begin() as session:
        shelving.mark_item(session, media_id, viewer, Marks(title=title))
    return go(f"/items/{media_id}")


@router.post("/mark-selected")
def mark_selected(
    nexus: Nexus, viewer: PageViewer, mark: Text, chosen: Chosen = None, shown: Shown = ""
) -> Response:
    if mark not in BUTTONS:
        raise InvalidRequest("Items can be marked as read, unread, archived and unarchived.")
    done = bulk.mark_each(nexus.sessions, viewer, chosen or [], BUTTONS[mark])
    return lead_back(ItemList.typed(shown), mark, done)


@script.post("/{media_id}/progress")
def report_progress_on_page(nexus: Nexus, viewer: PageViewer, media_id: UUID, body: ProgressBody) -> Response:
    return shelf.report_progress(nexus, viewer, media_id, body)
