"""What the library page does with several items at once: those that are selected, or all that failed with an error."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Form, Request
from fastapi.responses import Response

from nexus.errors import InvalidRequest
from nexus.media import bulk
from nexus.media.bulk import BulkResult
from nexus.media.failures import failed_items
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.envelope import request_id
from nexus.web.http.threads import waits_for_store
from nexus.web.views.lists import ItemList
from nexus.web.views.render import go, page_router

router = page_router(prefix="/items")

Chosen = Annotated[list[UUID] | None, Form()]
#: The query of the list on which they were selected: the answer leads back there.
Shown = Annotated[str, Form(alias="list")]


@router.post("/retry-selected")
def retry_selected(
    request: Request, nexus: Nexus, viewer: PageViewer, chosen: Chosen = None, shown: Shown = ""
) -> Response:
    done = bulk.retry_each(nexus.sessions, nexus.queue, viewer, chosen or [], request_id(request))
    return lead_back(ItemList.typed(shown), "retried", done)


@router.post("/delete-selected")
@waits_for_store
def delete_selected(nexus: Nexus, viewer: PageViewer, chosen: Chosen = None, shown: Shown = "") -> Response:
    """From the library that is open, or else from all that the viewer administers."""
    here = ItemList.typed(shown)
    if here.library is None:
        done = bulk.delete_each(nexus.sessions, nexus.files, viewer, chosen or [])
    else:
        done = bulk.remove_each(nexus.sessions, nexus.files, viewer, here.library, chosen or [])
    return lead_back(here, "removed", done)


@router.post("/copy-selected")
def copy_selected(
    nexus: Nexus, viewer: PageViewer, to: Annotated[UUID, Form()], chosen: Chosen = None, shown: Shown = ""
) -> Response:
    done = bulk.copy_each(nexus.sessions, viewer, to, chosen or [])
    return lead_back(ItemList.typed(shown), "copied", done)


@router.post("/move-selected")
def move_selected(
    nexus: Nexus, viewer: PageViewer, to: Annotated[UUID, Form()], chosen: Chosen = None, shown: Shown = ""
) -> Response:
    """From the library that is open."""
    here = ItemList.typed(shown)
    if here.library is None:
        raise InvalidRequest("Open the library that the items should leave, then move them.")
    done = bulk.move_each(nexus.sessions, viewer, here.library, to, chosen or [])
    return lead_back(here, "moved", done)


@router.post("/retry-failed")
def retry_failed(
    request: Request, nexus: Nexus, viewer: PageViewer, error: Annotated[str, Form()], shown: Shown = ""
) -> Response:
    here = ItemList.typed(shown)
    with nexus.sessions.read() as session:
        chosen = failed_items(session, viewer, error, here.library)
    done = bulk.retry_each(nexus.sessions, nexus.queue, viewer, chosen, request_id(request))
    return lead_back(here, "retried", done)


def lead_back(here: ItemList, verb: str, done: BulkResult) -> Response:
    """To the list, which says how many items it was done with, and how many not."""
    return go(here.address(done=verb, count=len(done.done), refused=len(done.refused)))
