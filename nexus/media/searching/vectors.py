"""The vectors of items: how they are written, which set of them is searched, and how another model takes over.

A set is whole when every chunk that should have a vector of its model has one. The newest whole set is the one that is
searched: after a change of the model the old vectors serve until the new ones are all there, and are then removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import (
    BigInteger,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal_column,
    null,
    select,
    update,
)

from nexus.db.chunks import chunks, embedding_progress, indexing, vector_sets, vectors
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.shelves import shelf
from nexus.db.tables import media, one_of
from nexus.db.upserts import upsert, upsert_from
from nexus.media.searching.indexing import UNEMBEDDED_CHUNK
from nexus.states.media import MediaStatus

#: How many requests wait at most, so that those made last are not behind a whole library.
MOST_WAITING = 1000
#: How many vectors of an old set are removed at once.
BATCH = 5000
#: In these an item's own embedding comes first, and makes all the vectors that it lacks.
BEFORE_READY = frozenset({MediaStatus.EXTRACTING, MediaStatus.READY_FOR_READING, MediaStatus.EMBEDDING})
FLOAT_BYTES = 4
TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class Made:
    """The vectors that an item lacked, by chunk, and how many tokens they took."""

    model: str
    vectors: Mapping[UUID, bytes]
    tokens: int


class VectorSet(NamedTuple):
    model: str
    dimension: int
    begun_at: datetime
    whole_at: datetime | None


class SetSize(NamedTuple):
    """A set, and how many vectors it has."""

    model: str
    whole_at: datetime | None
    vectors: int


class EmbeddingProgress(NamedTuple):
    done: int
    total: int


class _Candidate(NamedTuple):
    id: UUID
    user_id: UUID


class _Tally(NamedTuple):
    total: int


_VECTOR = ("media_id", "chunk_id", "model", "vector")
#: A chunk that has gone meanwhile gets no vector.
_WRITE = upsert_from(
    vectors,
    _VECTOR,
    select(*(bindparam(name, type_=vectors.c[name].type) for name in _VECTOR)).where(
        exists(
            select(chunks.c.key).where(
                chunks.c.media_id == bindparam("media_id", type_=vectors.c.media_id.type),
                chunks.c.id == bindparam("chunk_id", type_=vectors.c.chunk_id.type),
            )
        )
    ),
    lambda new: new.on_conflict_do_nothing(),
)
_BEGIN_SET = upsert(
    vector_sets,
    {
        vector_sets.c.model: bindparam("model"),
        vector_sets.c.dimension: bindparam("dimension"),
        vector_sets.c.begun_at: bindparam("now"),
    },
    lambda new: new.on_conflict_do_nothing(),
)
_SETS = Query(select(vector_sets).order_by(vector_sets.c.begun_at, vector_sets.c.model), VectorSet)
_SIZES = Query(
    select(
        vector_sets.c.model,
        vector_sets.c.whole_at,
        select(func.count())
        .where(vectors.c.model == vector_sets.c.model)
        .correlate(vector_sets)
        .scalar_subquery()
        .label("vectors"),
    ).order_by(vector_sets.c.begun_at, vector_sets.c.model),
    SetSize,
)
_WHOLE = Statement(
    update(vector_sets)
    .where(vector_sets.c.model == bindparam("model"), vector_sets.c.whole_at.is_(null()))
    .values(whole_at=bindparam("now", type_=vector_sets.c.whole_at.type))
)
_REQUESTED = exists(select(indexing.c.id).where(indexing.c.media_id == media.c.id).correlate(media))
_LACKS = exists(
    select(chunks.c.key).where(chunks.c.media_id == media.c.id, UNEMBEDDED_CHUNK).correlate(media)
)
_READERS = select(func.count()).where(shelf.c.media_id == media.c.id).correlate(media).scalar_subquery()
#: What most people have opened comes first, then what was added last.
_LACKING = Query(
    select(media.c.id, media.c.created_by_user_id.label("user_id"))
    .where(~one_of(media.c.processing_status, BEFORE_READY), ~_REQUESTED, _LACKS)
    .order_by(_READERS.desc(), media.c.created_at.desc(), media.c.id)
    .limit(bindparam("most")),
    _Candidate,
)
_WAITING = Query(
    select(cast(func.count(), BigInteger).label("total"))
    .select_from(indexing)
    .where(indexing.c.error_code.is_(null())),
    _Tally,
)
_ASK = upsert(
    indexing,
    {indexing.c[name]: bindparam(name) for name in ("id", "media_id", "user_id", "run_after")},
    lambda new: new.on_conflict_do_nothing(),
)
_OLD = select(vectors.c.seq).where(vectors.c.model != bindparam("model")).limit(literal_column(str(BATCH)))
_DROP_OLD = Statement(delete(vectors).where(vectors.c.seq.in_(_OLD)))
_DROP_OLD_SETS = Statement(delete(vector_sets).where(vector_sets.c.model != bindparam("model")))
_PROGRESS = Query(
    select(embedding_progress.c.done, embedding_progress.c.total).where(
        embedding_progress.c.media_id == bindparam("media_id")
    ),
    EmbeddingProgress,
)
_TELL = upsert(
    embedding_progress,
    {column: bindparam(column.name) for column in embedding_progress.c},
    lambda new: new.on_conflict_do_update(
        index_elements=[embedding_progress.c.media_id],
        set_={name: new.excluded[name] for name in ("attempt", "done", "total")},
    ),
)
_NO_PROGRESS = Statement(
    delete(embedding_progress).where(embedding_progress.c.media_id == bindparam("media_id"))
)


def write_vectors(session: Session, media_id: UUID, made: Made) -> None:
    """Write the vectors of an item's chunks, each once."""
    session.run_many(
        _WRITE,
        [
            {"media_id": media_id, "chunk_id": chunk_id, "model": made.model, "vector": vector}
            for chunk_id, vector in made.vectors.items()
        ],
    )
    for vector in list(made.vectors.values())[:1]:
        dimension = len(vector) // FLOAT_BYTES
        session.run(_BEGIN_SET, model=made.model, dimension=dimension, now=session.now)


