"""What a reader of an item is shown: its text a passage at a time, the facts about it, its pictures and pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, bindparam, func, select

from nexus.db.rows import DocumentRow, FileRow, RefreshRow
from nexus.db.session import Query, Session
from nexus.db.tables import assets, fragments, media_file
from nexus.errors import NotFound, NotReady
from nexus.extract import Heading
from nexus.libraries import access
from nexus.media import documents, queries, refresh
from nexus.media.files import CONTENT_TYPES, Files
from nexus.states.capabilities import Capabilities
from nexus.states.media import Kind
from nexus.storage import ObjectMissing, StorageError

WORDS_PER_MINUTE = 230
#: How many fragments are shown at a time, and how many characters of them: chapters of a book are long.
PIECES = 50
CHARACTERS = 300_000


class Piece(NamedTuple):
    """A fragment, to be shown."""

    position: int
    text: str
    html: str | None


class Picture(NamedTuple):
    content_type: str
    data: bytes


class _Ends(NamedTuple):
    first: int | None
    last: int | None


_OF_MEDIA = fragments.c.media_id == bindparam("media_id")
_PLACE = bindparam("place", type_=BigInteger)
_PIECES = select(fragments.c.position, fragments.c.text, fragments.c.html).limit(bindparam("most"))
_ONWARD = Query(
    _PIECES.where(_OF_MEDIA, fragments.c.position >= _PLACE).order_by(fragments.c.position), Piece
)
_BEFORE = Query(
    _PIECES.where(_OF_MEDIA, fragments.c.position < _PLACE).order_by(fragments.c.position.desc()), Piece
)
_ENDS = Query(
    select(func.min(fragments.c.position).label("first"), func.max(fragments.c.position).label("last")).where(
        _OF_MEDIA
    ),
    _Ends,
)
_PICTURE = Query(
    select(assets.c.content_type, assets.c.data).where(
        assets.c.media_id == bindparam("media_id"), assets.c.name == bindparam("name")
    ),
    Picture,
)
_PDF = Query(
    select(media_file).where(
        media_file.c.media_id == bindparam("media_id"), media_file.c.content_type == CONTENT_TYPES[Kind.PDF]
    ),
    FileRow,
)


@dataclass(frozen=True)
class Document:
    """The text of an item as a whole."""

    row: DocumentRow
    capabilities: Capabilities
    outline: list[Heading]
    #: At an even pace, and at least one.
    reading_minutes: int
    #: A refresh that is not done yet, or has failed.
    refresh: RefreshRow | None


@dataclass(frozen=True)
class Passage:
    """Some fragments, in reading order."""

    fragments: list[Piece]
    #: Where the text before this ends; None if there is none.
    before: int | None
    #: Where the text goes on; None at its end.
    after: int | None

    def holds(self, position: int) -> bool:
        """Whether a position is within the passage."""
        return bool(self.fragments) and (
            self.fragments[0].position <= position <= self.fragments[-1].position
        )


def document(session: Session, media_id: UUID, viewer: UUID) -> Document:
    """Return what is known about an item's text. Raises NotFound if the viewer may not read it, or it has none."""
    found = queries.get(session, media_id, viewer)
    row = documents.read(session, media_id)
    if row is None:
        raise NotFound("There is no text to read yet. Look at its state.")
    outline = [Heading(*line) for line in json.loads(row.outline)]
    minutes = max(1, round(row.words / WORDS_PER_MINUTE))
    return Document(row, found.capabilities, outline, minutes, refresh.present(session, media_id))


def onward(session: Session, media_id: UUID, start: int = 0) -> Passage:
    """Return the passage from a position on, or the last one if the text ends before that.

    The caller has checked that the viewer may read the item.
    """
    rows = session.all(_ONWARD, media_id=media_id, place=start, most=PIECES)
    return _passage(session, media_id, _enough(rows)) if rows else before(session, media_id, start)


def before(session: Session, media_id: UUID, end: int) -> Passage:
    """Return the passage that ends right before a position. The caller has checked as for `onward`."""
    rows = session.all(_BEFORE, media_id=media_id, place=end, most=PIECES)
    return _passage(session, media_id, _enough(rows)[::-1])


def beginning(session: Session, media_id: UUID, most: int) -> str:
    """Return up to `most` characters from the start of a text, with a blank line between fragments."""
    parts: list[str] = []
    length, place = 0, 0
    while rows := session.all(_ONWARD, media_id=media_id, place=place, most=PIECES):
        parts += [row.text.strip() for row in rows]
        length += sum(len(row.text) for row in rows)
        place = rows[-1].position + 1
        if length > most:
            break
    return "\n\n".join(filter(None, parts))[:most].strip()


def picture(session: Session, media_id: UUID, viewer: UUID, name: str) -> Picture:
    """Return a picture in an item's text. Raises NotFound, also if the viewer may not read the item."""
    access.require_readable(session, media_id, viewer)
    found = session.first(_PICTURE, media_id=media_id, name=name)
    if found is None:
        raise NotFound
    return found


def pdf(session: Session, media_id: UUID) -> FileRow | None:
    """Return the file of an item if it is a PDF."""
    return session.first(_PDF, media_id=media_id)


def stream(files: Files, file: FileRow) -> Iterator[bytes]:
    """Return the bytes of a file, a piece at a time. Raises NotFound or NotReady before the first of them."""
    chunks = files.storage.stream(file.storage_path)
    try:
        first = next(chunks, b"")
    except ObjectMissing as error:
        raise NotFound("Its file is gone.") from error
    except StorageError as error:
        raise NotReady("The file store can't be reached. Try again in a moment.") from error
    return chain([first], chunks)


def _enough(rows: list[Piece]) -> list[Piece]:
    """As many of the first ones as are shown at a time, and at least one."""
    characters = 0
    for count, row in enumerate(rows):
        characters += len(row.html or row.text)
        if count and characters > CHARACTERS:
            return rows[:count]
    return rows


def _passage(session: Session, media_id: UUID, rows: list[Piece]) -> Passage:
    if not rows:
        return Passage([], None, None)
    (ends,) = session.all(_ENDS, media_id=media_id)
    first, last = rows[0].position, rows[-1].position
    return Passage(
        rows,
        before=first if first != ends.first else None,
        after=last + 1 if last != ends.last else None,
    )
