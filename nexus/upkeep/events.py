"""The stream of transitions that a viewer may see, in an order in which none is missed.

PostgreSQL commits transactions out of order, so readers stop before the oldest one that is still running, and events
are ordered by (transaction, row). SQLite has one writer at a time, so the row's number is the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, literal_column, or_, select, tuple_

from nexus.db.editorial import jobs, stories
from nexus.db.moves import constant
from nexus.db.rows import HistoryRow
from nexus.db.session import Query, Session
from nexus.db.tables import history, library_media, memberships
from nexus.editorial import queries
from nexus.errors import InvalidRequest
from nexus.states.job import JOB
from nexus.states.media import MEDIA
from nexus.states.story import STORY

BATCH = 500
_SETTLED: ColumnElement[int] = literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint")


class _Newest(NamedTuple):
    tx: int
    id: int


@dataclass(frozen=True, order=True)
class StreamPlace:
    """A place in the stream. Its text is the id of a server-sent event."""

    tx: int
    id: int

    def __str__(self) -> str:
        return f"{self.tx}-{self.id}"

    @classmethod
    def parse(cls, text: str) -> StreamPlace:
        """Raises InvalidRequest for anything that `str` does not make."""
        tx, _, number = text.partition("-")
        if not (tx.isascii() and tx.isdigit() and number.isascii() and number.isdigit()):
            raise InvalidRequest("This Last-Event-ID is not one that Nexus gave out. Connect without it.")
        place = cls(int(tx), int(number))
        if max(place.tx, place.id) >= 2**63:
            raise InvalidRequest("This Last-Event-ID is not one that Nexus gave out. Connect without it.")
        return place


_OF_MEDIA = exists(
    select(library_media.c.media_id)
    .join(memberships, memberships.c.library_id == library_media.c.library_id)
    .where(library_media.c.media_id == history.c.subject_id, memberships.c.user_id == bindparam("viewer"))
    .correlate(history)
)
_OF_JOB = exists(
    select(jobs.c.id).where(jobs.c.id == history.c.subject_id, queries.VISIBLE).correlate(history)
)
_OF_STORY = exists(
    select(stories.c.id)
    .join(jobs, jobs.c.id == stories.c.job_id)
    .where(stories.c.id == history.c.subject_id, queries.VISIBLE)
    .correlate(history)
)
_VISIBLE = or_(
    and_(history.c.subject == constant(MEDIA.name), _OF_MEDIA),
    and_(history.c.subject == constant(JOB.name), _OF_JOB),
    and_(history.c.subject == constant(STORY.name), _OF_STORY),
)
_AFTER = tuple_(history.c.tx, history.c.id) > tuple_(
    bindparam("tx", type_=history.c.tx.type), bindparam("id", type_=history.c.id.type)
)
_ORDER = (history.c.tx, history.c.id)


def _next(*settled: ColumnElement[bool]) -> Query[HistoryRow]:
    wanted = select(history).where(_AFTER, _VISIBLE, *settled)
    return Query(wanted.order_by(*_ORDER).limit(bindparam("most")), HistoryRow)


def _last(*settled: ColumnElement[bool]) -> Query[_Newest]:
    newest: Select[Any] = select(history.c.tx, history.c.id).where(*settled)
    return Query(newest.order_by(history.c.tx.desc(), history.c.id.desc()).limit(1), _Newest)


_NEXT = {True: _next(), False: _next(history.c.tx < _SETTLED)}
_LAST = {True: _last(), False: _last(history.c.tx < _SETTLED)}


def events_after(session: Session, viewer: UUID, place: StreamPlace, most: int = BATCH) -> list[HistoryRow]:
    """Return the next transitions that the viewer may see."""
    return session.all(_NEXT[session.is_sqlite], viewer=viewer, tx=place.tx, id=place.id, most=most)


def newest_place(session: Session) -> StreamPlace:
    """Return the end of the stream of all viewers: while it stays the same, nobody has anything new to read."""
    row = session.first(_LAST[session.is_sqlite])
    return StreamPlace(0, 0) if row is None else StreamPlace(row.tx, row.id)
