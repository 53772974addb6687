"""Search in what a viewer may read, and what is like an item."""

from __future__ import annotations

from uuid import UUID

from fastapi import Response

from nexus.media.searching.finding import FOUND_PAGE, search_items
from nexus.media.searching.similar import SIMILAR, more_like
from nexus.web.api.search_schemas import FoundOut, FoundPage, SimilarOut
from nexus.web.http.context import Limit, Nexus, Viewer
from nexus.web.http.envelope import Data, answer, answers
from nexus.web.http.routing import Router
from nexus.web.http.search_parameters import AskedItems, FoundCursor
from nexus.web.http.threads import searches

router = Router(tags=["search"])


@router.get("/search", responses=answers(Data[FoundPage], 404), summary="Search")
@searches
def search(
    nexus: Nexus, viewer: Viewer, asked: AskedItems, cursor: FoundCursor = None, limit: Limit = FOUND_PAGE
) -> Response:
    """By words and, if a model is there, by meaning: the best items first, each with its best passages.

    Only what your libraries hold, in the version that you read, archived items included. With filters alone, the latest
    additions. A cursor belongs to its question; later pages keep the order of the first.
    """
    found = search_items(nexus.tools, viewer, asked, cursor, limit)
    return answer(FoundPage.of(found, viewer))


@router.get("/media/{media_id}/similar", responses=answers(Data[SimilarOut], 404), summary="More like this")
@searches
def get_similar(nexus: Nexus, viewer: Viewer, media_id: UUID, limit: Limit = SIMILAR) -> Response:
    """What your libraries hold that is nearest to this item in meaning, or else in words; never the item itself."""
    found = more_like(nexus.tools, viewer, media_id, limit)
    return answer(
        SimilarOut.model_validate(
            {
                "items": [FoundOut.of(one, viewer) for one in found.items],
                "by": "words_and_meaning" if found.by_meaning else "words",
                "capabilities": found.like.capabilities,
            }
        )
    )
