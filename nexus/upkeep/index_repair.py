"""Indexes items again if they are not found as they should be: all that the index holds is made from their texts."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import and_, bindparam, delete, exists, func, literal_column, select

from nexus.db.chunks import chunks, vector_sets, vectors
from nexus.db.session import Query, Sessions, Statement
from nexus.db.tables import media
from nexus.media.searching.indexing import cut_uncut, request_indexing
from nexus.media.searching.vectors import FLOAT_BYTES
from nexus.upkeep.promises import search
from nexus.upkeep.word_index import repair_word_index

#: More are found by the next call.
MOST = 100_000


class IndexRepair(NamedTuple):
    """What was repaired."""

    #: How many items wait for their vectors; their words are back already.
    items: int
    #: Whether the index of words was made again.
    words: bool


class _Maker(NamedTuple):
    user_id: UUID


_IS_USABLE = exists(
    select(chunks.c.key)
    .join_from(
        chunks,
        vector_sets,
        and_(
            vector_sets.c.model == vectors.c.model,
            func.length(vectors.c.vector) == vector_sets.c.dimension * literal_column(str(FLOAT_BYTES)),
        ),
    )
    .where(chunks.c.media_id == vectors.c.media_id, chunks.c.id == vectors.c.chunk_id)
    .correlate(vectors)
)
_DROP_UNUSABLE = Statement(delete(vectors).where(vectors.c.media_id == bindparam("media_id"), ~_IS_USABLE))
_DROP_CHUNKS = Statement(delete(chunks).where(chunks.c.media_id == bindparam("media_id")))
_MAKER = Query(
    select(media.c.created_by_user_id.label("user_id"))
    .where(media.c.id == bindparam("media_id"))
    .with_for_update(key_share=True),
    _Maker,
)


def repair_index(sessions: Sessions) -> IndexRepair:
    """Cut texts again that have lost chunks, drop vectors that are of no use, and ask for those that are missing."""
    words = repair_word_index(sessions)
    with sessions.read() as session:
        found = {
            promise: {row.id for row in session.all(promise.offenders, most=MOST)}
            for promise in search.PROMISES
        }
    uncut = found[search.WORDS] | found[search.PLACES]
    items = set().union(*found.values())
    for media_id in sorted(items):
        _index_again(sessions, media_id, recut=media_id in uncut)
    return IndexRepair(len(items), words)


def _index_again(sessions: Sessions, media_id: UUID, *, recut: bool) -> None:
    with sessions.begin() as session:
        maker = session.first(_MAKER, media_id=media_id)
        if recut:
            session.run(_DROP_CHUNKS, media_id=media_id)
        session.run(_DROP_UNUSABLE, media_id=media_id)
        if maker is not None:
            request_indexing(session, media_id, maker.user_id)
    cut_uncut(sessions, media_id)
