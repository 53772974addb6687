"""Revisions: every text of an item, with its pictures and its file, as rows that are written once and never changed.

A text is written whole, in the transaction that makes its item readable or moves libraries to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import (
    Integer,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)

from nexus.db.bulk import Rows
from nexus.db.chunks import chunks
from nexus.db.pictures import pictures
from nexus.db.recordings import timings
from nexus.db.rows import FileRow, RevisionRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import (
    assets,
    fragments,
    insert_all,
    library_media,
    media,
    media_file,
    revisions,
)
from nexus.errors import NotFound
from nexus.media.recordings.speech import end_speech
from nexus.media.searching.indexing import request_indexing, use_languages
from nexus.media.texts import Kept, Readable


class _RevisionNumber(NamedTuple):
    number: int


class _LastNumber(NamedTuple):
    last_revision: int


#: What every text is made of, in the order in which it is written.
TEXT = (revisions, fragments, chunks)
_WRITE = {table: Statement(insert_all(table)) for table in (*TEXT, timings, assets, media_file)}
#: Fetched in the turn of the user who asked for the text, or of the item's creator.
_WRITE_PICTURE = Statement(
    insert(pictures).from_select(
        ["id", "media_id", "revision", "place", "source", "user_id", "asked_at", "run_after"],
        select(
            *(
                bindparam(name, type_=pictures.c[name].type)
                for name in ("id", "media_id", "revision", "place", "source")
            ),
            func.coalesce(bindparam("user_id", type_=pictures.c.user_id.type), media.c.created_by_user_id),
            bindparam("now", type_=pictures.c.asked_at.type),
            bindparam("now", type_=pictures.c.run_after.type),
        ).where(media.c.id == bindparam("media_id")),
    )
)
_OF_NUMBER = (revisions.c.media_id == bindparam("media_id"), revisions.c.number == bindparam("number"))
_ONE = Query(select(revisions).where(*_OF_NUMBER), RevisionRow)
_SAME = Query(
    select(revisions.c.number).where(
        revisions.c.media_id == bindparam("media_id"),
        revisions.c.content_hash == bindparam("content_hash"),
        revisions.c.private_to.is_not_distinct_from(bindparam("owner", type_=revisions.c.private_to.type)),
    ),
    _RevisionNumber,
)
_SEEN = Statement(
    update(revisions)
    .where(*_OF_NUMBER)
    .values(
        seen_at=bindparam("now"),
        seen_by=bindparam("seen_by"),
        etag=bindparam("etag"),
        last_modified=bindparam("last_modified"),
    )
)
_RESERVE = Query(
    update(media)
    .where(media.c.id == bindparam("media_id"))
    .values(last_revision=media.c.last_revision + literal_column("1"))
    .returning(media.c.last_revision),
    _LastNumber,
)
_IS_NEWEST = Statement(
    update(media).where(media.c.id == bindparam("media_id")).values(newest_revision=bindparam("number"))
)
_PUBLIC = (revisions.c.media_id == bindparam("media_id"), revisions.c.private_to.is_(None))
_IS_PINNED = exists(
    select(library_media.c.media_id)
    .where(library_media.c.media_id == revisions.c.media_id, library_media.c.revision == revisions.c.number)
    .correlate(revisions)
)
_DROP_TEXT = Statement(delete(revisions).where(*_PUBLIC, ~_IS_PINNED))
_HAS_NO_BASE = Statement(
    update(media)
    .where(media.c.id == bindparam("media_id"))
    .values(
        revision=literal_column("0"),
        newest_revision=func.coalesce(
            select(func.max(revisions.c.number)).where(*_PUBLIC).scalar_subquery(), literal_column("0")
        ),
    )
)
_FILE = Query(
    select(media_file)
    .where(
        media_file.c.media_id == bindparam("media_id"),
        media_file.c.revision.in_([literal_column("0"), bindparam("number", type_=Integer)]),
    )
    .order_by(media_file.c.revision),
    FileRow,
)
_DROP_FILE = Statement(
    delete(media_file).where(
        media_file.c.media_id == bindparam("media_id"), media_file.c.revision == bindparam("revision")
    )
)
_HAS_TEXT = exists(
    select(revisions.c.media_id)
    .where(revisions.c.media_id == media_file.c.media_id, revisions.c.number == media_file.c.revision)
    .correlate(media_file)
)
_DROP_FETCHED = Statement(
    delete(media_file).where(
        media_file.c.media_id == bindparam("media_id"),
        media_file.c.revision > literal_column("0"),
        ~_HAS_TEXT,
    )
)
_IS_BASE = Statement(
    update(media).where(media.c.id == bindparam("media_id")).values(revision=bindparam("number"))
)


def text_rows(ready: Sequence[Readable], now: datetime) -> Rows:
    """Return the rows that every text has, by table and without their number, for `BulkMove`."""
    written = {"written_at": now, "seen_at": now}
    return {
        revisions: [one.revision | written for one in ready],
        fragments: [row for one in ready for row in one.fragments],
        chunks: [row for one in ready for row in one.chunks],
    }


def write_rest(session: Session, ready: Sequence[tuple[int, Readable]], made_by: UUID | None = None) -> None:
    """Write what only some texts have, each with its number: a language of its own, times, pictures, and the file that
    it was read from.

    Pictures with an address are fetched later, in the turn of the user who asked for the text.
    """
    use_languages(session, (one.revision["language"] for _, one in ready))
    inside = [{**asset, "revision": number} for number, one in ready for asset in one.assets]
    session.run_many(_WRITE[assets], inside)
    spoken = [{**row, "revision": number} for number, one in ready for row in one.timings]
    session.run_many(_WRITE[timings], spoken)
    end_speech(session, [one.media_id for _, one in ready if _ends_speech(one)])
    asked = {"user_id": made_by, "now": session.now}
    elsewhere = [{**row, **asked, "revision": number} for number, one in ready for row in one.pictures]
    session.run_many(_WRITE_PICTURE, elsewhere)
    keep_files(session, {one.media_id: one.kept for _, one in ready if one.kept is not None})


def add_revision(session: Session, ready: Readable, made_by: UUID) -> int:
    """Write a text as a new revision, or find the same one; return its number. The caller holds the item's row.

    A text that everybody may read is found among those alone, and a user's own text among their own.
    """
    media_id, owner = ready.media_id, ready.revision["private_to"]
    same = session.first(_SAME, media_id=media_id, content_hash=ready.revision["content_hash"], owner=owner)
    if same is not None:
        tags = {name: ready.revision[name] for name in ("seen_by", "etag", "last_modified")}
        session.run(_SEEN, media_id=media_id, number=same.number, now=session.now, **tags)
        end_speech(session, [media_id] if _ends_speech(ready) else [])
        return same.number
    number = ready.reserved or reserve_number(session, media_id)
    for table, rows in text_rows([ready], session.now).items():
        numbered = {"number": number, "made_by": made_by} if table is revisions else {"revision": number}
        session.run_many(_WRITE[table], [{**row, **numbered} for row in rows])
    write_rest(session, [(number, ready)], made_by)
    request_indexing(session, media_id, made_by)
    if owner is None:
        session.run(_IS_NEWEST, media_id=media_id, number=number)
    return number


def _ends_speech(ready: Readable) -> bool:
    """Whether nobody needs what was heard of a recording any more. A text of one user leaves the others waiting."""
    return bool(ready.timings) and ready.revision["private_to"] is None


def reserve_number(session: Session, media_id: UUID) -> int:
    """Return a number that no revision of the item has or will have. Raises NotFound if the item is gone."""
    found = session.first(_RESERVE, media_id=media_id)
    if found is None:
        raise NotFound
    return found.last_revision


def drop_base(session: Session, media_id: UUID) -> None:
    """Delete the text of an item that is to be extracted again, unless a library holds it by its number."""
    session.run(_DROP_TEXT, media_id=media_id)
    session.run(_HAS_NO_BASE, media_id=media_id)


def keep_files(session: Session, kept: Mapping[UUID, Kept]) -> None:
    """Give each item its file, for the revision that it was read for."""
    rows = [{"media_id": media_id, **vars(file)} for media_id, file in kept.items()]
    session.run_many(_DROP_FILE, [{name: row[name] for name in ("media_id", "revision")} for row in rows])
    session.run_many(_WRITE[media_file], rows)


def keep_file_alone(session: Session, media_id: UUID, kept: Kept) -> None:
    """Give a failed item the file that no text could be read from."""
    keep_files(session, {media_id: kept})
    session.run(_IS_BASE, media_id=media_id, number=kept.revision)


def drop_upload(session: Session, media_id: UUID) -> None:
    """Forget the uploaded file of an item; the object stays in the store."""
    session.run(_DROP_FILE, media_id=media_id, revision=0)


def drop_fetched(session: Session, media_id: UUID) -> None:
    """Forget the fetched files of an item that belong to no text; the objects stay in the store."""
    session.run(_DROP_FETCHED, media_id=media_id)


def read_revision(session: Session, media_id: UUID, number: int) -> RevisionRow | None:
    """Return one revision of an item. The caller checks who may read it."""
    return session.first(_ONE, media_id=media_id, number=number)


def file_of(session: Session, media_id: UUID, number: int) -> FileRow | None:
    """Return the file of a revision: the uploaded one, or the one that was fetched for it."""
    return session.first(_FILE, media_id=media_id, number=number)
