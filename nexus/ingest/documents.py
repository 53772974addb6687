"""The text of a readable media as rows: fragments, what the document says of itself, its pictures, its file.

Written whole, in the transaction that makes the media readable or swaps a new revision in.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import bindparam, delete, select

from nexus.db.bulk import Rows
from nexus.db.session import Row, Session, Statement
from nexus.db.tables import assets, chunks, documents, fragments, insert_all, media_file
from nexus.extract import Extraction, Fetched, Fragment

#: Scripts written without spaces between words: there, a word is counted for every two characters.
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Kept:
    """A file that an address answered with, in the store already."""

    storage_path: str
    content_type: str
    size_bytes: int
    filename: str


@dataclass(frozen=True)
class Origin:
    """Where a text comes from: who read it, and what was fetched for it."""

    extractor: str
    fetched: Fetched | None = None
    kept: Kept | None = None


@dataclass(frozen=True)
class Readable:
    """A text as the rows that it becomes, and the attempt that it comes from."""

    media_id: UUID
    attempt: int
    title: str | None
    fragments: list[dict[str, Any]]
    document: dict[str, Any]
    assets: list[dict[str, Any]]
    kept: Kept | None

    @classmethod
    def of(cls, media_id: UUID, attempt: int, found: Extraction, origin: Origin) -> Readable:
        return cls(
            media_id,
            attempt,
            found.title,
            list(_fragment_rows(media_id, found.fragments)),
            _document_row(media_id, found, origin),
            [{"media_id": media_id, **vars(asset)} for asset in found.assets],
            origin.kept,
        )

    @property
    def is_all_text(self) -> bool:
        """No pictures and no file: `text_rows` are all there is of it."""
        return not self.assets and self.kept is None

    @property
    def size(self) -> int:
        """Of its text and html, in characters."""
        return sum(len(row["text"]) + len(row["html"] or "") for row in self.fragments)


#: What every text is made of.
TEXT = (fragments, documents)
_WRITE = {table: Statement(insert_all(table)) for table in (*TEXT, assets, chunks, media_file)}
_OF_MEDIA = {
    table: Statement(delete(table).where(table.c.media_id == bindparam("media_id")))
    for table in (*TEXT, assets, chunks)
}
_DROP_FILE = Statement(delete(media_file).where(media_file.c.media_id == bindparam("media_id")))
_FILE = Statement(select(media_file).where(media_file.c.media_id == bindparam("media_id")))
_DOCUMENT = Statement(select(documents).where(documents.c.media_id == bindparam("media_id")))


def text_rows(ready: Sequence[Readable], now: datetime, revision: int = 1) -> Rows:
    written = {"revision": revision, "written_at": now}
    return {
        fragments: [row for one in ready for row in one.fragments],
        documents: [one.document | written for one in ready],
    }


def write_rest(session: Session, ready: Readable) -> None:
    """What belongs to a text beside its rows: pictures, and the file that it was read from."""
    session.run_many(_WRITE[assets], ready.assets)
    if ready.kept is not None:
        keep_file(session, ready.media_id, ready.kept)


def replace(session: Session, ready: Readable) -> int:
    """The new text in place of the one that is there, with the next revision's number."""
    present = read(session, ready.media_id)
    drop(session, ready.media_id)
    revision = 1 if present is None else present.revision + 1
    for table, rows in text_rows([ready], session.now, revision).items():
        session.run_many(_WRITE[table], rows)
    write_rest(session, ready)
    return int(revision)


def drop(session: Session, media_id: UUID) -> None:
    for statement in _OF_MEDIA.values():
        session.run(statement, media_id=media_id)


def write_chunks(session: Session, media_id: UUID, cut: Sequence[tuple[int, int, int]]) -> None:
    """Each the place of its fragment, and where in its text it begins and ends."""
    names = ("fragment", "start", "end")
    rows = [
        {"media_id": media_id, "position": position, **dict(zip(names, chunk, strict=True))}
        for position, chunk in enumerate(cut)
    ]
    session.run_many(_WRITE[chunks], rows)


def keep_file(session: Session, media_id: UUID, kept: Kept) -> None:
    drop_file(session, media_id)
    session.run(_WRITE[media_file], media_id=media_id, **vars(kept))


def drop_file(session: Session, media_id: UUID) -> None:
    session.run(_DROP_FILE, media_id=media_id)


def read(session: Session, media_id: UUID) -> Row | None:
    """None for what is not readable, and for what was read before documents were kept."""
    return session.first(_DOCUMENT, media_id=media_id)


def file_of(session: Session, media_id: UUID) -> Row | None:
    return session.first(_FILE, media_id=media_id)


def count_words(text: str) -> int:
    dense = len(_DENSE.findall(text))
    return (dense + 1) // 2 + len(_WORD.findall(_DENSE.sub(" ", text) if dense else text))


def _document_row(media_id: UUID, found: Extraction, origin: Origin) -> dict[str, Any]:
    return {
        "media_id": media_id,
        "words": sum(count_words(fragment.text) for fragment in found.fragments),
        "outline": json.dumps([[line.title, line.level, line.anchor] for line in found.outline]),
        **vars(found.facts),
        **_origin_row(origin),
    }


def _fragment_rows(media_id: UUID, pieces: tuple[Fragment, ...]) -> Iterator[dict[str, Any]]:
    """Named after what they say, and counted where several say the same; places stay, for the outline names them."""
    seen: Counter[str] = Counter()
    for position, piece in enumerate(pieces):
        if piece.text.strip() or piece.html:
            seen[piece.text] += 1
            name = uuid5(media_id, f"{seen[piece.text]} {piece.text}")
            yield {"media_id": media_id, "position": position, "id": name, **vars(piece)}


def _origin_row(origin: Origin) -> dict[str, Any]:
    fetched = origin.fetched
    return {
        "extractor": origin.extractor,
        "fetched_url": fetched and fetched.url,
        "etag": fetched and fetched.etag,
        "last_modified": fetched and fetched.last_modified,
    }
