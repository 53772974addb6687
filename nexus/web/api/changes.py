"""What people do to an item besides its transitions: they enter its text, refresh it, share it."""

from __future__ import annotations

from uuid import UUID

from fastapi import Response
from pydantic import Field

from nexus.media import versions
from nexus.media.changes import Change, list_changes
from nexus.web.api.schemas import Body, CapabilitiesOut
from nexus.web.http.context import Nexus, Viewer
from nexus.web.http.envelope import Answer, Data, Moment, answer, answers
from nexus.web.http.routing import Router

#: What an entered text and its title may take: a character has up to six bytes in JSON.
MOST_TEXT = 6 * (versions.TEXT_LENGTH + versions.TITLE_LENGTH) + 1024
router = Router(most_body=MOST_TEXT, prefix="/media", tags=["media"])


class TextBody(Body):
    """The text of a page, as somebody pasted it."""

    title: str = Field("", examples=["An article"])
    text: str


class EnteredOut(Answer):
    media_id: UUID
    revision: int = Field(description="The number of the new version, which only you can read.")


class ChangeOut(Answer):
    event: str = Field(
        examples=["refresh"], description="`refresh`, `enter_text`, `item_shared` or `item_removed`."
    )
    at: Moment
    actor: str = Field(description="`you`, or `someone` else.")
    actor_name: str | None = Field(
        None, description="The name of someone who shares a library with you that holds the item."
    )
    library: str | None = Field(None, description="The library that it was added to or removed from.")

    @classmethod
    def of(cls, change: Change, viewer: UUID) -> ChangeOut:
        actor = "you" if change.user_id == viewer else "someone"
        return cls.model_validate({**change._asdict(), "actor": actor, "actor_name": change.name})


class ChangeList(Answer):
    items: list[ChangeOut]
    capabilities: CapabilitiesOut


@router.post(
    "/{media_id}/text", responses=answers(Data[EnteredOut], 403, 404, 413), summary="Enter its text by hand"
)
def enter_text(nexus: Nexus, viewer: Viewer, media_id: UUID, body: TextBody) -> Response:
    """The text of a page that Nexus can't read becomes a version of your own: nobody else can ever read it."""
    number = versions.enter_own_text(nexus.sessions, media_id, viewer, body.title, body.text)
    return answer(EnteredOut(media_id=media_id, revision=number))


@router.get("/{media_id}/changes", responses=answers(Data[ChangeList], 404), summary="What people did to it")
def get_changes(nexus: Nexus, viewer: Viewer, media_id: UUID) -> Response:
    """Refreshes that found a new text, entered texts, and which of your libraries it was put into; the oldest first.

    What others did is listed only for libraries that you share with them.
    """
    with nexus.sessions.read() as session:
        found = list_changes(session, media_id, viewer)
    items = [ChangeOut.of(change, viewer) for change in found.items]
    return answer(ChangeList.model_validate({"items": items, "capabilities": found.capabilities}))
