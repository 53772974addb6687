"""The stream of transitions that viewers may see, in an order in which none is missed.

PostgreSQL commits transactions out of order, so readers stop before the oldest one of this database that is still
running, and events are ordered by (transaction, row). SQLite has one writer at a time, so the row's number is the
order.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    Uuid,
    and_,
    any_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    tuple_,
    union,
    update,
)
from sqlalchemy.engine import Dialect

from nexus.db.editorial import jobs, stories
from nexus.db.feeds import subscriptions
from nexus.db.moves import constant
from nexus.db.rows import HistoryRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import history, library_media, media, memberships
from nexus.editorial import queries
from nexus.errors import InvalidRequest
from nexus.libraries.access import Role
from nexus.media.history import knowable, known
from nexus.states.job import JOB
from nexus.states.media import MEDIA
from nexus.states.story import STORY
from nexus.states.subscription import SUBSCRIPTION

BATCH = 500
#: How much of the history is searched for one viewer's events before their own items are asked instead.
STRETCH = 1000
#: If fewer than one in this many rows of a stretch are the viewer's, going by their own items is shorter.
SPARSE = 20
#: No transaction on SQLite has a number.
_ALL = 2**63 - 1
#: The oldest open transaction of this database, or the next one. What `pg_snapshot_xmin` says is that of all databases
#: of the server, so a transaction in another database would hold our events back. The list of sessions is read after
#: the snapshot, and only in another statement the history: a transaction that commits in between is not skipped.
#: Sessions show the last 32 bits of a number.
_OLDEST_OPEN = """
SELECT next - coalesce(max(age) FILTER (WHERE age < 2147483648), 0) AS settled
FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next) AS here
LEFT JOIN LATERAL (
    SELECT (next - opened.xid::text::bigint) & 4294967295 AS age
    FROM (
        SELECT backend_xid AS xid FROM pg_stat_activity
        WHERE datname = current_database() AND backend_xid IS NOT NULL
        UNION ALL
        SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
    ) AS opened
) AS ages ON true
GROUP BY next
"""


class _Settled(NamedTuple):
    settled: int


class _Place(NamedTuple):
    tx: int
    id: int


class _SeenRow(NamedTuple):
    """A row of history and somebody who may see it; once with None if nobody who was asked for may."""

    entry: HistoryRow
    viewer: UUID | None


@dataclass(frozen=True, order=True)
class StreamPlace:
    """A place in the stream. Its text is the id of a server-sent event."""

    tx: int
    id: int

    def __str__(self) -> str:
        return f"{self.tx}-{self.id}"

    @classmethod
    def of(cls, row: HistoryRow | _Place) -> StreamPlace:
        return cls(row.tx, row.id)

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


@dataclass(frozen=True)
class NextEvents:
    """A viewer's next events, and the place to go on from, which is also after everything that they may not see."""

    rows: list[HistoryRow]
    place: StreamPlace


@dataclass(frozen=True)
class News:
    """What is new for each of several viewers, and the place to go on from."""

    rows: dict[UUID, list[HistoryRow]]
    place: StreamPlace
    #: Whether more may be waiting.
    is_full: bool


def _visible(rows: FromClause) -> ColumnElement[bool]:
    """Whether the viewer may see a row of history."""
    of_job = exists(select(jobs.c.id).where(jobs.c.id == rows.c.subject_id, queries.VISIBLE).correlate(rows))
    of_story = exists(
        select(stories.c.id)
        .join(jobs, jobs.c.id == stories.c.job_id)
        .where(stories.c.id == rows.c.subject_id, queries.VISIBLE)
        .correlate(rows)
    )
    of_subscription = exists(
        select(subscriptions.c.id)
        .join(memberships, memberships.c.library_id == subscriptions.c.library_id)
        .where(
            subscriptions.c.id == rows.c.subject_id,
            memberships.c.user_id == bindparam("viewer", type_=Uuid()),
        )
        .correlate(rows)
    )
    return or_(
        and_(rows.c.subject == constant(MEDIA.name), known(rows)),
        and_(rows.c.subject == constant(SUBSCRIPTION.name), of_subscription),
        and_(rows.c.subject == constant(JOB.name), of_job),
        and_(rows.c.subject == constant(STORY.name), of_story),
    )


