"""Rows that are nothing but work, such as a picture to fetch: how they are claimed, and how they are let go.

Beside what every table of work has, they count the `attempt`. A row that is asked for again while somebody holds it
gets 0 `tries`: whatever becomes of the older request, it is due again at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cache, cached_property
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    bindparam,
    case,
    delete,
    literal_column,
    null,
    select,
    text,
    update,
)

from nexus.db.session import Query, Session, Statement
from nexus.work.backlog import Backlog
from nexus.work.handler import Hold
from nexus.work.retry import Again

E = TypeVar("E", bound=tuple[Any, ...])


@dataclass(frozen=True, eq=False)
class Errands(Generic[E]):
    """The rows of a backlog, each of type E."""

    backlog: Backlog
    row: type[E]

    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> E | None:
        now = session.now
        return session.first(self._claim_one, row_id=row_id, now=now, until=now + lease)

    def claim_due(
        self, session: Session, lane: str | None, user_id: UUID, most: int, lease: timedelta
    ) -> list[E]:
        now = session.now
        return session.all(_claim_due(self, most), lane=lane, user_id=user_id, now=now, until=now + lease)

    def release(self, session: Session, hold: Hold, again: Again) -> bool:
        """Let go of a row, to be due again later. False if somebody else has taken it over."""
        uncounted, run_after = 0 if again.counted else 1, session.now + again.wait
        return session.run(self._release, run_after=run_after, uncounted=uncounted, **held_by(hold)) > 0

    def let_go(self, **values: ColumnElement[Any]) -> Statement:
        """Make a statement that ends an attempt. The values are about the request that it was claimed for."""
        of_latest = {
            name: case((self._is_latest, value), else_=self._columns[name]) for name, value in values.items()
        }
        return Statement(
            update(self.backlog.table).where(*self._held).values(lease_expires_at=null(), **of_latest)
        )

    def remove(self) -> Statement:
        """Make a statement that removes a row when it is done, unless it was asked for again meanwhile."""
        return Statement(delete(self.backlog.table).where(*self._held, self._is_latest))

    @property
    def _columns(self) -> Any:
        return self.backlog.table.c

    @property
    def _held(self) -> tuple[ColumnElement[bool], ...]:
        key, fence = self.backlog.key, self.backlog.fence
        return (
            key == bindparam("row_id", type_=key.type),
            fence == bindparam("fence", type_=fence.type),
            self._columns.lease_expires_at.is_not(None),
        )

    @property
    def _is_latest(self) -> ColumnElement[bool]:
        tries: Column[int] = self._columns.tries
        return tries > literal_column("0")

    @cached_property
    def _claim_one(self) -> Query[E]:
        return _claim(self, self.backlog.key == bindparam("row_id", type_=self.backlog.key.type))

    @cached_property
    def _release(self) -> Statement:
        columns = self._columns
        return self.let_go(
            run_after=bindparam("run_after", type_=columns.run_after.type),
            tries=columns.tries - bindparam("uncounted", type_=columns.tries.type),
        )


def held_by(hold: Hold) -> dict[str, Any]:
    """Return the parameters that name a row and its fence in `let_go` and `remove`."""
    return {"row_id": hold.work.id, "fence": hold.attempt}


def _claim(errands: Errands[E], which: ColumnElement[bool]) -> Query[E]:
    backlog = errands.backlog
    columns = backlog.table.c
    return Query(
        update(backlog.table)
        .where(
            which,
            text(backlog.waiting),
            columns.run_after <= bindparam("now", type_=columns.run_after.type),
        )
        .values(
            attempt=columns.attempt + literal_column("1"),
            tries=columns.tries + literal_column("1"),
            lease_expires_at=bindparam("until", type_=columns.lease_expires_at.type),
        )
        .returning(*columns),
        errands.row,
    )


@cache
def _claim_due(errands: Errands[E], most: int) -> Query[E]:
    """With a literal limit, as in `Backlog.pick`."""
    picked = errands.backlog.pick(most).cte("picked")
    return _claim(errands, errands.backlog.key.in_(select(picked.c.id)))
