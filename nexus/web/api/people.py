"""You, the people you share libraries with, and the invitations to you."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, Response

from nexus.libraries import invitations, people
from nexus.web.api.people_schemas import AcceptedOut, NameBody, OfferList, PersonList, PersonOut
from nexus.web.api.schemas import Done
from nexus.web.http.context import Nexus, Viewer
from nexus.web.http.envelope import Data, answer, answers
from nexus.web.http.routing import Router

router = Router(tags=["people"])


@router.get("/me", responses=answers(Data[PersonOut]), summary="Get your profile")
def get_me(nexus: Nexus, viewer: Viewer) -> Response:
    with nexus.sessions.read() as session:
        found = people.get_person(session, viewer)
    return answer(PersonOut.model_validate(found))


@router.patch("/me", responses=answers(Data[PersonOut], 413), summary="Change your name")
def rename_me(nexus: Nexus, viewer: Viewer, body: NameBody) -> Response:
    """People who share a library with you see it. An empty name brings back the one of your identity provider."""
    with nexus.sessions.begin() as session:
        people.set_name(session, viewer, body.name)
        found = people.get_person(session, viewer)
    return answer(PersonOut.model_validate(found))


@router.get("/people", responses=answers(Data[PersonList]), summary="Find people")
def find_people(nexus: Nexus, viewer: Viewer, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """By a part of their name or email, among those who share a library with you."""
    with nexus.sessions.read() as session:
        found = people.search_people(session, viewer, q)
    return answer(PersonList.model_validate({"items": found}))


@router.get("/invitations", responses=answers(Data[OfferList]), summary="List invitations to you")
def list_offers(nexus: Nexus, viewer: Viewer) -> Response:
    """Open ones, to your user id or to your verified email."""
    with nexus.sessions.read() as session:
        found = invitations.list_offers(session, viewer)
    return answer(OfferList.model_validate({"items": found}))


@router.post(
    "/invitations/{invitation_id}/accept",
    responses=answers(Data[AcceptedOut], 404),
    summary="Accept an invitation",
)
def accept(nexus: Nexus, viewer: Viewer, invitation_id: UUID) -> Response:
    """You become a member of its library. An invitation can be accepted once."""
    with nexus.sessions.begin() as session:
        library_id = invitations.accept(session, invitation_id, viewer)
    return answer(AcceptedOut(library_id=library_id))


@router.post(
    "/invitations/{invitation_id}/decline",
    responses=answers(Data[Done], 404),
    summary="Decline an invitation",
)
def decline(nexus: Nexus, viewer: Viewer, invitation_id: UUID) -> Response:
    with nexus.sessions.begin() as session:
        invitations.decline(session, invitation_id, viewer)
    return answer(Done(done=True))
