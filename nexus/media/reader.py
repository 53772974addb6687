"""What a reader wants to know of a text beside the text itself, and the pictures in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import bindparam, select

from nexus.db.session import Row, Session, Statement
from nexus.db.tables import assets
from nexus.errors import NotFound
from nexus.extract import Heading
from nexus.libraries import access
from nexus.media import documents, queries, refresh
from nexus.states.capabilities import Capabilities

WORDS_PER_MINUTE = 230

_ASSET = Statement(
    select(assets.c.content_type, assets.c.data).where(
        assets.c.media_id == bindparam("media_id"), assets.c.name == bindparam("name")
    )
)


@dataclass(frozen=True)
class Document:
    """A readable media's text as a whole."""

    row: Row
    capabilities: Capabilities
    outline: list[Heading]
    #: At an even pace, and never nothing.
    reading_minutes: int
    #: What is asked for and not done yet, or has failed.
    refresh: Row | None


def document(session: Session, media_id: UUID, viewer: UUID) -> Document:
    """Raises NotFound where the viewer may not read it, or there is no text."""
    found = queries.get(session, media_id, viewer)
    row = documents.read(session, media_id)
    if row is None:
        raise NotFound("There is no text to read yet. Look at its state.")
    outline = [Heading(*line) for line in json.loads(row.outline)]
    minutes = max(1, round(row.words / WORDS_PER_MINUTE))
    return Document(row, found.capabilities, outline, minutes, refresh.present(session, media_id))


def asset(session: Session, media_id: UUID, viewer: UUID, name: str) -> Row:
    """A picture of the text, for who may read it. Raises NotFound."""
    access.require_readable(session, media_id, viewer)
    found = session.first(_ASSET, media_id=media_id, name=name)
    if found is None:
        raise NotFound
    return found
