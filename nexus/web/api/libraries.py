"""Libraries and their members."""

from __future__ import annotations

from uuid import UUID

from fastapi import Response

from nexus.libraries import catalog
from nexus.libraries.access import Role
from nexus.media import files, queries
from nexus.web.api.schemas import (
    Done,
    LibraryBody,
    LibraryList,
    LibraryMediaBody,
    LibraryOut,
    MediaPage,
    MemberBody,
    MemberList,
)
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer
from nexus.web.http.envelope import Data, answer, answers
from nexus.web.http.routing import Router

router = Router(prefix="/libraries", tags=["libraries"])


@router.get("", responses=answers(Data[LibraryList]), summary="List your libraries")
def list_libraries(nexus: Nexus, viewer: Viewer) -> Response:
    with nexus.sessions.read() as session:
        rows = catalog.list_libraries(session, viewer)
    return answer(LibraryList.model_validate({"items": rows}))


@router.post("", responses=answers(Data[LibraryOut], 413), summary="Create a library")
def create_library(nexus: Nexus, viewer: Viewer, body: LibraryBody) -> Response:
    """You become its admin."""
    with nexus.sessions.begin() as session:
        library_id = catalog.create_library(session, viewer, body.name)
        row = catalog.get_library(session, library_id, viewer)
    return answer(LibraryOut.model_validate(row))


@router.get("/{library_id}", responses=answers(Data[LibraryOut], 404), summary="Get a library")
def get_library(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        row = catalog.get_library(session, library_id, viewer)
    return answer(LibraryOut.model_validate(row))


@router.delete("/{library_id}", responses=answers(Data[Done], 403, 404), summary="Delete a library")
def delete_library(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    """Items that no other library holds are deleted with it. A default library can't be deleted."""
    files.delete_library(nexus.sessions, nexus.files, viewer, library_id)
    return answer(Done(done=True))


@router.get("/{library_id}/media", responses=answers(Data[MediaPage], 404), summary="List what it holds")
def list_library_media(
    nexus: Nexus, viewer: Viewer, library_id: UUID, cursor: Cursor = None, limit: Limit = queries.PAGE
) -> Response:
    with nexus.sessions.read() as session:
        page = queries.newest(session, viewer, library_id=library_id, cursor=cursor, most=limit)
    return answer(MediaPage.of(page, viewer))


@router.post("/{library_id}/media", responses=answers(Data[Done], 403, 404, 413), summary="Add an item to it")
def add_library_media(nexus: Nexus, viewer: Viewer, library_id: UUID, body: LibraryMediaBody) -> Response:
    """For admins of the library, with an item that they may read. Only its uploader may add a file."""
    with nexus.sessions.begin() as session:
        catalog.add_media(session, library_id, body.media_id, viewer)
    return answer(Done(done=True))


@router.delete(
    "/{library_id}/media/{media_id}",
    responses=answers(Data[Done], 403, 404),
    summary="Remove an item from it",
)
def remove_library_media(nexus: Nexus, viewer: Viewer, library_id: UUID, media_id: UUID) -> Response:
    """For admins of the library. The item is deleted when no library holds it any more."""
    files.remove_media(nexus.sessions, nexus.files, viewer, library_id, media_id)
    return answer(Done(done=True))


@router.get("/{library_id}/members", responses=answers(Data[MemberList], 404), summary="List its members")
def list_members(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        rows = catalog.list_members(session, library_id, viewer)
    return answer(MemberList.model_validate({"items": rows}))


@router.post("/{library_id}/members", responses=answers(Data[Done], 403, 404, 409, 413), summary="Add a user")
def set_member(nexus: Nexus, viewer: Viewer, library_id: UUID, body: MemberBody) -> Response:
    """Adds a user, or changes their role. At least one admin stays."""
    with nexus.sessions.begin() as session:
        catalog.set_member(session, library_id, body.user_id, Role(body.role), viewer)
    return answer(Done(done=True))


@router.delete(
    "/{library_id}/members/{user_id}",
    responses=answers(Data[Done], 403, 404, 409),
    summary="Remove a member, or leave",
)
def remove_member(nexus: Nexus, viewer: Viewer, library_id: UUID, user_id: UUID) -> Response:
    """Admins can remove anyone, and everyone can leave. At least one admin stays."""
    with nexus.sessions.begin() as session:
        catalog.remove_member(session, library_id, user_id, viewer)
    return answer(Done(done=True))