_here = tuple_(history.c.tx, history.c.id)
_ORDER = (history.c.tx, history.c.id)


def _at(prefix: str) -> Any:
    return tuple_(
        bindparam(f"{prefix}tx", type_=history.c.tx.type), bindparam(f"{prefix}id", type_=history.c.id.type)
    )


_AFTER = _here > _at("")
_BETWEEN = and_(_AFTER, _here <= _at("until_"))
_SETTLED = history.c.tx < bindparam("settled", type_=BigInteger)
_OPEN = Query(text(_OLDEST_OPEN).columns(settled=BigInteger), _Settled)
_NEWEST = Query(
    select(*_ORDER).where(_SETTLED).order_by(history.c.tx.desc(), history.c.id.desc()).limit(1), _Place
)
#: Where a stretch ends, if there is so much.
_STRETCH = Query(
    select(*_ORDER).where(_BETWEEN).order_by(*_ORDER).offset(bindparam("length", type_=BigInteger)).limit(1),
    _Place,
)
#: A number that no transaction of this server has had yet is another server's.
_DISOWN = Statement(
    update(history)
    .values(tx=literal_column("0"))
    .where(history.c.tx >= literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint"))
)


def _administers(viewer: ColumnElement[bool]) -> ColumnElement[bool]:
    return and_(
        memberships.c.library_id == jobs.c.library_id,
        memberships.c.role == constant(Role.ADMIN.value),
        viewer,
    )


def _stretch() -> Query[HistoryRow]:
    """A viewer's events in the next stretch of everybody's history. It is read first: no plan can read more of it."""
    part = (
        select(history)
        .where(_BETWEEN)
        .order_by(*_ORDER)
        .limit(bindparam("length", type_=BigInteger))
        .cte("part")
        .prefix_with("MATERIALIZED")
    )
    seen = select(part).where(_visible(part)).order_by(part.c.tx, part.c.id)
    return Query(seen.limit(bindparam("most")), HistoryRow)


def _own(dialect: Dialect) -> Select[Any]:
    """A viewer's next events by way of what they may see. It costs the same however long the history is.

    Both databases would rather walk the whole history than look up each item, so they are given a list of ids and a
    place that no index knows.
    """
    viewer = bindparam("viewer", type_=Uuid())
    own_jobs = union(
        select(jobs.c.id).where(jobs.c.created_by_user_id == viewer),
        select(jobs.c.id).join(memberships, _administers(memberships.c.user_id == viewer)),
    ).cte("own_jobs")
    own = union(
        select(library_media.c.media_id.label("id"))
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .where(memberships.c.user_id == viewer),
        select(subscriptions.c.id)
        .join(memberships, memberships.c.library_id == subscriptions.c.library_id)
        .where(memberships.c.user_id == viewer),
        select(own_jobs.c.id),
        select(stories.c.id).join(own_jobs, own_jobs.c.id == stories.c.job_id),
    ).cte("own")
    ids = select(own.c.id)
    zero: ColumnElement[int] = literal_column("0", BigInteger)
    here = tuple_(history.c.tx + zero, history.c.id + zero)
    is_own = (
        history.c.subject_id.in_(ids)
        if dialect.name == "sqlite"
        else history.c.subject_id == any_(func.array(ids.scalar_subquery(), type_=ARRAY(Uuid())))
    )
    found = (
        select(history)
        .where(is_own, here > _at(""), here <= _at("until_"))
        .cte("found")
        .prefix_with("MATERIALIZED")
    )
    may_know = or_(found.c.subject != constant(MEDIA.name), known(found))
    return select(found).where(may_know).order_by(found.c.tx, found.c.id).limit(bindparam("most"))


def _look_for_all(dialect: Dialect) -> Select[Any]:
    """The next rows of the history, each with those of the viewers who may see it."""
    rows = (
        select(history)
        .where(_AFTER, _SETTLED)
        .order_by(*_ORDER)
        .limit(bindparam("most"))
        .cte("page")
        .prefix_with("MATERIALIZED")
    )

    def among(column: ColumnElement[Any]) -> ColumnElement[bool]:
        if dialect.name == "sqlite":
            given = func.json_each(bindparam("viewers")).table_valued("value")
            return column.in_(select(given.c.value))
        return column == any_(bindparam("viewers", type_=ARRAY(Uuid())))

    def of(subject: str) -> ColumnElement[bool]:
        return rows.c.subject == constant(subject)

    creator, member = jobs.c.created_by_user_id, memberships.c.user_id
    of_subscription = and_(of(SUBSCRIPTION.name), subscriptions.c.id == rows.c.subject_id)
    of_job = and_(of(JOB.name), jobs.c.id == rows.c.subject_id)
    of_story = and_(of(STORY.name), stories.c.id == rows.c.subject_id)
    job_of_story = jobs.c.id == stories.c.job_id
    admin = _administers(among(member))
    seen = union(
        select(rows.c.id, member.label("viewer"))
        .select_from(rows)
        .join(library_media, and_(of(MEDIA.name), library_media.c.media_id == rows.c.subject_id))
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .join(media, media.c.id == library_media.c.media_id)
        .where(among(member), knowable(rows, member)),
        select(rows.c.id, member)
        .select_from(rows)
        .join(subscriptions, of_subscription)
        .join(memberships, memberships.c.library_id == subscriptions.c.library_id)
        .where(among(member)),
        select(rows.c.id, creator).select_from(rows).join(jobs, of_job).where(among(creator)),
        select(rows.c.id, member).select_from(rows).join(jobs, of_job).join(memberships, admin),
        select(rows.c.id, creator)
        .select_from(rows)
        .join(stories, of_story)
        .join(jobs, job_of_story)
        .where(among(creator)),
        select(rows.c.id, member)
        .select_from(rows)
        .join(stories, of_story)
        .join(jobs, job_of_story)
        .join(memberships, admin),
    ).subquery("seen")
    return select(rows, seen.c.viewer).outerjoin(seen, seen.c.id == rows.c.id).order_by(rows.c.tx, rows.c.id)


_OWN = Query(_own, HistoryRow)
_NEXT = _stretch()
_LOOK = Query(_look_for_all, _SeenRow)


def look(session: Session, viewers: Collection[UUID], place: StreamPlace) -> News:
    """Return what is new for any of these viewers, by one query for all of them."""
    given = json.dumps([viewer.hex for viewer in viewers]) if session.is_sqlite else list(viewers)
    found = session.all(
        _LOOK, viewers=given, tx=place.tx, id=place.id, settled=_settled_before(session), most=BATCH
    )
    rows: dict[UUID, list[HistoryRow]] = {}
    for row in found:
        if row.viewer is not None:
            rows.setdefault(row.viewer, []).append(row.entry)
    length = len({row.entry.id for row in found})
    return News(rows, StreamPlace.of(found[-1].entry) if found else place, length == BATCH)


def events_after(
    session: Session, viewer: UUID, place: StreamPlace, until: StreamPlace, most: int = BATCH
) -> NextEvents:
    """Return the next transitions that the viewer may see, up to a place that everybody's transactions have passed.

    The history of all is read for a stretch. If hardly anything there is the viewer's, their own items are asked.
    """
    between = {"tx": place.tx, "id": place.id, "until_tx": until.tx, "until_id": until.id}
    end = session.first(_STRETCH, length=STRETCH - 1, **between)
    rows = session.all(_NEXT, viewer=viewer, length=STRETCH, most=most, **between)
    reached = until if end is None else StreamPlace.of(end)
    if end is not None and len(rows) < most and len(rows) * SPARSE < STRETCH:
        rows, reached = session.all(_OWN, viewer=viewer, most=most, **between), until
    return NextEvents(rows, StreamPlace.of(rows[-1]) if len(rows) == most else reached)


def newest_place(session: Session) -> StreamPlace:
    """Return the end of the stream of all viewers."""
    row = session.first(_NEWEST, settled=_settled_before(session))
    return StreamPlace(0, 0) if row is None else StreamPlace.of(row)


def disown_restored(session: Session) -> int:
    """Mark the rows of a dump from another server as old, and return how many there were.

    Otherwise each would be sent as news when this server's transactions reach its number.
    """
    return 0 if session.is_sqlite else session.run(_DISOWN)


def _settled_before(session: Session) -> int:
    if session.is_sqlite:
        return _ALL
    (row,) = session.all(_OPEN)
    return row.settled
