"""Libraries and their members."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from fastapi import Response

from nexus.db.session import Session
from nexus.libraries import catalog, invitations, members, sizes
from nexus.libraries.access import Role
from nexus.media import deletions, queries
from nexus.media.list_filters import Wanted
from nexus.media.listing import list_items
from nexus.web.api.library_schemas import (
    LibraryBody,
    LibraryList,
    LibraryMediaBody,
    LibraryOut,
    MemberBody,
    MemberList,
)
from nexus.web.api.people_schemas import InvitationBody, InvitationList, InvitationOut, MemberSetOut
from nexus.web.api.schemas import Done, MediaPage
from nexus.web.http.context import Cursor, Limit, Nexus, Viewer
from nexus.web.http.envelope import Data, answer, answers
from nexus.web.http.routing import Router
from nexus.web.http.threads import waits_for_store

router = Router(prefix="/libraries", tags=["libraries"])


@router.get("", responses=answers(Data[LibraryList]), summary="List your libraries")
def list_libraries(nexus: Nexus, viewer: Viewer) -> Response:
    with nexus.sessions.read() as session:
        rows = catalog.list_libraries(session, viewer)
        counted = sizes.size_libraries(session, viewer)
    listed = [LibraryOut.of(row, counted[row.id]) for row in rows if row.id in counted]
    return answer(LibraryList(items=listed))


@router.post("", responses=answers(Data[LibraryOut], 413), summary="Create a library")
def create_library(nexus: Nexus, viewer: Viewer, body: LibraryBody) -> Response:
    """You become its admin."""
    with nexus.sessions.begin() as session:
        library_id = catalog.create_library(session, viewer, body.name)
        return _answer_library(session, library_id, viewer)


@router.get("/{library_id}", responses=answers(Data[LibraryOut], 404), summary="Get a library")
def get_library(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        return _answer_library(session, library_id, viewer)


@router.patch("/{library_id}", responses=answers(Data[LibraryOut], 403, 404, 413), summary="Rename a library")
def rename_library(nexus: Nexus, viewer: Viewer, library_id: UUID, body: LibraryBody) -> Response:
    """For admins. All members see the new name."""
    with nexus.sessions.begin() as session:
        catalog.rename_library(session, library_id, viewer, body.name)
        return _answer_library(session, library_id, viewer)


@router.delete("/{library_id}", responses=answers(Data[Done], 403, 404), summary="Delete a library")
@waits_for_store
def delete_library(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    """Items that no other library holds are deleted with it. A default library can't be deleted."""
    deletions.delete_library_and_files(nexus.sessions, nexus.files, viewer, library_id)
    return answer(Done(done=True))


@router.get("/{library_id}/media", responses=answers(Data[MediaPage], 404), summary="List what it holds")
def list_library_media(
    nexus: Nexus, viewer: Viewer, library_id: UUID, cursor: Cursor = None, limit: Limit = queries.PAGE
) -> Response:
    """Archived items too, the latest addition first. GET /media has filters and other orders."""
    wanted = Wanted(library_id=library_id, is_archived=None)
    with nexus.sessions.snapshot() as session:
        page = list_items(session, viewer, wanted, cursor, limit)
    return answer(MediaPage.of(page, viewer))


@router.post(
    "/{library_id}/media",
    responses=answers(Data[Done], 403, 404, 409, 413),
    summary="Copy or move an item to it",
)
def add_library_media(nexus: Nexus, viewer: Viewer, library_id: UUID, body: LibraryMediaBody) -> Response:
    """For admins of the library, with an item that they may read. Only its uploader may add a file.

    With `from_library_id` it is moved, if you administer that library too.
    """
    with nexus.sessions.begin() as session:
        if body.from_library_id is None:
            catalog.add_media(session, library_id, body.media_id, viewer)
        else:
            catalog.move_media(session, body.media_id, viewer, body.from_library_id, library_id)
    return answer(Done(done=True))


@router.delete(
    "/{library_id}/media/{media_id}",
    responses=answers(Data[Done], 403, 404),
    summary="Remove an item from it",
)
@waits_for_store
def remove_library_media(nexus: Nexus, viewer: Viewer, library_id: UUID, media_id: UUID) -> Response:
    """For admins of the library. The item is deleted when no library holds it any more."""
    deletions.remove_media_and_files(nexus.sessions, nexus.files, viewer, library_id, media_id)
    return answer(Done(done=True))


@router.get("/{library_id}/members", responses=answers(Data[MemberList], 404), summary="List its members")
def list_members(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    with nexus.sessions.read() as session:
        rows = members.list_members(session, library_id, viewer)
    return answer(MemberList.model_validate({"items": rows}))


@router.post(
    "/{library_id}/members",
    responses=answers(Data[MemberSetOut], 403, 404, 409, 413),
    summary="Change a member's role, or invite a user",
)
def set_member(nexus: Nexus, viewer: Viewer, library_id: UUID, body: MemberBody) -> Response:
    """Somebody who is not in the library is invited, and joins by accepting. At least one admin stays."""
    role, life = Role(body.role), timedelta(days=nexus.settings.invitation_days)
    with nexus.sessions.begin() as session:
        made = invitations.set_role_or_invite(session, library_id, body.user_id, role, viewer, life)
    if made is None:
        return answer(MemberSetOut(done=True))
    return answer(MemberSetOut(done=True, invitation=InvitationOut.model_validate(made)))


@router.delete(
    "/{library_id}/members/{user_id}",
    responses=answers(Data[Done], 403, 404, 409),
    summary="Remove a member, or leave",
)
def remove_member(nexus: Nexus, viewer: Viewer, library_id: UUID, user_id: UUID) -> Response:
    """Admins can remove anyone, and everyone can leave. At least one admin stays."""
    with nexus.sessions.begin() as session:
        members.remove_member(session, library_id, user_id, viewer)
    return answer(Done(done=True))


@router.post(
    "/{library_id}/invitations",
    responses=answers(Data[InvitationOut], 403, 404, 409, 413),
    summary="Invite somebody",
)
def invite(nexus: Nexus, viewer: Viewer, library_id: UUID, body: InvitationBody) -> Response:
    """For admins. By email or by user id, known to Nexus or not: the invitation waits until it is answered or expires.

    Inviting the same person again renews it.
    """
    with nexus.sessions.begin() as session:
        life = timedelta(days=nexus.settings.invitation_days)
        made = invitations.invite(session, library_id, viewer, body.invitee(), Role(body.role), life)
    return answer(InvitationOut.model_validate(made))


@router.get(
    "/{library_id}/invitations",
    responses=answers(Data[InvitationList], 403, 404),
    summary="List its open invitations",
)
def list_invitations(nexus: Nexus, viewer: Viewer, library_id: UUID) -> Response:
    """For admins."""
    with nexus.sessions.read() as session:
        rows = invitations.list_invitations(session, library_id, viewer)
    return answer(InvitationList.model_validate({"items": rows}))


@router.delete(
    "/{library_id}/invitations/{invitation_id}",
    responses=answers(Data[Done], 403, 404),
    summary="Revoke an invitation",
)
def revoke_invitation(nexus: Nexus, viewer: Viewer, library_id: UUID, invitation_id: UUID) -> Response:
    """For admins."""
    with nexus.sessions.begin() as session:
        invitations.revoke_invitation(session, library_id, invitation_id, viewer)
    return answer(Done(done=True))


def _answer_library(session: Session, library_id: UUID, viewer: UUID) -> Response:
    row = catalog.get_library(session, library_id, viewer)
    return answer(LibraryOut.of(row, sizes.size_library(session, library_id)))
