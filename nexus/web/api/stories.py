"""Stories: read, edited, published or put away, and taken along."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal
from urllib.parse import urljoin
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response

from nexus.editorial import queries as desk
from nexus.editorial import stories
from nexus.errors import InvalidRequest
from nexus.media import queries
from nexus.states.story import STORY, Status
from nexus.web.api.schemas import event_json
from nexus.web.api.story_schemas import ChangeBody, StoryBody, StoryOut, StoryPage, story_json
from nexus.web.http import auth
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer, app_of, gate_of
from nexus.web.http.editorial import answer, answers
from nexus.web.http.envelope import EDITORIAL
from nexus.web.http.routing import Route
from nexus.web.views import story_formats

router = APIRouter(route_class=Route, tags=[EDITORIAL], default_response_class=Response)

Verb = StrEnum("Verb", {edge.verb: edge.verb for edge in STORY})  # type: ignore[misc]
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
    token: Annotated[str | None, Query(max_length=2000, description="Of the feed's own address.")] = None,
) -> UUID:
    """Feed readers send no headers: the address of a feed has a token in it that opens nothing else."""
    if token is not None:
        return auth.open_own_token(app_of(request).settings, token, "feed")
    return await gate_of(request).by_either(request)


@router.get("/api/stories", responses=answers(StoryPage), summary="List stories")
def list_stories(
    nexus: Nexus,
    viewer: Viewer,
    status: Annotated[str | None, Query(examples=["draft"])] = None,
    cursor: Cursor = None,
    limit: Limit = queries.PAGE,
) -> Response:
    """Those of your jobs, and of jobs made in libraries that you administer, the newest first."""
    if status is not None and status not in set(Status):
        raise InvalidRequest(f"There is no status {status[:40]!r}. See /docs.")
    chosen = Status(status) if status else None
    with nexus.sessions.read() as session:
        page = desk.newest_stories(session, viewer, status=chosen, cursor=cursor, most=limit)
    shown = [story_json(row) for row in page.items]
    return answer({"success": True, "stories": shown, "nextCursor": page.next_cursor})


@router.get(
    "/api/stories.atom", responses={**answers(StoryPage), **_FEED}, summary="Published stories as a feed"
)
def feed(nexus: Nexus, viewer: Annotated[UUID, Depends(_feed_viewer)], request: Request) -> Response:
    """The newest published stories that you may see. The page of stories has an address for feed readers."""
    with nexus.sessions.read() as session:
        rows = desk.published(session, viewer)
    site = urljoin(nexus.settings.public_url or str(request.base_url), "/")
    return Response(story_formats.atom(rows, viewer, site, nexus.sessions.clock()), media_type=ATOM)


@router.get("/api/stories/{story_id}", responses=answers(StoryOut, 404), summary="One story")
def get_story(nexus: Nexus, viewer: Viewer, story_id: UUID) -> Response:
    """With the article that its evidence points into, and everything that happened to it."""
    with nexus.sessions.read() as session:
        story = desk.story(session, story_id, viewer)
        events = desk.what_happened(session, story_id)
    history = [event_json(row, viewer) for row in events]
    return answer({"success": True, "skipped": False, "story": story_json(story), "history": history})


@router.patch(
    "/api/stories/{story_id}", responses=answers(StoryOut, 404, 409, 413), summary="Change its wording"
)
def edit_story(nexus: Nexus, viewer: Viewer, story_id: UUID, body: StoryBody) -> Response:
    """The whole wording. Each quote is looked up in the article; a claim without support is kept and marked."""
    with nexus.sessions.read() as session:
        story = desk.story(session, story_id, viewer)
    grounded = stories.ground(story, body.wording())
    with nexus.sessions.begin() as session:
        changed = stories.edit(session, story, body.revision, grounded)
    return answer({"success": True, "skipped": False, "story": story_json(changed)})


@router.get(
    "/api/stories/{story_id}/export", responses={**answers(StoryOut, 404), **_FILE}, summary="Take it along"
)
def export_story(
    nexus: Nexus,
    viewer: Viewer,
    story_id: UUID,
    format: Literal["markdown", "json"] = "markdown",  # noqa: A002
) -> Response:
    with nexus.sessions.read() as session:
        story = desk.story(session, story_id, viewer)
    return story_formats.exported(story, format)


@router.post(
    "/api/stories/{story_id}/{verb}",
    responses=answers(StoryOut, 404, 409, 413),
    summary="Publish it, or put it away",
)
def change_story(nexus: Nexus, viewer: Viewer, story_id: UUID, verb: Verb, body: ChangeBody) -> Response:
    """`skipped` says that it was so already."""
    with nexus.sessions.begin() as session:
        story = desk.story(session, story_id, viewer)
        changed = stories.change(session, story_id, verb.value, body.revision, str(viewer))
    return answer({"success": True, "skipped": changed is None, "story": story_json(changed or story)})
