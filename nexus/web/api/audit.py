"""The audit log."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, Response

from nexus.errors import InvalidRequest
from nexus.libraries import audit, people
from nexus.libraries.audit import AuditEvent, AuditFilter
from nexus.web.api.people_schemas import AuditOut, AuditPage
from nexus.web.http.context import Nexus, Viewer
from nexus.web.http.envelope import Data, answer, answers
from nexus.web.http.routing import Router

router = Router(tags=["audit"])

Before = Annotated[
    int | None, Query(alias="cursor", ge=1, lt=2**63, description="`next_cursor` of the previous page.")
]
Most = Annotated[int, Query(ge=1, le=audit.MOST, description="How many at most.")]


@router.get("/audit", responses=answers(Data[AuditPage]), summary="Read the audit log")
def read_audit(
    nexus: Nexus,
    viewer: Viewer,
    library_id: UUID | None = None,
    user_id: UUID | None = None,
    event: Annotated[str | None, Query(examples=["invited"])] = None,
    cursor: Before = None,
    limit: Most = audit.PAGE,
) -> Response:
    """What you did, and what happened in libraries that you administer, the latest first. Operators see everything."""
    if event is not None and event not in set(AuditEvent):
        raise InvalidRequest(f"There is no event of that name. Choose one of {', '.join(AuditEvent)}.")
    wanted = AuditFilter(library_id, user_id, None if event is None else AuditEvent(event))
    everything = nexus.settings.is_operator(viewer)
    with nexus.sessions.read() as session:
        found = audit.entries(session, viewer, wanted, everything=everything, before=cursor, most=limit + 1)
        known = people.known_people(session, viewer)
    shown = [
        AuditOut.model_validate({**entry._asdict(), "user_name": _name(known, entry.user_id)})
        for entry in found[:limit]
    ]
    return answer(AuditPage(items=shown, next_cursor=str(shown[-1].id) if len(found) > limit else None))


def _name(known: dict[UUID, people.Person], user_id: UUID | None) -> str | None:
    person = None if user_id is None else known.get(user_id)
    return None if person is None else person.name
