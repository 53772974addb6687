"""The rows of a table that wait for a worker or are held by one, with the same statements for every table.

A table of work has the columns `run_after`, `lease_expires_at` and `tries`. A `Backlog` names its id, fence and user,
and says which rows wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    ScalarSelect,
    Select,
    Table,
    bindparam,
    literal_column,
    select,
    text,
    update,
)

from nexus.db.session import Query, Session, Statement

#: How many users of a lane one look finds. The next look continues after the last of them.
USERS = 16
FIRST = UUID(int=0)


class Lost(NamedTuple):
    """Work whose lease has run out: its worker is gone."""

    id: UUID
    attempt: int
    tries: int


class _UserId(NamedTuple):
    user_id: UUID


class _Id(NamedTuple):
    id: UUID


@dataclass(frozen=True, eq=False)
class Backlog:
    """The work in one table. If it has lanes, they are the values of a column, and each is worked through separately.

    `waiting` is the condition of a partial index on lane, user, run_after and id.
    """

    table: Table
    key: Column[Any]
    fence: Column[Any]
    user: Column[Any]
    waiting: str
    lane: Column[Any] | None = None

    def users(self, session: Session, lane: str | None, start: UUID, before: datetime) -> list[UUID]:
        """Return users with work that was due before a time, beginning at `start`, or at the first if none follow."""
        values = {"lane": lane, "now": before, "most": USERS}
        rows = session.all(self._users, start=start, **values)
        if not rows and start != FIRST:
            rows = session.all(self._users, start=FIRST, **values)
        return [row.user_id for row in rows]

    def due(
        self, session: Session, lane: str | None, user_id: UUID, before: datetime, most: int
    ) -> list[UUID]:
        """Return work of one user that was due before a time, the longest waiting first."""
        values = {"lane": lane, "user_id": user_id, "now": before, "most": most}
        return [row.id for row in session.all(self._due, **values)]

    def pick(self, most: int) -> Select[Any]:
        """Select and lock the ids of a user's due work, for the WHERE of a claim. Rows that others hold are skipped.

        The limit is a literal, because PostgreSQL plans a statement with an unknown limit again at each call.
        """
        return self._oldest().limit(literal_column(str(most))).with_for_update(skip_locked=True)

    def renew(self, session: Session, held: Iterable[tuple[UUID, int]], until: datetime) -> None:
        """Renew the lease of each (id, attempt). Work that was taken over is left alone."""
        rows = [{"row_id": row_id, "fence": attempt, "until": until} for row_id, attempt in held]
        session.run_many(self._renew, rows)

    def lost(self, session: Session, most: int) -> list[Lost]:
        """Return lost work and lock it, so that several sweeps at once share it."""
        return session.all(_lost_rows(self, most), now=session.now)

    @property
    def _in_lane(self) -> list[ColumnElement[bool]]:
        return [] if self.lane is None else [self.lane == bindparam("lane")]

    @property
    def _is_due(self) -> ColumnElement[bool]:
        run_after: Column[Any] = self.table.c.run_after
        return run_after <= bindparam("now", type_=run_after.type)

    def _oldest(self) -> Select[Any]:
        return (
            select(self.key.label("id"))
            .where(
                text(self.waiting),
                *self._in_lane,
                self.user == bindparam("user_id", type_=self.user.type),
                self._is_due,
            )
            .order_by(self.table.c.run_after, self.key)
        )

    @cached_property
    def _due(self) -> Query[_Id]:
        return Query(self._oldest().limit(bindparam("most")), _Id)

    @cached_property
    def _users(self) -> Query[_UserId]:
        """Hop along the index from one user to the next: as many steps as users, however much work each has.

        Users whose work is all for later are skipped. Whether a user has some that is due is a subquery with a limit:
        PostgreSQL may turn an EXISTS into a join that reads all due work of all users. And with an order, without which
        it reads the whole table for a user who has none.
        """
        start = self._next_user(self.user >= bindparam("start", type_=self.user.type))
        hops = select(start.label("user_id")).cte("hops", recursive=True)
        hops = hops.union_all(
            select(self._next_user(self.user > hops.c.user_id)).where(hops.c.user_id.is_not(None))
        )
        due = (
            select(self.key)
            .where(text(self.waiting), *self._in_lane, self.user == hops.c.user_id, self._is_due)
            .correlate(hops)
            .order_by(self.table.c.run_after)
            .limit(literal_column("1"))
            .scalar_subquery()
        )
        found = (
            select(hops.c.user_id)
            .where(hops.c.user_id.is_not(None), due.is_not(None))
            .limit(bindparam("most"))
        )
        return Query(found, _UserId)

    def _next_user(self, from_here: ColumnElement[bool]) -> ScalarSelect[UUID]:
        return (
            select(self.user)
            .where(text(self.waiting), *self._in_lane, from_here)
            .order_by(self.user)
            .limit(literal_column("1"))
            .scalar_subquery()
        )

    @cached_property
    def _renew(self) -> Statement:
        """Skips locked rows: one that another transaction holds for long must not cost all others their leases."""
        lease: Column[Any] = self.table.c.lease_expires_at
        held = (
            self.key == bindparam("row_id", type_=self.key.type),
            self.fence == bindparam("fence"),
            lease.is_not(None),
        )
        free = select(self.key).where(*held).with_for_update(skip_locked=True)
        return Statement(
            update(self.table)
            .where(*held, self.key.in_(free))
            .values(lease_expires_at=bindparam("until", type_=lease.type))
        )


@cache
def _lost_rows(backlog: Backlog, most: int) -> Query[Lost]:
    """With a literal limit, as in `pick`."""
    lease: Column[Any] = backlog.table.c.lease_expires_at
    return Query(
        select(backlog.key.label("id"), backlog.fence.label("attempt"), backlog.table.c.tries)
        .where(lease.is_not(None), lease <= bindparam("now", type_=lease.type))
        .order_by(lease)
        .limit(literal_column(str(most)))
        .with_for_update(skip_locked=True),
        Lost,
    )
