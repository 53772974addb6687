"""What the library page does with several items at once: those that are selected, or all that failed with an error."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Form, Request
from fastapi.responses import Response

from nexus.media import bulk
from nexus.media.failures import failed_items
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.envelope import request_id
from nexus.web.views.items import FILTERS
from nexus.web.views.render import go, page_router

router = page_router(prefix="/items")

Chosen = Annotated[list[UUID] | None, Form()]
Show = Annotated[str, Form()]


@router.post("/retry-selected")
def retry_selected(
    request: Request, nexus: Nexus, viewer: PageViewer, chosen: Chosen = None, show: Show = "all"
) -> Response:
    done = bulk.retry_each(nexus.sessions, nexus.queue, viewer, chosen or [], request_id(request))
    return _back(show, retried=len(done.done), refused=len(done.refused))


@router.post("/delete-selected")
def delete_selected(nexus: Nexus, viewer: PageViewer, chosen: Chosen = None, show: Show = "all") -> Response:
    done = bulk.delete_each(nexus.sessions, nexus.files, viewer, chosen or [])
    return _back(show, removed=len(done.done), refused=len(done.refused))


@router.post("/retry-failed")
def retry_failed(
    request: Request, nexus: Nexus, viewer: PageViewer, error: Annotated[str, Form()]
) -> Response:
    with nexus.sessions.read() as session:
        chosen = failed_items(session, viewer, error)
    done = bulk.retry_each(nexus.sessions, nexus.queue, viewer, chosen, request_id(request))
    return _back("failed", retried=len(done.done), refused=len(done.refused))


def _back(show: str, **counts: int) -> Response:
    kept = {} if show == "all" or show not in FILTERS else {"show": show}
    return go(f"/?{urlencode(kept | counts)}")
