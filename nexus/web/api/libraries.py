"""Libraries and their members."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Response

from nexus.libraries import catalog
from nexus.libraries.access import Role
from nexus.media import queries
from nexus.media.files import discard_all
from nexus.web.api.schemas import (
    Data,
    Done,
    LibraryBody,
    LibraryList,
    LibraryMediaBody,
    LibraryOut,
    MediaPage,
    MemberBody,
    MemberList,
    library_json,
    media_json,
    member_json,
    page_json,
)
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer, answers
from nexus.web.http.envelope import answer
from nexus.web.http.routing import Route

router = APIRouter(
    route_class=Route, prefix="/libraries", tags=["libraries"], default_response_class=Response
)


@router.get("", responses=answers(Data[LibraryList]), summary="Your libraries")
def list_libraries(nexus: Nexus, viewer: Viewer) -> Response:
    with nexus.sessions.read() as session:
        rows = catalog.mine(session, viewer)
    return answer({"items": [library_json(row) for row in rows]})


@router.post("", responses=answers(Data[LibraryOut], 413), summary="Make a library")
def create_library(nexus: Nexus, viewer: Viewer, body: LibraryBody) -> Response:
    """You become its admin."""
    with nexus.sessions.begin() as session:
        library_id = catalog.create(session, viewer, body.name)
        row = catalog.get(session, library_id, viewer)
    return answer(library_json(row))


@router.get("/{library_id}", responses=answers(Data[LibraryOut], 404), summary="One library")
def get_library(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        row = catalog.get(session, library_id, viewer)
    return answer(library_json(row))


@router.delete("/{library_id}", responses=answers(Data[Done], 403, 404), summary="Delete a library")
def delete_library(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    """What no other library holds goes with it. A default library stays."""
    with nexus.sessions.begin() as session:
        gone = catalog.delete_library(session, library_id, viewer)
    discard_all(nexus.files, gone)
    return answer({"done": True})


@router.get("/{library_id}/media", responses=answers(Data[MediaPage], 404), summary="What it holds")
def list_library_media(
    nexus: Nexus, viewer: Viewer, library_id: UUID, cursor: Cursor = None, limit: Limit = queries.PAGE
) -> Response:
    with nexus.sessions.read() as session:
        page = queries.newest(session, viewer, library_id=library_id, cursor=cursor, most=limit)
    return answer(page_json(page, [media_json(view, viewer) for view in page.items]))


@router.post("/{library_id}/media", responses=answers(Data[Done], 403, 404, 413), summary="Add a media")
def add_library_media(nexus: Nexus, viewer: Viewer, library_id: UUID, body: LibraryMediaBody) -> Response:
    """For admins of the library, with a media that they may read."""
    with nexus.sessions.begin() as session:
        catalog.add_media(session, library_id, body.media_id, viewer)
    return answer({"done": True})


@router.delete(
    "/{library_id}/media/{media_id}", responses=answers(Data[Done], 403, 404), summary="Remove a media"
)
def remove_library_media(nexus: Nexus, viewer: Viewer, library_id: UUID, media_id: UUID) -> Response:
    """For admins of the library. It is gone when no library holds it any more."""
    with nexus.sessions.begin() as session:
        gone = catalog.remove_media(session, library_id, media_id, viewer)
    discard_all(nexus.files, gone)
    return answer({"done": True})


@router.get("/{library_id}/members", responses=answers(Data[MemberList], 404), summary="Who belongs to it")
def list_members(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        rows = catalog.members(session, library_id, viewer)
    return answer({"items": [member_json(row) for row in rows]})


@router.post(
    "/{library_id}/members", responses=answers(Data[Done], 403, 404, 409, 413), summary="Let a user in"
)
def set_member(nexus: Nexus, viewer: Viewer, library_id: UUID, body: MemberBody) -> Response:
    """Or change what he is. At least one admin stays."""
    with nexus.sessions.begin() as session:
        catalog.set_member(session, library_id, body.user_id, Role(body.role), viewer)
    return answer({"done": True})


@router.delete(
    "/{library_id}/members/{user_id}",
    responses=answers(Data[Done], 403, 404, 409),
    summary="Remove a member, or leave",
)
def remove_member(nexus: Nexus, viewer: Viewer, library_id: UUID, user_id: UUID) -> Response:
    """Admins remove anyone; everyone may leave. At least one admin stays."""
    with nexus.sessions.begin() as session:
        catalog.remove_member(session, library_id, user_id, viewer)
    return answer({"done": True})
