"""The text of a readable media as rows: fragments, what the document says of itself, its pictures, its file.

Written whole, in the transaction that makes the media readable or swaps a new revision in.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import bindparam, delete, insert, select

from nexus.db.session import Row, Session, Statement
from nexus.db.tables import assets, documents, fragments, media_file
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


_WRITE_FRAGMENT = Statement(insert(fragments).values({c: bindparam(c.name) for c in fragments.c}))
_WRITE_DOCUMENT = Statement(insert(documents).values({c: bindparam(c.name) for c in documents.c}))
_WRITE_ASSET = Statement(insert(assets).values({c: bindparam(c.name) for c in assets.c}))
_WRITE_FILE = Statement(insert(media_file).values({c: bindparam(c.name) for c in media_file.c}))
_OF_MEDIA = {
    table: Statement(delete(table).where(table.c.media_id == bindparam("media_id")))
    for table in (fragments, documents, assets)
}
_DROP_FILE = Statement(delete(media_file).where(media_file.c.media_id == bindparam("media_id")))
_DOCUMENT = Statement(select(documents).where(documents.c.media_id == bindparam("media_id")))


def write(session: Session, media_id: UUID, found: Extraction, origin: Origin, revision: int = 1) -> None:
    """Everything there is of a text, where nothing of it is there yet."""
    session.run_many(_WRITE_FRAGMENT, list(_fragment_rows(media_id, found.fragments)))
    session.run(
        _WRITE_DOCUMENT,
        media_id=media_id,
        revision=revision,
        words=sum(count_words(fragment.text) for fragment in found.fragments),
        outline=json.dumps([[line.title, line.level, line.anchor] for line in found.outline]),
        written_at=session.now,
        **vars(found.facts),
        **_origin_row(origin),
    )
    session.run_many(_WRITE_ASSET, [{"media_id": media_id, **vars(asset)} for asset in found.assets])
    if origin.kept is not None:
        keep_file(session, media_id, origin.kept)


def replace(session: Session, media_id: UUID, found: Extraction, origin: Origin) -> int:
    """The new text in place of the one that is there, with the next revision's number."""
    present = read(session, media_id)
    drop(session, media_id)
    revision = 1 if present is None else present.revision + 1
    write(session, media_id, found, origin, revision)
    return int(revision)


def drop(session: Session, media_id: UUID) -> None:
    for statement in _OF_MEDIA.values():
        session.run(statement, media_id=media_id)


def keep_file(session: Session, media_id: UUID, kept: Kept) -> None:
    drop_file(session, media_id)
    session.run(_WRITE_FILE, media_id=media_id, **vars(kept))


def drop_file(session: Session, media_id: UUID) -> None:
    session.run(_DROP_FILE, media_id=media_id)


def read(session: Session, media_id: UUID) -> Row | None:
    """None for what is not readable, and for what was read before documents were kept."""
    return session.first(_DOCUMENT, media_id=media_id)


def count_words(text: str) -> int:
    dense = len(_DENSE.findall(text))
    return (dense + 1) // 2 + len(_WORD.findall(_DENSE.sub(" ", text) if dense else text))


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
