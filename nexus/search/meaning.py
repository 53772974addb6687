"""Finds chunks by what they mean: those whose vectors are nearest to the question's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, bindparam, select
from sqlalchemy.engine import Dialect

from nexus.db.chunks import ABOUT, chunks, vectors
from nexus.db.session import Query, Session
from nexus.search.codes import SignCodes
from nexus.search.scope import (
    CHUNK_PLACE,
    ChunkPlace,
    SearchScope,
    Shape,
    is_readable,
    listed,
    numbered,
    per_shape,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How many chunks a search by meaning returns.
WANTED = 200
#: How many candidates of the codes are compared exactly.
COMPARED = 600
#: How many of an item's chunks say what it means.
MOST_OF_ITEM = 200


#: How many of the nearest are looked up at a time, until enough of them are in scope.
LOOKED_UP = 250


class MeaningHit(NamedTuple):
    passage: ChunkPlace
    #: How near it is, between -1 and 1.
    cosine: float


class _StoredVector(NamedTuple):
    seq: int
    vector: bytes


class _VectorPlace(NamedTuple):
    passage: ChunkPlace
    seq: int


class _VectorNumber(NamedTuple):
    seq: int


class _Bytes(NamedTuple):
    vector: bytes


_OWN = (chunks.c.media_id == vectors.c.media_id) & (chunks.c.id == vectors.c.chunk_id)
_OF_MODEL = vectors.c.model == bindparam("model")
_VECTORS = Query(
    lambda dialect: select(vectors.c.seq, vectors.c.vector).where(numbered(dialect, vectors.c.seq)),
    _StoredVector,
)


@per_shape
def _passages(shape: Shape) -> Query[_VectorPlace]:
    def clause(dialect: Dialect) -> Select[Any]:
        near = vectors.alias("near")
        items = select(near.c.media_id).where(numbered(dialect, near.c.seq))
        return (
            select(*CHUNK_PLACE, vectors.c.seq)
            .select_from(vectors)
            .join(chunks, _OWN)
            .where(numbered(dialect, vectors.c.seq), is_readable(shape, items))
        )

    return Query(clause, _VectorPlace)


@per_shape
def _of_passages(shape: Shape) -> Query[_VectorNumber]:
    def clause(dialect: Dialect) -> Select[Any]:
        named = chunks.alias("named")
        items = select(named.c.media_id).where(numbered(dialect, named.c.key))
        return (
            select(vectors.c.seq)
            .select_from(chunks)
            .join(vectors, _OWN & _OF_MODEL)
            .where(numbered(dialect, chunks.c.key), is_readable(shape, items))
        )

    return Query(clause, _VectorNumber)


@per_shape
def _in_scope(shape: Shape) -> Query[_VectorNumber]:
    found = select(vectors.c.seq).select_from(chunks).join(vectors, _OWN & _OF_MODEL)
    return Query(found.where(is_readable(shape)), _VectorNumber)


@per_shape
def _of_item(shape: Shape) -> Query[_Bytes]:
    found = select(vectors.c.vector).select_from(chunks).join(vectors, _OWN & _OF_MODEL)
    mine = select(bindparam("item", type_=chunks.c.media_id.type))
    return Query(
        found.where(
            chunks.c.media_id == bindparam("item", type_=chunks.c.media_id.type),
            chunks.c.position > ABOUT,
            is_readable(shape, mine),
        )
        .order_by(chunks.c.position)
        .limit(MOST_OF_ITEM),
        _Bytes,
    )


def find_meaning(
    session: Session, scope: SearchScope, codes: SignCodes, model: str, vector: bytes
) -> list[MeaningHit] | None:
    """Return the chunks in scope that are nearest to a vector, nearest first. None if there are too many vectors for
    the memory: then compare what was found by words."""
    if not codes.refresh(session, model, len(vector)):
        return None
    numbers = codes.nearest(model, vector, COMPARED)
    near = _compared(session, vector, numbers)
    if gone := set(numbers) - {number for number, _ in near}:
        codes.forget(model, gone)
    hits = _in_reach(session, scope, near)
    if len(hits) < WANTED and len(numbers) == COMPARED:  # much of what is near is not for this viewer
        theirs = [row.seq for row in session.all(_in_scope(scope.shape), model=model, **scope.values)]
        numbers = codes.nearest(model, vector, COMPARED, theirs)
        hits = _in_reach(session, scope, _compared(session, vector, numbers))
    return hits


def compare_passages(
    session: Session, scope: SearchScope, model: str, vector: bytes, passages: Sequence[ChunkPlace]
) -> list[MeaningHit]:
    """Return how near these passages are, nearest first: those that are still in scope and have a vector."""
    keys = listed(session, (passage.key for passage in passages))
    rows = session.all(_of_passages(scope.shape), numbers=keys, model=model, **scope.values)
    return _in_reach(session, scope, _compared(session, vector, [row.seq for row in rows]))


def item_vector(session: Session, scope: SearchScope, model: str, media_id: UUID) -> bytes | None:
    """Return what an item means as a whole: the middle of its chunks. None if it has no vectors yet."""
    rows = session.all(_of_item(scope.shape), model=model, item=media_id, **scope.values)
    if not rows:
        return None
    import numpy as np  # noqa: PLC0415 slow to load, and not everybody searches by meaning

    fitting = [row.vector for row in rows if len(row.vector) == len(rows[0].vector)]
    middle = _matrix(fitting).sum(axis=0)
    return bytes((middle / (np.linalg.norm(middle) or 1.0)).astype("<f4").tobytes())


def _compared(session: Session, vector: bytes, numbers: Sequence[int]) -> list[tuple[int, float]]:
    """The numbers and cosines of vectors, nearest first. Those that are gone are missing."""
    rows = session.all(_VECTORS, numbers=listed(session, numbers))
    rows = [row for row in rows if len(row.vector) == len(vector)]
    if not rows:
        return []
    near = _matrix([row.vector for row in rows]) @ _matrix([vector])[0]
    found = zip((row.seq for row in rows), near.tolist(), strict=True)
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def _in_reach(session: Session, scope: SearchScope, near: Sequence[tuple[int, float]]) -> list[MeaningHit]:
    """The passages in scope of the nearest vectors. A text that an item repeats is found once, where it is first."""
    hits: list[MeaningHit] = []
    for start in range(0, len(near), LOOKED_UP):
        cosines = dict(near[start : start + LOOKED_UP])
        rows = session.all(_passages(scope.shape), numbers=listed(session, cosines), **scope.values)
        first: dict[int, ChunkPlace] = {}
        for row in sorted(rows, key=lambda row: row.passage.position):
            first.setdefault(row.seq, row.passage)
        hits += [MeaningHit(first[number], cosine) for number, cosine in cosines.items() if number in first]
        if len(hits) >= WANTED:
            break
    return hits[:WANTED]


def _matrix(given: Sequence[bytes]) -> NDArray[np.float32]:
    import numpy as np  # noqa: PLC0415

    return np.frombuffer(b"".join(given), "<f4").reshape(len(given), -1)
