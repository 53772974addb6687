"""A text as it is shown: some of it at a time, from any place in it. And the pages of the PDF that it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from sqlalchemy import BigInteger, bindparam, func, select

from nexus.db.session import Row, Session, Statement
from nexus.db.tables import fragments, media_file
from nexus.errors import NotFound, NotReady
from nexus.media.files import CONTENT_TYPES, Files
from nexus.states.media import Kind
from nexus.storage import ObjectMissing, StorageError

#: How many fragments are shown at a time, and how many letters of them: chapters of a book are long.
PIECES = 50
LETTERS = 300_000

_OF_MEDIA = fragments.c.media_id == bindparam("media_id")
_PLACE = bindparam("place", type_=BigInteger)
_SHOWN = select(fragments.c.position, fragments.c.text, fragments.c.html).limit(bindparam("most"))
_ONWARD = Statement(_SHOWN.where(_OF_MEDIA, fragments.c.position >= _PLACE).order_by(fragments.c.position))
_BEFORE = Statement(
    _SHOWN.where(_OF_MEDIA, fragments.c.position < _PLACE).order_by(fragments.c.position.desc())
)
_ENDS = Statement(
    select(func.min(fragments.c.position).label("first"), func.max(fragments.c.position).label("last")).where(
        _OF_MEDIA
    )
)
_PDF = Statement(
    select(media_file).where(
        media_file.c.media_id == bindparam("media_id"), media_file.c.content_type == CONTENT_TYPES[Kind.PDF]
    )
)


@dataclass(frozen=True)
class Passage:
    """Some fragments, in reading order. None of the places is given where the text ends there."""

    fragments: list[Row]
    #: Where the text before this ends.
    before: int | None
    #: Where it goes on.
    after: int | None

    def holds(self, position: int) -> bool:
        """Whether it reaches over this place."""
        return bool(self.fragments) and (
            self.fragments[0].position <= position <= self.fragments[-1].position
        )


def onward(session: Session, media_id: UUID, start: int = 0) -> Passage:
    """From a place on, for a caller who may read it; where nothing comes any more, the last of it."""
    rows = session.all(_ONWARD, media_id=media_id, place=start, most=PIECES)
    return _passage(session, media_id, _as_many(rows)) if rows else before(session, media_id, start)


def before(session: Session, media_id: UUID, end: int) -> Passage:
    """As much as ends right before a place."""
    rows = session.all(_BEFORE, media_id=media_id, place=end, most=PIECES)
    return _passage(session, media_id, _as_many(rows)[::-1])


def beginning(session: Session, media_id: UUID, letters: int) -> str:
    """Its text from the start on, a blank line between fragments, up to so many letters."""
    parts: list[str] = []
    length, place = 0, 0
    while rows := session.all(_ONWARD, media_id=media_id, place=place, most=PIECES):
        parts += [row.text.strip() for row in rows]
        length += sum(len(row.text) for row in rows)
        place = rows[-1].position + 1
        if length > letters:
            break
    return "\n\n".join(filter(None, parts))[:letters].strip()


def pdf(session: Session, media_id: UUID) -> Row | None:
    """The file of a media, where it is a PDF."""
    return session.first(_PDF, media_id=media_id)


def stream(files: Files, file: Row) -> Iterator[bytes]:
    """Its bytes, a piece at a time. Raises NotFound or NotReady before the first of them."""
    chunks = files.storage.stream(file.storage_path)
    try:
        first = next(chunks, b"")
    except ObjectMissing as error:
        raise NotFound("Its file is gone.") from error
    except StorageError as error:
        raise NotReady("The file store can't be reached. Try again in a moment.") from error
    return chain([first], chunks)


def _as_many(rows: list[Row]) -> list[Row]:
    """The first of them, up to the most letters that are shown at a time, and always one."""
    letters = 0
    for count, row in enumerate(rows):
        letters += len(row.html or row.text)
        if count and letters > LETTERS:
            return rows[:count]
    return rows


def _passage(session: Session, media_id: UUID, rows: list[Row]) -> Passage:
    if not rows:
        return Passage([], None, None)
    ends: Row = session.first(_ENDS, media_id=media_id)
    first, last = rows[0].position, rows[-1].position
    return Passage(
        rows,
        before=first if first > ends.first else None,
        after=last + 1 if last < ends.last else None,
    )
