"""The pages of search: what a question finds, and what is like an item."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from fastapi import Request
from fastapi.responses import Response

from nexus.media.searching.finding import search_items
from nexus.media.searching.similar import more_like
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.search_parameters import AskedItems, FoundCursor
from nexus.web.http.threads import searches
from nexus.web.views.found import present_hits
from nexus.web.views.items import show_item
from nexus.web.views.render import page, page_router

router = page_router()


@router.get("/find")
@searches
def find(
    request: Request, nexus: Nexus, viewer: PageViewer, asked: AskedItems, cursor: FoundCursor = None
) -> Response:
    """The page that static/search.js asks again while somebody types."""
    found = search_items(nexus.tools, viewer, asked, cursor)
    return page(
        request,
        "search.html",
        asked=asked.text,
        more=found.next_cursor and _more(request, found.next_cursor),
        found=found,
        hits=present_hits(found.items, nexus.tools.extractors, viewer),
    )


@router.get("/items/{media_id}/similar")
@searches
def show_similar(request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    found = more_like(nexus.tools, viewer, media_id)
    return page(
        request,
        "similar.html",
        like=show_item(found.like, nexus.tools.extractors, viewer),
        by_meaning=found.by_meaning,
        hits=present_hits(found.items, nexus.tools.extractors, viewer),
    )


def _more(request: Request, cursor: str) -> str:
    """Return the address of the next page: the same question and filters."""
    return f"/find?{urlencode({**request.query_params, 'cursor': cursor})}"
