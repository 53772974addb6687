"""Listening on pages: the sound of an item, where its listener is, and the queue."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Form, Request, Response

from nexus.media import queries
from nexus.media.recordings import listening
from nexus.media.recordings.heard import report_heard
from nexus.media.recordings.timings import transcribed_so_far
from nexus.web.api.listening import HeardBody
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.envelope import Answer, answer_bare
from nexus.web.http.routing import Router
from nexus.web.http.sound import sound_response
from nexus.web.http.threads import waits_for_site
from nexus.web.views.items import show_item
from nexus.web.views.lists import ItemList
from nexus.web.views.player import show_transcription
from nexus.web.views.render import by_htmx, changed, fragment, go, noted, page, page_router

router = page_router()
#: What static/player.js sends.
script = Router(include_in_schema=False)

Back = Annotated[str, Form()]


class NextOut(Answer):
    """What to play after an item; None at the end of the queue."""

    next: UUID | None


@router.get("/items/{media_id}/sound")
@waits_for_site
def play_sound(request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    return sound_response(request, nexus, viewer, media_id)


@router.get("/items/{media_id}/transcription")
def show_transcribed(request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    """How far the transcription has come. When it is over, the page is told to look at the item again."""
    with nexus.sessions.read() as session:
        queries.get_media(session, media_id, viewer)
        found = show_transcription(transcribed_so_far(session, media_id))
    headers = changed(media_id) if found is None else None
    return fragment(request, "transcribing.html", headers=headers, transcribed=found, item_id=media_id)


@script.post("/items/{media_id}/heard")
def report_heard_on_page(nexus: Nexus, viewer: PageViewer, media_id: UUID, body: HeardBody) -> Response:
    with nexus.sessions.begin() as session:
        report_heard(session, media_id, viewer, body.seconds, body.at)
    return Response(status_code=204)


@router.get("/listen")
def show_queue(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    with nexus.sessions.read() as session:
        queue = listening.list_queue(session, viewer)
    items = [show_item(view, nexus.tools.extractors, viewer) for view in queue]
    left = sum(max((view.row.seconds or 0) - view.row.heard, 0) for view in queue)
    return page(request, "listen.html", items=items, left=left)


@router.post("/listen/{media_id}/add")
def queue_by_form(
    request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID, back: Back = "item"
) -> Response:
    with nexus.sessions.begin() as session:
        listening.queue_item(session, media_id, viewer)
    return _answered(request, media_id, back)


@router.post("/listen/{media_id}/remove")
def unqueue_by_form(
    request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID, back: Back = "item"
) -> Response:
    with nexus.sessions.begin() as session:
        listening.unqueue_item(session, media_id, viewer)
    return _answered(request, media_id, back)


@router.post("/listen/{media_id}/move")
def move_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    position: Annotated[int, Form(ge=0, le=listening.MOST_QUEUED)],
) -> Response:
    with nexus.sessions.begin() as session:
        listening.move_queued(session, media_id, viewer, position)
    return _answered(request, media_id, "listen")


@script.post("/listen/{media_id}/heard")
def finish_on_page(nexus: Nexus, viewer: PageViewer, media_id: UUID) -> Response:
    """Something was heard to its end: it leaves the queue and counts as read. The answer is what comes next."""
    with nexus.sessions.begin() as session:
        following = listening.finish_listening(session, media_id, viewer)
    return answer_bare(NextOut(next=None if following is None else following.row.id))


def _answered(request: Request, media_id: UUID, back: str) -> Response:
    if by_htmx(request) and back != "listen":
        return Response(status_code=204, headers=noted(media_id))
    places = {"listen": "/listen", "item": f"/items/{media_id}"}
    return go(places.get(back) or ItemList.typed(back).address())
