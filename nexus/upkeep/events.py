"""The stream of transitions that a viewer may see, in an order that loses nothing.

On PostgreSQL transactions commit out of order, so a reader stays below the oldest one still running, and the order is
(transaction, row). On SQLite writers stand in line, and the row's number is the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, literal_column, or_, select, tuple_

from nexus.db.editorial import jobs, stories
from nexus.db.moves import constant
from nexus.db.session import Row, Session, Statement
from nexus.db.tables import history, library_media, memberships
from nexus.editorial import queries
from nexus.errors import InvalidRequest
from nexus.states.job import JOB
from nexus.states.media import MEDIA
from nexus.states.story import STORY

BATCH = 500
_SETTLED: ColumnElement[int] = literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint")


@dataclass(frozen=True, order=True)
class Place:
    """A place in the stream; as text it is the id of a server-sent event."""

    tx: int
    id: int

    def __str__(self) -> str:
        return f"{self.tx}-{self.id}"

    @classmethod
    def parse(cls, text: str) -> Place:
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


def _next(*settled: ColumnElement[bool]) -> Statement:
    return Statement(
        select(history).where(_AFTER, _VISIBLE, *settled).order_by(*_ORDER).limit(bindparam("most"))
    )


def _last(*settled: ColumnElement[bool]) -> Statement:
    newest: Select[Any] = select(history.c.tx, history.c.id).where(*settled)
    return Statement(newest.order_by(history.c.tx.desc(), history.c.id.desc()).limit(1))


_NEXT = {True: _next(), False: _next(history.c.tx < _SETTLED)}
_LAST = {True: _last(), False: _last(history.c.tx < _SETTLED)}


def after(session: Session, viewer: UUID, place: Place, most: int = BATCH) -> list[Row]:
    """The next transitions that the viewer may see."""
    return session.all(_NEXT[session.is_sqlite], viewer=viewer, tx=place.tx, id=place.id, most=most)


def last(session: Session) -> Place:
    """The newest settled place, whoever may see it: when it has not moved, nobody has anything to read."""
    row = session.first(_LAST[session.is_sqlite])
    return Place(0, 0) if row is None else Place(row.tx, row.id)