def vector_sets_of(session: Session) -> list[VectorSet]:
    """Return all sets, the oldest first."""
    return session.all(_SETS)


def dimension_of(session: Session, model: str) -> int | None:
    """Return how many numbers the vectors of a model have; None if it has made none."""
    return next((one.dimension for one in session.all(_SETS) if one.model == model), None)


def searched_set(sets: Sequence[VectorSet], present: str) -> VectorSet | None:
    """Return the set that is searched: that of the present model if it is whole, else the newest whole one, else that
    of the present model as far as it has come."""
    own = next((one for one in sets if one.model == present), None)
    if own is not None and own.whole_at is not None:
        return own
    whole = [one for one in sets if one.whole_at is not None]
    return max(whole, key=lambda one: one.begun_at) if whole else own


def set_sizes(session: Session) -> list[SetSize]:
    return session.all(_SIZES)


def progress_of(session: Session, media_id: UUID) -> EmbeddingProgress | None:
    """Return how far the embedding of an item has come, if that takes a while."""
    return session.first(_PROGRESS, media_id=media_id)


def tell_progress(session: Session, media_id: UUID, attempt: int, done: int, total: int) -> None:
    session.run(_TELL, media_id=media_id, attempt=attempt, done=done, total=total)


def end_progress(session: Session, media_id: UUID) -> None:
    session.run(_NO_PROGRESS, media_id=media_id)


def keep_sets(sessions: Sessions, model: str) -> None:
    """Ask for the vectors that the present model's set lacks; when it is whole, remove the other sets."""
    with sessions.read() as session:
        found = {one.model: one for one in session.all(_SETS)}
    present = found.get(model)
    if present is None or present.whole_at is None:
        _complete(sessions, model)
    elif len(found) > 1:
        _drop_others(sessions, model)


def _complete(sessions: Sessions, model: str) -> None:
    with sessions.begin() as session:
        (waiting,) = session.all(_WAITING)
        room = MOST_WAITING - waiting.total
        lacking = session.all(_LACKING, model=model, most=room) if room > 0 else []
        for place, one in enumerate(lacking):
            after = session.now + place * TICK
            session.run(_ASK, id=uuid4(), media_id=one.id, user_id=one.user_id, run_after=after)
        if not lacking and not waiting.total:
            session.run(_WHOLE, model=model, now=session.now)


def _drop_others(sessions: Sessions, model: str) -> None:
    """In several transactions: a set can have millions of vectors."""
    removed = 1
    while removed:
        with sessions.begin() as session:
            removed = session.run(_DROP_OLD, model=model)
    with sessions.begin() as session:
        session.run(_DROP_OLD_SETS, model=model)
