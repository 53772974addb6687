"""What a reader of an item is shown: its text a passage at a time, the facts about it, its pictures and pages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, Integer, and_, bindparam, func, literal_column, select

from nexus.db.rows import FileRow, RefreshRow, RevisionRow
from nexus.db.session import Query, Session
from nexus.db.tables import assets, fragments, media
from nexus.errors import NotFound, NotReady
from nexus.extract import Heading
from nexus.media import illustrations, refresh, revisions, versions
from nexus.media.files import CONTENT_TYPES, Files
from nexus.media.fragments import first_within
from nexus.media.illustrations import Illustrations
from nexus.media.queries import WORDS_PER_MINUTE, View
from nexus.states.capabilities import Capabilities
from nexus.states.media import Kind
from nexus.storage import ObjectMissing, StorageError

#: How many fragments are shown at a time, and how many characters of them: chapters of a book are long.
PIECES = 50
CHARACTERS = 300_000


class Piece(NamedTuple):
    """A fragment, to be shown."""

    position: int
    text: str
    html: str | None


class _Html(NamedTuple):
    html: str | None


class _Inside(NamedTuple):
    """A picture from inside a file, which is in the database."""

    content_type: str
    data: bytes


class _Length(NamedTuple):
    """How many characters of a fragment are shown."""

    position: int
    length: int


class _Ends(NamedTuple):
    first: int | None
    last: int | None


_TAG, _CAPTION = re.compile(r"<[^<>]*>"), re.compile(r"<figcaption\b[^<>]*>(.*?)</figcaption>", re.DOTALL)
_CAPTIONED = Query(
    select(func.coalesce(fragments.c.html, literal_column("''")).label("html"))
    .join(media, media.c.id == fragments.c.media_id)
    .where(
        fragments.c.media_id == bindparam("media_id"),
        fragments.c.revision == func.coalesce(bindparam("number", type_=Integer), media.c.revision),
        fragments.c.html.like("%<figcaption%"),
    )
    .order_by(fragments.c.position)
    .limit(literal_column(str(PIECES))),
    _Html,
)
_OF_TEXT = and_(fragments.c.media_id == bindparam("media_id"), fragments.c.revision == bindparam("number"))
_PLACE = bindparam("place", type_=BigInteger)
_LENGTHS = select(
    fragments.c.position,
    func.length(func.coalesce(fragments.c.html, fragments.c.text), type_=Integer).label("length"),
).limit(bindparam("most"))
_ONWARD = Query(
    _LENGTHS.where(_OF_TEXT, fragments.c.position >= _PLACE).order_by(fragments.c.position), _Length
)
_BEFORE = Query(
    _LENGTHS.where(_OF_TEXT, fragments.c.position < _PLACE).order_by(fragments.c.position.desc()), _Length
)
_PIECES = Query(
    select(fragments.c.position, fragments.c.text, fragments.c.html)
    .where(
        _OF_TEXT,
        fragments.c.position >= bindparam("first", type_=BigInteger),
        fragments.c.position <= bindparam("last", type_=BigInteger),
    )
    .order_by(fragments.c.position),
    Piece,
)
_ENDS = Query(
    select(func.min(fragments.c.position).label("first"), func.max(fragments.c.position).label("last")).where(
        _OF_TEXT
    ),
    _Ends,
)
_INSIDE = Query(
    select(assets.c.content_type, assets.c.data).where(
        assets.c.media_id == bindparam("media_id"),
        assets.c.revision == bindparam("number"),
        assets.c.name == bindparam("name"),
    ),
    _Inside,
)


@dataclass(frozen=True)
class Picture:
    """A picture in a text: its bytes, or where they are in the store."""

    content_type: str
    size_bytes: int
    data: bytes | None
    storage_path: str


@dataclass(frozen=True)
class Document:
    """The text of an item as a whole."""

    row: RevisionRow
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
    #: The pictures of the whole text, if the passage has any, or is the first.
    pictures: Illustrations = field(default_factory=dict)

    def holds(self, position: int) -> bool:
        """Whether a position is within the passage."""
        return bool(self.fragments) and (
            self.fragments[0].position <= position <= self.fragments[-1].position
        )


def document(session: Session, found: View, viewer: UUID) -> Document:
    """Return what is known about the text that a view shows. Raises NotFound if it shows none."""
    row = revisions.read_revision(session, found.row.id, found.row.revision)
    if row is None:
        raise NotFound("There is no text to read yet. Check its state.")
    outline = [Heading(*line) for line in json.loads(row.outline)]
    minutes = max(1, round(row.words / WORDS_PER_MINUTE))
    return Document(row, found.capabilities, outline, minutes, refresh.present(session, found.row.id, viewer))


def onward(session: Session, media_id: UUID, number: int, start: int = 0) -> Passage:
    """Return the passage of a revision from a position on, or the last one if the text ends before that.

    The caller has checked that the viewer may read this revision.
    """
    rows = _shown(session, _ONWARD, media_id, number, start)
    if not rows:
        return before(session, media_id, number, start)
    return _passage(session, media_id, number, rows)


def before(session: Session, media_id: UUID, number: int, end: int) -> Passage:
    """Return the passage that ends right before a position. The caller has checked as for `onward`."""
    return _passage(session, media_id, number, _shown(session, _BEFORE, media_id, number, end))


def beginning(session: Session, media_id: UUID, number: int, most: int) -> str:
    """Return up to `most` characters from the start of a revision, with a blank line between fragments."""
    parts: list[str] = []
    length, place = 0, 0
    while rows := _shown(session, _ONWARD, media_id, number, place):
        parts += [row.text.strip() for row in rows]
        length += sum(len(row.text) for row in rows)
        place = rows[-1].position + 1
        if length > most:
            break
    return "\n\n".join(filter(None, parts))[:most].strip()


def captions(session: Session, media_id: UUID, number: int | None) -> tuple[str, ...]:
    """Return the captions of the figures in a revision, or in the one that the item shows to newcomers."""
    rows = session.all(_CAPTIONED, media_id=media_id, number=number)
    found = (text for row in rows for text in _CAPTION.findall(row.html or ""))
    return tuple(unescape(_TAG.sub("", text)) for text in found)


def whole_text(session: Session, media_id: UUID, viewer: UUID, number: int) -> str:
    """Return the text of a version of an item, as one. Raises NotFound if the viewer may not read it."""
    versions.find_version(session, media_id, viewer, number)
    return beginning(session, media_id, number, sys.maxsize)


def find_picture(session: Session, found: View, name: str) -> Picture:
    """Return a picture in the text that a view shows. Raises NotFound."""
    media_id, number = found.row.id, found.row.revision
    inside = session.first(_INSIDE, media_id=media_id, number=number, name=name)
    if inside is not None:
        return Picture(inside.content_type, len(inside.data), bytes(inside.data), "")
    kept = illustrations.find_stored_picture(session, media_id, number, name)
    if kept is None:
        raise NotFound
    return Picture(kept.content_type, kept.size_bytes, None, kept.storage_path)


def pdf_of_revision(session: Session, media_id: UUID, number: int) -> FileRow | None:
    """Return the file of a revision if it is a PDF."""
    file = revisions.file_of(session, media_id, number)
    return file if file is not None and file.content_type == CONTENT_TYPES[Kind.PDF] else None


def picture_bytes(files: Files, found: Picture) -> Iterator[bytes]:
    """Return the bytes of a picture as `stream` does."""
    return stream(files, found.storage_path) if found.data is None else iter([found.data])


def stream(files: Files, path: str) -> Iterator[bytes]:
    """Return the bytes of a file, a piece at a time. Raises NotFound or NotReady before the first of them."""
    chunks = files.storage.stream(path)
    try:
        first = next(chunks, b"")
    except ObjectMissing as error:
        raise NotFound("Its file is gone.") from error
    except StorageError as error:
        raise NotReady("The file store can't be reached. Try again in a moment.") from error
    return chain([first], chunks)


def _shown(session: Session, query: Query[_Length], media_id: UUID, number: int, place: int) -> list[Piece]:
    """The fragments next to a place that are shown at a time, in reading order. No others are read."""
    lengths = session.all(query, media_id=media_id, number=number, place=place, most=PIECES)
    if not lengths:
        return []
    enough = first_within(lengths, (row.length for row in lengths), CHARACTERS)
    positions = sorted(row.position for row in enough)
    return session.all(_PIECES, media_id=media_id, number=number, first=positions[0], last=positions[-1])


def _passage(session: Session, media_id: UUID, number: int, rows: list[Piece]) -> Passage:
    if not rows:
        return Passage([], None, None)
    (ends,) = session.all(_ENDS, media_id=media_id, number=number)
    first, last = rows[0].position, rows[-1].position
    has_pictures = first == ends.first or any(illustrations.has_images(row.html) for row in rows)
    return Passage(
        rows,
        before=first if first != ends.first else None,
        after=last + 1 if last != ends.last else None,
        pictures=illustrations.illustrations_of(session, media_id, number) if has_pictures else {},
    )
