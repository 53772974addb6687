"""The text of an item as rows: its fragments, what the document says about itself, its pictures and its file.

Each text is written whole, in the transaction that makes its item readable or replaces an earlier text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import JSON, Integer, Select, bindparam, cast, delete, func, insert, literal_column, select

from nexus.db.bulk import Rows
from nexus.db.rows import DocumentRow, FileRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import assets, chunks, documents, fragments, insert_all, media_file
from nexus.extract import Extraction, Fetched, Fragment
from nexus.extract.chunks import split_chunks

#: For each byte of UTF-8: a space, the beginning of a character of a script that has none between words, or neither.
_BYTES = bytes(
    32 if chr(byte).isspace() and byte < 0x80 else ord("d") if 0xE3 <= byte <= 0xE9 else ord("a")
    for byte in range(256)
)


@dataclass(frozen=True)
class Kept:
    """A file that an address answered with, which is in the store already."""

    storage_path: str
    content_type: str
    size_bytes: int
    filename: str


@dataclass(frozen=True)
class Found:
    """A text, and where it comes from: the package that read it, what was fetched for it, and the file it kept."""

    extraction: Extraction
    extractor: str
    fetched: Fetched | None = None
    kept: Kept | None = None


@dataclass(frozen=True)
class Cut:
    """What is known about a text before it is written: its number of words, and its chunks as JSON.

    Each chunk is the position of its fragment, and where in that it begins and ends.
    """

    words: int
    chunks: str

    @classmethod
    def of(cls, extraction: Extraction) -> Cut:
        spans = (
            (place, *span)
            for place, one in enumerate(extraction.fragments)
            for span in split_chunks(one.text)
        )
        return cls(_words_of(extraction), json.dumps(list(spans)))


@dataclass(frozen=True)
class Readable:
    """A text as the rows that it becomes, and the attempt that found it. Made before a transaction is open."""

    media_id: UUID
    attempt: int
    title: str | None
    fragments: list[dict[str, Any]]
    document: dict[str, Any]
    assets: list[dict[str, Any]]
    kept: Kept | None

    @classmethod
    def of(cls, media_id: UUID, attempt: int, found: Found, words: int | None = None) -> Readable:
        """Make the rows. The words are counted unless the caller has done so."""
        text, fetched = found.extraction, found.fetched
        document = {
            "media_id": media_id,
            "extractor": found.extractor,
            "words": _words_of(text) if words is None else words,
            "outline": json.dumps([[line.title, line.level, line.anchor] for line in text.outline]),
            "fetched_url": fetched and fetched.url,
            "etag": fetched and fetched.etag,
            "last_modified": fetched and fetched.last_modified,
            **vars(text.facts),
        }
        pictures = [{"media_id": media_id, **vars(asset)} for asset in text.assets]
        rows = list(_fragment_rows(media_id, text.fragments))
        return cls(media_id, attempt, text.title, rows, document, pictures, found.kept)

    @property
    def is_all_text(self) -> bool:
        """Whether `text_rows` are all of it: it has no pictures and no file."""
        return not self.assets and self.kept is None

    @property
    def size(self) -> int:
        """The characters of its text and html."""
        return sum(len(row["text"]) + len(row["html"] or "") for row in self.fragments)


#: What every text is made of.
TEXT = (fragments, documents)
_WRITE = {table: Statement(insert_all(table)) for table in (*TEXT, assets, media_file)}
_CHUNK = ["media_id", "position", "fragment", "start", "end"]
_MEDIA_ID = bindparam("media_id", type_=chunks.c.media_id.type)


def _chunks_sqlite() -> Select[Any]:
    each = func.json_each(bindparam("chunks")).table_valued("key", "value")
    numbers = [func.json_extract(each.c.value, literal_column(f"'$[{place}]'")) for place in range(3)]
    return select(_MEDIA_ID, each.c.key, *numbers)


def _chunks_postgres() -> Select[Any]:
    listed = func.json_array_elements(cast(bindparam("chunks"), JSON))
    each = listed.table_valued("value", with_ordinality="place").render_derived()
    numbers = [cast(each.c.value.op("->>")(literal_column(str(place))), Integer) for place in range(3)]
    return select(_MEDIA_ID, each.c.place - literal_column("1"), *numbers)


#: A book has thousands of chunks: the database takes them apart faster than they are bound one by one.
_WRITE_CHUNKS = Statement(
    insert(chunks).from_select(_CHUNK, _chunks_sqlite()),
    on_postgres=insert(chunks).from_select(_CHUNK, _chunks_postgres()),
)
_OF_MEDIA = {
    table: Statement(delete(table).where(table.c.media_id == bindparam("media_id")))
    for table in (*TEXT, assets, chunks)
}
_DROP_FILE = Statement(delete(media_file).where(media_file.c.media_id == bindparam("media_id")))
_FILE = Query(select(media_file).where(media_file.c.media_id == bindparam("media_id")), FileRow)
_DOCUMENT = Query(select(documents).where(documents.c.media_id == bindparam("media_id")), DocumentRow)


def text_rows(ready: Sequence[Readable], now: datetime, revision: int = 1) -> Rows:
    """Return the rows that every text has, by table, for `BulkMove`."""
    written = {"revision": revision, "written_at": now}
    return {
        fragments: [row for one in ready for row in one.fragments],
        documents: [one.document | written for one in ready],
    }


def write_rest(session: Session, ready: Sequence[Readable]) -> None:
    """Write what only some texts have: pictures, and the files that they were read from."""
    session.run_many(_WRITE[assets], [asset for one in ready for asset in one.assets])
    keep_files(session, {one.media_id: one.kept for one in ready if one.kept is not None})


def replace(session: Session, ready: Readable) -> int:
    """Write a text in place of the present one; return the number of its revision."""
    present = read(session, ready.media_id)
    drop(session, ready.media_id)
    revision = 1 if present is None else present.revision + 1
    for table, rows in text_rows([ready], session.now, revision).items():
        session.run_many(_WRITE[table], rows)
    write_rest(session, [ready])
    return revision


def drop(session: Session, media_id: UUID) -> None:
    """Delete an item's text, with its chunks and pictures."""
    for statement in _OF_MEDIA.values():
        session.run(statement, media_id=media_id)


