"""Finds chunks by what they mean: those whose vectors are nearest to the question's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select
from sqlalchemy.engine import Dialect

from nexus.db.chunks import ABOUT, chunks, vectors
from nexus.db.session import Query, Session
from nexus.search.codes import SignCodes
from nexus.search.scope import PASSAGE, Passage, Scope, Shape, is_readable, listed, numbered, per_shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How many chunks a search by meaning returns.
WANTED = 200
#: How many candidates of the codes are compared exactly.
COMPARED = 600
#: As long as `dot` for each text is cheap: the vectors of so many chunks say what an item means.
MOST_OF_ITEM = 200


class MeaningHit(NamedTuple):
    passage: Passage
    #: How near it is, between -1 and 1.
    cosine: float


class _VectorRow(NamedTuple):
    passage: Passage
    seq: int
    vector: bytes


class _VectorNumber(NamedTuple):
    seq: int


class _Bytes(NamedTuple):
    vector: bytes


_OWN = (chunks.c.media_id == vectors.c.media_id) & (chunks.c.id == vectors.c.chunk_id)
_OF_MODEL = vectors.c.model == bindparam("model")
_ALIVE = Query(lambda dialect: select(vectors.c.seq).where(numbered(dialect, vectors.c.seq)), _VectorNumber)


@per_shape
def _by_number(shape: Shape) -> Query[_VectorRow]:
    def clause(dialect: Dialect) -> Any:
        near = vectors.alias("near")
        items = select(near.c.media_id).where(numbered(dialect, near.c.seq))
        return (
            select(*PASSAGE, vectors.c.seq, vectors.c.vector)
            .select_from(vectors)
            .join(chunks, _OWN)
            .where(numbered(dialect, vectors.c.seq), is_readable(shape, items))
        )

    return Query(clause, _VectorRow)


@per_shape
def _by_chunk(shape: Shape) -> Query[_VectorRow]:
    def clause(dialect: Dialect) -> Any:
        named = chunks.alias("named")
        items = select(named.c.media_id).where(numbered(dialect, named.c.key))
        return (
            select(*PASSAGE, vectors.c.seq, vectors.c.vector)
            .select_from(chunks)
            .join(vectors, _OWN & _OF_MODEL)
            .where(numbered(dialect, chunks.c.key), is_readable(shape, items))
        )

    return Query(clause, _VectorRow)


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
    session: Session, scope: Scope, codes: SignCodes, model: str, vector: bytes
) -> list[MeaningHit] | None:
    """Return the chunks in scope that are nearest to a vector, nearest first. None if there are too many vectors for
    the memory: then compare what was found by words."""
    if not codes.refresh(session, model):
        return None
    numbers = codes.nearest(model, vector, COMPARED)
    hits = _compared(session, scope, vector, numbers)
    if len(numbers) < COMPARED:
        _forget_gone(session, codes, model, numbers)
    elif len(hits) < WANTED:  # much of what is near is not for this viewer
        _forget_gone(session, codes, model, numbers)
        theirs = [row.seq for row in session.all(_in_scope(scope.shape), model=model, **scope.values)]
        hits = _compared(session, scope, vector, codes.nearest(model, vector, COMPARED, theirs))
    return hits[:WANTED]


def compare_passages(
    session: Session, scope: Scope, model: str, vector: bytes, passages: Sequence[Passage]
) -> list[MeaningHit]:
    """Return how near these passages are, nearest first: those that are still in scope and have a vector."""
    keys = listed(session, (passage.key for passage in passages))
    rows = session.all(_by_chunk(scope.shape), numbers=keys, model=model, **scope.values)
    return _hits(rows, vector)


def item_vector(session: Session, scope: Scope, model: str, media_id: UUID) -> bytes | None:
    """Return what an item means as a whole: the middle of its chunks. None if it has no vectors yet."""
    rows = session.all(_of_item(scope.shape), model=model, item=media_id, **scope.values)
    if not rows:
        return None
    import numpy as np  # noqa: PLC0415 slow to load, and not everybody searches by meaning

    middle = _matrix([row.vector for row in rows]).sum(axis=0)
    return bytes((middle / (np.linalg.norm(middle) or 1.0)).astype("<f4").tobytes())


def _compared(session: Session, scope: Scope, vector: bytes, numbers: Sequence[int]) -> list[MeaningHit]:
    rows = session.all(_by_number(scope.shape), numbers=listed(session, numbers), **scope.values)
    return _hits(rows, vector)


def _hits(rows: Sequence[_VectorRow], vector: bytes) -> list[MeaningHit]:
    """A text that an item repeats is found once, where it is first."""
    first: dict[int, _VectorRow] = {}
    for row in sorted(rows, key=lambda row: row.passage.position):
        if len(row.vector) == len(vector):
            first.setdefault(row.seq, row)
    if not first:
        return []
    near = _matrix([row.vector for row in first.values()]) @ _matrix([vector])[0]
    hits = map(MeaningHit, (row.passage for row in first.values()), near.tolist())
    return sorted(hits, key=lambda hit: (-hit.cosine, hit.passage.media_id, hit.passage.position))


def _matrix(given: Sequence[bytes]) -> NDArray[np.float32]:
    import numpy as np  # noqa: PLC0415

    return np.frombuffer(b"".join(given), "<f4").reshape(len(given), -1)


def _forget_gone(session: Session, codes: SignCodes, model: str, numbers: Sequence[int]) -> None:
    alive = {row.seq for row in session.all(_ALIVE, numbers=listed(session, numbers))}
    if gone := set(numbers) - alive:
        codes.forget(model, gone)
