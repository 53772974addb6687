"""Follows the vectors of a model in the database. A look misses none that was committed before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import BigInteger, bindparam, column, func, select, text

from nexus.db.chunks import vectors
from nexus.db.session import Query, Session

#: How many vectors are read at a time.
BATCH = 4096


class StoredVector(NamedTuple):
    seq: int
    tx: int
    vector: bytes


class _LatestSeq(NamedTuple):
    number: int


class _Written(NamedTuple):
    seq: int
    tx: int


_OF_MODEL = vectors.c.model == bindparam("model")
_STORED = (vectors.c.seq, vectors.c.tx, vectors.c.vector)
_AFTER = Query(
    select(*_STORED)
    .where(vectors.c.seq > bindparam("last", type_=BigInteger), _OF_MODEL)
    .order_by(vectors.c.seq)
    .limit(BATCH),
    StoredVector,
)
_OLDEST_RUNNING = Query(
    text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS number").columns(
        column("number", BigInteger)
    ),
    _LatestSeq,
)
_SINCE = Query(
    select(vectors.c.seq, vectors.c.tx).where(
        vectors.c.tx >= bindparam("since", type_=BigInteger), _OF_MODEL
    ),
    _Written,
)
_NAMED = Query(
    select(*_STORED).where(vectors.c.seq == func.any(bindparam("numbers")), _OF_MODEL), StoredVector
)


@dataclass
class VectorPlace:
    """How far a process has read the vectors of a model."""

    #: The greatest number of the first reading; on SQLite, of every reading.
    last: int = 0
    #: On PostgreSQL: the oldest transaction that was running when the last reading began, and what is known of it and
    #: of later ones.
    since: int | None = None
    recent: set[int] = field(default_factory=set)
    is_first: bool = True


def followed_vectors(session: Session, model: str, place: VectorPlace) -> Iterator[list[StoredVector]]:
    """Read, in batches, what was committed since the place where the last reading ended, and move the place.

    SQLite has one writer at a time, so numbers grow as they are committed. On PostgreSQL a smaller number may be
    committed after a greater one, so the numbers of transactions that were still running at the last look are compared.
    """
    if session.is_sqlite:
        yield from _in_order(session, model, place)
    elif place.is_first:
        place.since = place.since or _oldest_running(session)
        yield from _in_order(session, model, place)
        place.is_first = False
    else:
        yield from _written_since(session, model, place)


def _in_order(session: Session, model: str, place: VectorPlace) -> Iterator[list[StoredVector]]:
    while batch := session.all(_AFTER, model=model, last=place.last):
        yield batch
        place.last = batch[-1].seq
        if place.since is not None:
            place.recent.update(row.seq for row in batch if row.tx >= place.since)


def _written_since(session: Session, model: str, place: VectorPlace) -> Iterator[list[StoredVector]]:
    oldest = _oldest_running(session)
    written = session.all(_SINCE, model=model, since=place.since)
    unknown = sorted(row.seq for row in written if row.seq not in place.recent)
    for start in range(0, len(unknown), BATCH):
        numbers = unknown[start : start + BATCH]
        if found := session.all(_NAMED, model=model, numbers=numbers):
            yield found
        place.recent.update(numbers)
    place.since, place.recent = oldest, {row.seq for row in written if row.tx >= oldest}


def _oldest_running(session: Session) -> int:
    row = session.first(_OLDEST_RUNNING)
    return row.number if row else 0