def write_chunks(session: Session, cuts: Mapping[UUID, Cut]) -> None:
    """Write the chunks of several items."""
    rows = [{"media_id": media_id, "chunks": cut.chunks} for media_id, cut in cuts.items()]
    session.run_many(_WRITE_CHUNKS, rows)


def keep_files(session: Session, kept: Mapping[UUID, Kept]) -> None:
    """Make each file the file of its item, in place of an earlier one."""
    session.run_many(_DROP_FILE, [{"media_id": media_id} for media_id in kept])
    session.run_many(
        _WRITE[media_file], [{"media_id": media_id, **vars(file)} for media_id, file in kept.items()]
    )


def drop_file(session: Session, media_id: UUID) -> None:
    """Forget an item's file; the object stays in the store."""
    session.run(_DROP_FILE, media_id=media_id)


def read(session: Session, media_id: UUID) -> DocumentRow | None:
    """Return what is known about an item's text; None if it has none, or one from before documents were kept."""
    return session.first(_DOCUMENT, media_id=media_id)


def file_of(session: Session, media_id: UUID) -> FileRow | None:
    """Return an item's file, if it has one."""
    return session.first(_FILE, media_id=media_id)


def count_words(text: str) -> int:
    """Count what stands between spaces; in scripts without them, one word for every two characters.

    Bytes are counted: with regular expressions it would take as long as a good part of the extraction.
    """
    shape = f" {text}".encode(errors="replace").translate(_BYTES)
    return shape.count(b" a") + (shape.count(b"d") + 1) // 2


def _words_of(extraction: Extraction) -> int:
    return sum(count_words(fragment.text) for fragment in extraction.fragments)


def _fragment_rows(media_id: UUID, pieces: tuple[Fragment, ...]) -> Iterator[dict[str, Any]]:
    """Ids are made from the text, with a number for texts that occur several times.

    Fragments without any text are left out, but the others keep their positions, because the outline refers to them.
    """
    seen: Counter[str] = Counter()
    for position, piece in enumerate(pieces):
        if piece.text.strip() or piece.html:
            seen[piece.text] += 1
            name = uuid5(media_id, f"{seen[piece.text]} {piece.text}")
            yield {"media_id": media_id, "position": position, "id": name, **vars(piece)}
