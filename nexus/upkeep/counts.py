"""How many items there are, by status, and how many of them can be found by what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import BigInteger, Integer, cast, func, literal_column, select

from nexus.db.chunks import indexing
from nexus.db.session import Query, Session
from nexus.db.tables import media, one_of
from nexus.media.searching.vectors import SetSize, set_sizes
from nexus.states.media import PUBLISHED, MediaStatus, Stage


class _StatusCount(NamedTuple):
    processing_status: MediaStatus
    total: int


class _Unindexed(NamedTuple):
    waiting: int
    given_up: int
    failed: int


@dataclass(frozen=True)
class IndexedCount:
    """How much can be found by what it means, and what is on the way."""

    #: Items with a text, and those of them whose text has vectors.
    readable: int
    ready: int
    #: Requests for texts of items that are ready in other respects.
    waiting: int
    failed: int
    sets: list[SetSize]


class _Alive(NamedTuple):
    one: int


_COUNTED = select(media.c.processing_status, func.count().label("total")).group_by(media.c.processing_status)
_BY_STATUS = Query(_COUNTED, _StatusCount)
_FAILED_TO_EMBED = (
    select(cast(func.count(), BigInteger))
    .select_from(media)
    .where(
        one_of(media.c.processing_status, {MediaStatus.FAILED}), one_of(media.c.failure_stage, {Stage.EMBED})
    )
    .scalar_subquery()
)
_UNINDEXED = Query(
    select(
        cast(func.count(), BigInteger).label("waiting"),
        cast(func.count(indexing.c.error_code), BigInteger).label("given_up"),
        _FAILED_TO_EMBED.label("failed"),
    ).select_from(indexing),
    _Unindexed,
)
_ALIVE = Query(select(literal_column("1", Integer).label("one")), _Alive)


def by_status(session: Session) -> dict[MediaStatus, int]:
    """Count all items."""
    return _counted(session.all(_BY_STATUS))


def _counted(rows: list[_StatusCount]) -> dict[MediaStatus, int]:
    counted = {row.processing_status: row.total for row in rows}
    return {status: counted.get(status, 0) for status in MediaStatus}


def count_indexed(session: Session) -> IndexedCount:
    counted = by_status(session)
    (rest,) = session.all(_UNINDEXED)
    return IndexedCount(
        readable=sum(counted[status] for status in PUBLISHED) + rest.failed,
        ready=counted[MediaStatus.READY],
        waiting=rest.waiting - rest.given_up,
        failed=rest.failed + rest.given_up,
        sets=set_sizes(session),
    )


def is_alive(session: Session) -> bool:
    """Whether the database answers. Raises what its driver raises if it does not."""
    return session.first(_ALIVE) is not None
