"""The page on which an item is read: its text or its pages, the pictures in them, and its refresh."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse

from nexus.db.rows import FileRow
from nexus.db.session import Session
from nexus.embed import missing_model
from nexus.errors import NotFound
from nexus.libraries import catalog, people
from nexus.media import history, queries, reader, refresh, shelving, versions
from nexus.media.changes import list_changes
from nexus.media.history import KnownEvent
from nexus.media.queries import View
from nexus.media.reader import Document, Passage
from nexus.media.recordings.facts import RecordingRow, find_recording
from nexus.media.recordings.heard import heard_so_far
from nexus.media.recordings.listening import is_queued
from nexus.media.recordings.sound import sound_place
from nexus.media.recordings.timings import fragment_at, times_between, transcribed_so_far, was_heard_out
from nexus.media.searching.vectors import progress_of
from nexus.states.capabilities import PLAYABLE, UNRENDERABLE
from nexus.states.media import FILE_KINDS
from nexus.storage.names import disposition, download_name
from nexus.web.api.listening import LONGEST_SECONDS
from nexus.web.http.context import Nexus, PageViewer, Revision
from nexus.web.http.envelope import request_id
from nexus.web.http.files import picture_response
from nexus.web.http.threads import taken_in_turn, threads_of, waits_for_store
from nexus.web.views.histories import show_history
from nexus.web.views.items import show_item, show_place, show_reading, show_refresh
from nexus.web.views.notes import show_notes
from nexus.web.views.player import ShownPlayer, is_blocked, offer_hearing, show_player, show_transcription
from nexus.web.views.render import by_htmx, changed, fragment, go, page, page_router
from nexus.web.views.searchable import show_searchable
from nexus.web.views.versions import show_choice

router = page_router(prefix="/items")

#: A PDF is shown in a frame of ours only. Browsers' viewers bring their own styles, and don't work in a sandbox.
_PDF_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"
    ),
    "Cache-Control": "no-store",
}
_NOTHING = Passage([], None, None)
_NEW, _SAME = "This is the latest text.", "Refreshed; nothing has changed."

Start = Annotated[int | None, Query(alias="from", ge=0, lt=2**31, description="The fragment to begin with.")]
End = Annotated[int | None, Query(alias="before", ge=0, lt=2**31, description="The fragment to end before.")]
Moment = Annotated[
    float | None,
    Query(ge=0, le=LONGEST_SECONDS, allow_inf_nan=False, description="A moment in the recording."),
]
Since = Annotated[int, Query(ge=0, description="The revision that the page shows.")]


@router.get("/{media_id}")
def item(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    start: Start = None,
    end: End = None,
    view: str = "",
    revision: Revision = None,
    at: Moment = None,
) -> Response:
    """The item as the viewer holds it, or another version that they may read."""
    at_a_place = start is not None or end is not None
    with nexus.sessions.read() as session:
        held = queries.get_media(session, media_id, viewer)
        others = versions.list_versions(session, held, viewer)
        found = held if revision is None else versions.view_version(session, media_id, viewer, revision)
        document = _document(session, found, viewer)
        passage = _passage(session, found, start, end)
        if at is not None and not at_a_place:
            passage = _spoken_at(session, found, passage, at)
        times = _times(session, found, passage)
        known = find_recording(session, media_id) if found.row.kind in PLAYABLE else None
        player = _player(session, found, known, viewer)
        transcribed = show_transcription(transcribed_so_far(session, media_id))
        heard_out = was_heard_out(session, media_id)
        has_pdf = _pdf(session, found) is not None
        asked = refresh.present(session, media_id, viewer)
        events = _events(session, media_id, viewer)
        changes = list_changes(session, media_id, viewer).items
        uploader = _uploader(session, found, viewer)
        holders = catalog.list_holding(session, media_id, viewer)
        place = show_place(shelving.read_shelf(session, media_id, viewer), found.row.revision)
        progress = progress_of(session, media_id)
    return page(
        request,
        "item.html",
        frames=(player.frame.origin,) if player and player.frame else (),
        player=player,
        notes=show_notes(known),
        hearing=offer_hearing(found, known, nexus.tools.ears.model, heard_out=heard_out),
        times=times,
        transcribed=transcribed,
        blocked=is_blocked(found, events),
        item=show_item(found, nexus.tools.extractors, viewer),
        reading=show_reading(
            found, view or ("text" if at_a_place else ""), document, passage, has_pdf, revision
        ),
        choice=show_choice(held, others, revision),
        document=document,
        refresh=show_refresh(found, asked, nexus.tools.extractors),
        history=show_history(events, changes, viewer),
        uploader=uploader,
        holders=holders,
        place=place,
        searchable=show_searchable(found, progress, missing_model(nexus.tools.embedder)),
    )


@router.get("/{media_id}/text")
def show_more_text(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    start: Start = None,
    end: End = None,
    revision: Revision = None,
) -> Response:
    """More of the text, for htmx to append."""
    with nexus.sessions.read() as session:
        found = versions.view_version(session, media_id, viewer, revision)
        passage = _passage(session, found, start, end)
        times = _times(session, found, passage)
        has_pdf = _pdf(session, found) is not None
    return fragment(
        request,
        "prose.html",
        times=times,
        item=show_item(found, nexus.tools.extractors, viewer),
        reading=show_reading(found, "text", None, passage, has_pdf, revision),
        document=None,
    )


@router.get("/{media_id}/assets/{name}")
@waits_for_store
def asset(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    media_id: UUID,
    name: str,
    revision: Revision = None,
) -> Response:
    with nexus.sessions.read() as session:
        found = reader.find_picture(session, versions.view_version(session, media_id, viewer, revision), name)
    return picture_response(request, viewer, nexus.files, found)


@router.get("/{media_id}/pdf")
@waits_for_store
def show_pdf(
    request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID, revision: Revision = None
) -> Response:
    with nexus.sessions.read() as session:
        file = _pdf(session, versions.view_version(session, media_id, viewer, revision))
    if file is None:
        raise NotFound("This item has no PDF to show.")
    headers = {
        **_PDF_HEADERS,
        "Content-Length": str(file.size_bytes),
        "Content-Disposition": disposition(download_name(file.filename, file.content_type)).replace(
            "attachment", "inline", 1
        ),
    }
    content = taken_in_turn(
        threads_of(request).store.of(viewer), reader.stream(nexus.files, file.storage_path)
    )
    return StreamingResponse(content, headers=headers, media_type=file.content_type)


@router.post("/{media_id}/refresh")
def refresh_item(
    request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID, since: Since = 0
) -> Response:
    refresh.request(nexus.sessions, nexus.queue, media_id, viewer, request_id(request))
    if by_htmx(request):
        return refresh_state(request, nexus, viewer, media_id, since)
    return go(f"/items/{media_id}")


@router.get("/{media_id}/refresh")
def refresh_state(
    request: Request, nexus: Nexus, viewer: PageViewer, media_id: UUID, since: Since = 0
) -> Response:
    """The state of a refresh. When it is done, the page is told to look at the item again."""
    with nexus.sessions.read() as session:
        found = queries.get_media(session, media_id, viewer)
        document = _document(session, found, viewer)
        asked = refresh.present(session, media_id, viewer)
    said, headers = "", dict[str, str]()
    if asked is None:
        said = _NEW if document and document.row.number != since else _SAME
        headers = changed(media_id)
    return fragment(
        request,
        "refresh.html",
        headers=headers,
        media_id=media_id,
        revision=since,
        refresh=show_refresh(found, asked, nexus.tools.extractors, said),
    )


def _document(session: Session, found: View, viewer: UUID) -> Document | None:
    """None for an item without text."""
    if not found.capabilities.can_read:
        return None
    try:
        return reader.document(session, found, viewer)
    except NotFound:
        return None


def _passage(session: Session, found: View, start: int | None, end: int | None) -> Passage:
    if not (found.capabilities.can_read and found.row.has_text):
        return _NOTHING
    if end is not None:
        return reader.before(session, found.row.id, found.row.revision, end)
    return reader.onward(session, found.row.id, found.row.revision, start or 0)


def _spoken_at(session: Session, found: View, passage: Passage, seconds: float) -> Passage:
    """The passage, or the one that begins with what is spoken at that moment if this does not hold it."""
    position = fragment_at(session, found.row.id, found.row.revision, seconds)
    if position is None or passage.holds(position) or not passage.fragments:
        return passage
    return reader.onward(session, found.row.id, found.row.revision, position)


def _times(session: Session, found: View, passage: Passage) -> dict[int, str]:
    """When the words of a passage are spoken, for static/transcript.js."""
    if not passage.fragments or found.row.kind not in PLAYABLE:
        return {}
    first, last = passage.fragments[0].position, passage.fragments[-1].position
    return times_between(session, found.row.id, found.row.revision, first, last)


def _player(session: Session, found: View, known: RecordingRow | None, viewer: UUID) -> ShownPlayer | None:
    media_id = found.row.id
    if not found.capabilities.can_play:
        return None
    return show_player(
        found,
        known,
        sound_place(session, media_id),
        heard_so_far(session, media_id, viewer),
        is_queued=is_queued(session, media_id, viewer),
    )


def _pdf(session: Session, found: View) -> FileRow | None:
    """The PDF that a browser can show, uploaded or fetched."""
    if not found.capabilities.can_download_file or found.row.last_error_code in UNRENDERABLE:
        return None
    return reader.pdf_of_revision(session, found.row.id, found.row.revision)


def _uploader(session: Session, found: View, viewer: UUID) -> str | None:
    """Who uploaded a file, by the name that the viewer may know; None for what has an address."""
    if found.row.kind not in FILE_KINDS:
        return None
    user_id = found.row.created_by_user_id
    if user_id == viewer:
        return "you"
    return people.name_shown(people.known_people(session, viewer).get(user_id))


def _events(session: Session, media_id: UUID, viewer: UUID) -> list[KnownEvent]:
    found = history.events(session, media_id, viewer, most=queries.MOST)
    rows = found.items
    while found.next_cursor is not None:
        found = history.events(session, media_id, viewer, found.next_cursor, queries.MOST)
        rows += found.items
    return rows
