"""Libraries and people: making, renaming and deleting libraries, who is in each, and inviting more."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import Form, Request
from fastapi.responses import Response

from nexus.app import App
from nexus.errors import ApiError, Conflict, InvalidRequest
from nexus.libraries import catalog, invitations, members, people
from nexus.libraries.access import Role
from nexus.libraries.invitations import Invitee
from nexus.libraries.sizes import size_libraries, size_library
from nexus.media import deletions
from nexus.web.http.context import Nexus, PageViewer
from nexus.web.http.threads import waits_for_store
from nexus.web.views.render import go, page, page_router

router = page_router(prefix="/sharing")

_EMPTY_FORM = {"whom": "", "role": Role.MEMBER.value, "error": ""}
Text = Annotated[str, Form()]


@router.get("")
def sharing(request: Request, nexus: Nexus, viewer: PageViewer) -> Response:
    return _sharing(request, nexus, viewer)


@router.post("/name")
def rename(request: Request, nexus: Nexus, viewer: PageViewer, name: Text = "") -> Response:
    try:
        with nexus.sessions.begin() as session:
            people.set_name(session, viewer, name)
    except InvalidRequest as error:
        return _sharing(request, nexus, viewer, error, {"name": name})
    return go("/sharing")


@router.post("/libraries")
def create_library_by_form(request: Request, nexus: Nexus, viewer: PageViewer, name: Text = "") -> Response:
    try:
        with nexus.sessions.begin() as session:
            library_id = catalog.create_library(session, viewer, name)
    except InvalidRequest as error:
        return _sharing(request, nexus, viewer, error, {"library": name})
    return go(f"/sharing/{library_id}")


@router.post("/invitations/{invitation_id}/accept")
def accept_by_form(nexus: Nexus, viewer: PageViewer, invitation_id: UUID) -> Response:
    with nexus.sessions.begin() as session:
        library_id = invitations.accept(session, invitation_id, viewer)
    return go(f"/sharing/{library_id}")


@router.post("/invitations/{invitation_id}/decline")
def decline_by_form(nexus: Nexus, viewer: PageViewer, invitation_id: UUID) -> Response:
    with nexus.sessions.begin() as session:
        invitations.decline(session, invitation_id, viewer)
    return go("/sharing")


@router.get("/{library_id}")
def people_of(request: Request, nexus: Nexus, viewer: PageViewer, library_id: UUID) -> Response:
    return _people(request, nexus, viewer, library_id)


@router.post("/{library_id}/rename")
def rename_library_by_form(
    request: Request, nexus: Nexus, viewer: PageViewer, library_id: UUID, name: Text = ""
) -> Response:
    try:
        with nexus.sessions.begin() as session:
            catalog.rename_library(session, library_id, viewer, name)
    except InvalidRequest as error:
        return _people(
            request, nexus, viewer, library_id, problem=error, status=error.status, typed_name=name
        )
    return go(f"/sharing/{library_id}")


@router.post("/{library_id}/delete")
@waits_for_store
def delete_library_by_form(nexus: Nexus, viewer: PageViewer, library_id: UUID) -> Response:
    deletions.delete_library_and_files(nexus.sessions, nexus.files, viewer, library_id)
    return go("/sharing")


@router.post("/{library_id}/invitations")
def invite_by_form(
    request: Request,
    nexus: Nexus,
    viewer: PageViewer,
    library_id: UUID,
    whom: Text = "",
    role: Text = Role.MEMBER.value,
) -> Response:
    """Whom to invite is an email or a user id. If that can't be done, what was typed comes back with the reason."""
    chosen = Role.ADMIN if role == Role.ADMIN.value else Role.MEMBER
    life = timedelta(days=nexus.settings.invitation_days)
    try:
        with nexus.sessions.begin() as session:
            invitations.invite(session, library_id, viewer, Invitee.typed(whom), chosen, life)
    except (InvalidRequest, Conflict) as error:
        form = {"whom": whom, "role": chosen.value, "error": error.message}
        return _people(request, nexus, viewer, library_id, form, status=error.status)
    return go(f"/sharing/{library_id}#invitations")


@router.post("/{library_id}/invitations/{invitation_id}/revoke")
def revoke_invitation_by_form(
    nexus: Nexus, viewer: PageViewer, library_id: UUID, invitation_id: UUID
) -> Response:
    with nexus.sessions.begin() as session:
        invitations.revoke_invitation(session, library_id, invitation_id, viewer)
    return go(f"/sharing/{library_id}#invitations")


@router.post("/{library_id}/members/{user_id}/role")
def set_role_by_form(
    request: Request, nexus: Nexus, viewer: PageViewer, library_id: UUID, user_id: UUID, role: Text = ""
) -> Response:
    try:
        with nexus.sessions.begin() as session:
            members.set_role(
                session, library_id, user_id, Role.ADMIN if role == "admin" else Role.MEMBER, viewer
            )
    except Conflict as error:
        return _people(request, nexus, viewer, library_id, problem=error, status=error.status)
    return go(f"/sharing/{library_id}")


@router.post("/{library_id}/members/{user_id}/remove")
def remove(request: Request, nexus: Nexus, viewer: PageViewer, library_id: UUID, user_id: UUID) -> Response:
    try:
        with nexus.sessions.begin() as session:
            members.remove_member(session, library_id, user_id, viewer)
    except Conflict as error:
        return _people(request, nexus, viewer, library_id, problem=error, status=error.status)
    return go("/sharing" if user_id == viewer else f"/sharing/{library_id}")


def _sharing(
    request: Request,
    nexus: App,
    viewer: UUID,
    problem: ApiError | None = None,
    typed: dict[str, str] | None = None,
) -> Response:
    """If something was refused, what was typed comes back with the reason."""
    with nexus.sessions.read() as session:
        libraries = catalog.list_libraries(session, viewer)
        sizes = size_libraries(session, viewer)
        offers = invitations.list_offers(session, viewer)
        me = people.get_person(session, viewer)
    return page(
        request,
        "sharing.html",
        200 if problem is None else problem.status,
        problem=problem and problem.message,
        typed={"name": None, "library": "", **(typed or {})},
        libraries=libraries,
        sizes=sizes,
        offers=offers,
        me=me,
    )


def _people(
    request: Request,
    nexus: App,
    viewer: UUID,
    library_id: UUID,
    form: dict[str, str] = _EMPTY_FORM,
    problem: ApiError | None = None,
    status: int = 200,
    typed_name: str | None = None,
) -> Response:
    with nexus.sessions.read() as session:
        library = catalog.get_library(session, library_id, viewer)
        is_admin = library.role is Role.ADMIN
        everyone = members.list_members(session, library_id, viewer)
        can_share = is_admin and not library.is_default
        waiting = invitations.list_invitations(session, library_id, viewer) if can_share else []
        items = size_library(session, library_id).items
    return page(
        request,
        "sharing_library.html",
        status,
        library=library,
        is_admin=is_admin,
        viewer=viewer,
        everyone=everyone,
        waiting=waiting,
        items=items,
        typed_name=typed_name,
        form=form,
        problem=problem and problem.message,
    )
