"""Rows that are nothing but work, such as a picture to fetch: how they are claimed, and how they are let go.

Beside what every table of work has, they count the `attempt`. A row that is asked for again while somebody holds it
gets 0 `tries`: whatever becomes of the older request, it is due again at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, TypeVar
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
from nexus.errors import JobTimeout, WorkError
from nexus.work.backlog import Backlog
from nexus.work.handler import Claim, EndedAttempt, Handler, Hold
from nexus.work.retry import Again

E = TypeVar("E", bound=tuple[Any, ...])
S = TypeVar("S")
R = TypeVar("R")


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

    def finish(self, session: Session, hold: Hold) -> bool:
        """Remove a row whose work is done; one that was asked for again meanwhile is due again at once.

        False if somebody else has taken it over.
        """
        mine = held_by(hold)
        return session.run(self._remove, **mine) > 0 or session.run(self._end, **mine) > 0

    def let_go(self, **values: ColumnElement[Any]) -> Statement:
        """Make a statement that ends an attempt. The values are about the request that it was claimed for."""
        of_latest = {
            name: case((self._is_latest, value), else_=self._columns[name]) for name, value in values.items()
        }
        return Statement(
            update(self.backlog.table).where(*self.held).values(lease_expires_at=null(), **of_latest)
        )

    @property
    def held(self) -> tuple[ColumnElement[bool], ...]:
        """The fence: what is true of a row while an attempt holds it. `held_by` has its parameters."""
        key, fence = self.backlog.key, self.backlog.fence
        return (
            key == bindparam("row_id", type_=key.type),
            fence == bindparam("fence", type_=fence.type),
            self._columns.lease_expires_at.is_not(None),
        )

    @property
    def _columns(self) -> Any:
        return self.backlog.table.c

    @property
    def _is_latest(self) -> ColumnElement[bool]:
        tries: Column[int] = self._columns.tries
        return tries > literal_column("0")

    @cached_property
    def _claim_one(self) -> Query[E]:
        return _claim(self, self.backlog.key == bindparam("row_id", type_=self.backlog.key.type))

    @cached_property
    def _remove(self) -> Statement:
        return Statement(delete(self.backlog.table).where(*self.held, self._is_latest))

    @cached_property
    def _end(self) -> Statement:
        return self.let_go()

    @cached_property
    def _release(self) -> Statement:
        columns = self._columns
        return self.let_go(
            run_after=bindparam("run_after", type_=columns.run_after.type),
            tries=columns.tries - bindparam("uncounted", type_=columns.tries.type),
        )


class ErrandHandler(Handler[S, R], Generic[E, S, R]):
    """A kind of work whose rows are errands of type E."""

    errands: ClassVar[Errands[Any]]

    @abstractmethod
    def take(self, session: Session, row: E) -> Claim[S] | None:
        """Return the claim on a row that was just claimed; None if what it is about is gone."""

    @abstractmethod
    def settle_one(self, claim: Claim[S], result: R) -> str:
        """Write the result of one attempt, in a transaction of its own, and say how it ended."""

    @abstractmethod
    def give_up(self, session: Session, hold: Hold, error: WorkError) -> bool:
        """Write that a row has failed for good. False if somebody else has taken it over."""

    def claim(self, session: Session, row_id: UUID, lease: timedelta) -> Claim[S] | None:
        row = self.errands.claim(session, row_id, lease)
        return None if row is None else self.take(session, row)

    def claim_due(
        self, session: Session, lane: str | None, user_id: UUID, most: int, lease: timedelta
    ) -> list[Claim[S]]:
        rows = self.errands.claim_due(session, lane, user_id, most, lease)
        return [claim for row in rows if (claim := self.take(session, row)) is not None]

    def settle(self, ended: Sequence[EndedAttempt[S, R]]) -> list[str]:
        return [self.settle_one(one.claim, one.result) for one in ended]

    def put_down(
        self,
        session: Session,
        hold: Hold,
        again: Again | None,
        error: WorkError | None,
        actor: str,  # noqa: ARG002 an errand has no history
    ) -> bool:
        if again is None:
            return self.give_up(session, hold, error or JobTimeout())
        return self.errands.release(session, hold, again)


def held_by(hold: Hold) -> dict[str, Any]:
    """Return the parameters that name a row and its fence in `held` and `let_go`."""
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
