"""Stories: read, edit, publish or put away, and export."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal
from urllib.parse import urljoin
from uuid import UUID

from fastapi import Depends, Query, Request, Response

from nexus.editorial import queries as editorial
from nexus.editorial import stories
from nexus.editorial.quote_moments import quote_moments
from nexus.errors import InvalidRequest
from nexus.media import queries
from nexus.states.story import CORRECT, STORY, StoryStatus
from nexus.web.api import atom_feed, story_formats
from nexus.web.api.schemas import EventOut
from nexus.web.api.story_schemas import (
    CorrectionBody,
    RevisionBody,
    StoryBody,
    StoryDetail,
    StoryOut,
    StoryPage,
    StorySummary,
)
from nexus.web.http.auth import Gate
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer, admit_caller
from nexus.web.http.envelope import answer_bare, editorial_answers, refuse_editorially
from nexus.web.http.routing import Router

router = Router(refuse=refuse_editorially, tags=["jobs"])

#: A correction has words of its own.
Verb = StrEnum("Verb", {edge.verb: edge.verb for edge in STORY if edge is not CORRECT})  # type: ignore[misc]
ATOM = "application/atom+xml"
_FEED: dict[int | str, dict[str, Any]] = {
    200: {"content": {ATOM: {"schema": {"type": "string"}}}, "description": "A feed."}
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/markdown": {"schema": {"type": "string"}}, "application/json": {}},
        "description": "A file.",
    }
}


async def _feed_viewer(
    request: Request,
    token: Annotated[str | None, Query(max_length=2000, description="From the feed's own address.")] = None,
) -> UUID:
    """Feed readers send no headers, so the feed's address has a token that opens nothing else."""

    async def identify(gate: Gate, request: Request) -> UUID:
        return await (gate.by_either(request) if token is None else gate.by_feed_address(token))

    return await admit_caller(request, identify)


@router.get("/api/stories", responses=editorial_answers(StoryPage), summary="List stories")
def list_stories(
    nexus: Nexus,
    viewer: Viewer,
    status: Annotated[str | None, Query(examples=["draft"])] = None,
    cursor: Cursor = None,
    limit: Limit = queries.PAGE,
) -> Response:
    """Those of your jobs, and of jobs made in libraries that you administer, the newest first."""
    if status is not None and status not in set(StoryStatus):
        raise InvalidRequest(f"There is no status {status[:40]!r}. See /docs.")
    chosen = StoryStatus(status) if status else None
    with nexus.sessions.read() as session:
        page = editorial.newest_stories(session, viewer, status=chosen, cursor=cursor, most=limit)
    shown = [StorySummary.of(row) for row in page.items]
    return answer_bare(StoryPage(success=True, stories=shown, next_cursor=page.next_cursor))


@router.get(
    "/api/stories.atom",
    responses={**editorial_answers(StoryPage), **_FEED},
    summary="Get published stories as a feed",
)
def feed(nexus: Nexus, viewer: Annotated[UUID, Depends(_feed_viewer)], request: Request) -> Response:
    """The newest published stories that you may see. The page of stories shows the address for feed readers."""
    with nexus.sessions.read() as session:
        rows = editorial.published_stories(session, viewer)
    site = urljoin(nexus.settings.public_url or str(request.base_url), "/")
    return Response(atom_feed.write_atom_feed(rows, viewer, site, nexus.sessions.clock()), media_type=ATOM)


@router.get("/api/stories/{story_id}", responses=editorial_answers(StoryOut, 404), summary="Get a story")
def get_story(nexus: Nexus, viewer: Viewer, story_id: UUID) -> Response:
    """With the article that its evidence points into, and everything that happened to it."""
    with nexus.sessions.read() as session:
        story = editorial.visible_story(session, story_id, viewer)
        events = editorial.history_of(session, story_id)
        moments = quote_moments(session, story, viewer)
    history = [EventOut.of(row, viewer) for row in events]
    shown = StoryDetail.spoken(story, moments)
    return answer_bare(StoryOut(success=True, skipped=False, story=shown, history=history))


@router.patch(
    "/api/stories/{story_id}",
    responses=editorial_answers(StoryOut, 404, 409, 413),
    summary="Change its wording",
)
def edit_story(nexus: Nexus, viewer: Viewer, story_id: UUID, body: StoryBody) -> Response:
    """Takes the whole wording. Each quote is looked up in the article; a claim without support is kept and marked."""
    story = stories.edit_story(nexus.sessions, viewer, story_id, body.revision, body.wording())
    return answer_bare(StoryOut(success=True, skipped=False, story=StoryDetail.of(story)))


@router.get(
    "/api/stories/{story_id}/export",
    responses={**editorial_answers(StoryOut, 404), **_FILE},
    summary="Export a story",
)
def export_story(
    nexus: Nexus,
    viewer: Viewer,
    story_id: UUID,
    format: Literal["markdown", "json"] = "markdown",  # noqa: A002
) -> Response:
    with nexus.sessions.read() as session:
        story = editorial.visible_story(session, story_id, viewer)
        moments = quote_moments(session, story, viewer)
    return story_formats.exported(story, moments, format)


@router.post(
    "/api/stories/{story_id}/correct",
    responses=editorial_answers(StoryOut, 404, 409, 413),
    summary="Correct a published story",
)
def correct_story(nexus: Nexus, viewer: Viewer, story_id: UUID, body: CorrectionBody) -> Response:
    """Takes the whole wording. The story stays published, and says when it was corrected."""
    story = stories.correct_story(
        nexus.sessions,
        viewer,
        story_id,
        body.revision,
        body.wording(),
        body.correction,
        unsupported=body.unsupported,
    )
    return answer_bare(StoryOut(success=True, skipped=False, story=StoryDetail.of(story)))


@router.post(
    "/api/stories/{story_id}/{verb}",
    responses=editorial_answers(StoryOut, 404, 409, 413),
    summary="Publish it, or put it away",
)
def change_story(nexus: Nexus, viewer: Viewer, story_id: UUID, verb: Verb, body: RevisionBody) -> Response:
    """`skipped` says that it was in that state already.

    To publish a story with `unsupported` statements, say how many there are: `409 E_UNSUPPORTED` otherwise."""
    changed = stories.change_story(
        nexus.sessions, viewer, story_id, body.revision, verb.value, unsupported=body.unsupported
    )
    return answer_bare(StoryOut(success=True, skipped=changed.skipped, story=StoryDetail.of(changed.story)))
