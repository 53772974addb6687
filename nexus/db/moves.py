"""The guarded move: one UPDATE that holds its own guard, then its row of history. It never commits.

The guard stands in the UPDATE's own WHERE: in a subquery alone, PostgreSQL lets several racing workers win.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import Column, ColumnElement, Select, Table, TextClause, bindparam, insert, select, update

from nexus.db.session import Row, Session, Statement
from nexus.db.tables import history, media, one_of
from nexus.states.machine import Edge, Machine, Verdict
from nexus.states.media import MEDIA

S = TypeVar("S", bound=Enum)

LOG = Statement(
    insert(history).values(
        {column: bindparam(column.name) for column in history.c if column.name not in {"id", "tx"}}
    )
)


@dataclass(frozen=True)
class Subject(Generic[S]):
    """A machine and the table whose rows it moves."""

    machine: Machine[S]
    table: Table
    status: Column[str]
    fence: Column[int]

    def current(self) -> Statement:
        return Statement(
            select(self.status.label("status"), self.fence.label("fence")).where(
                self.table.c.id == bindparam("row_id")
            )
        )


MEDIA_ROWS = Subject(MEDIA, media, media.c.processing_status, media.c.processing_attempts)


@dataclass(frozen=True)
class Missed(Generic[S]):
    """Nothing changed. `state` is where the row was found, or None when there is no such row."""

    verdict: Verdict
    state: S | None
    stale: bool = False  #: the row was in place, but its fence or another guard no longer held

    def __bool__(self) -> bool:
        return False


class Move(Generic[S]):
    """One edge as a prepared statement. `sets` are columns it writes; `guards` are conditions beside the status."""

    def __init__(
        self,
        subject: Subject[S],
        edge: Edge[S],
        *,
        sets: Mapping[str, Any],
        guards: Sequence[ColumnElement[bool] | TextClause] = (),
        only: frozenset[S] | None = None,
        fenced: bool = False,
        pick: Select[Any] | None = None,
    ) -> None:
        self.edge = edge
        self.subject = subject
        table, sources = subject.table, edge.sources if only is None else edge.sources & only
        if not sources:
            raise ValueError(f"{edge.verb} has no source left")
        which = table.c.id == bindparam("row_id") if pick is None else table.c.id.in_(_once(pick))
        fence = [subject.fence == bindparam("fence")] if fenced else []
        self.statement = Statement(
            update(table)
            .where(which, one_of(subject.status, sources), *fence, *guards)
            .values(
                {
                    "status_before": subject.status,
                    subject.status.name: edge.target.value,
                    "updated_at": bindparam("now"),
                    **sets,
                }
            )
            .returning(*table.c)
        )
        self._current = subject.current()

    def __call__(
        self, session: Session, row_id: UUID, *, actor: str, error_code: str | None = None, **values: Any
    ) -> Row | Missed[S]:
        """The row as it is afterwards, or why nothing changed."""
        row = session.first(self.statement, row_id=row_id, now=session.now, **values)
        if row is None:
            return self._missed(session, row_id)
        session.run(LOG, **self._entry(row, session.now, actor, error_code))
        return row

    def batch(self, session: Session, *, actor: str, **values: Any) -> list[Row]:
        """Every row that the prepared pick chose and that was still in place."""
        rows = session.all(self.statement, now=session.now, **values)
        session.run_many(LOG, [self._entry(row, session.now, actor, None) for row in rows])
        return rows

    def _entry(self, row: Row, now: datetime, actor: str, error_code: str | None) -> dict[str, Any]:
        return {
            "subject": self.subject.machine.name,
            "subject_id": row.id,
            "event": self.edge.verb,
            "from_status": row.status_before,
            "to_status": self.edge.target.value,
            "at": now,
            "actor": actor,
            "attempt": getattr(row, self.subject.fence.name),
            "error_code": error_code,
        }

    def _missed(self, session: Session, row_id: UUID) -> Missed[S]:
        found = session.first(self._current, row_id=row_id)
        if found is None:
            return Missed(Verdict.REFUSE, None)
        state = self.subject.machine.states(found.status)
        verdict = self.edge.decide(state)
        if verdict is Verdict.APPLY:
            return Missed(Verdict.REFUSE, state, stale=True)
        return Missed(verdict, state)


def _once(pick: Select[Any]) -> Select[Any]:
    """As a CTE the pick runs once; as a subquery PostgreSQL may run it per row and take more than its limit."""
    picked = pick.cte("picked")
    return select(picked.c.id)


def log_created(session: Session, subject: Subject[Any], row_id: UUID, *, actor: str) -> None:
    """The first row of a history: nothing to the initial state."""
    session.run(
        LOG,
        subject=subject.machine.name,
        subject_id=row_id,
        event="create",
        from_status=None,
        to_status=subject.machine.initial.value,
        at=session.now,
        actor=actor,
        attempt=0,
        error_code=None,
    )
