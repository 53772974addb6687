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

from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    Select,
    Table,
    TextClause,
    bindparam,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from nexus.db.editorial import jobs, stories
from nexus.db.session import Row, Session, Statement
from nexus.db.tables import history, media, one_of
from nexus.states.job import JOB
from nexus.states.machine import Edge, Machine, Verdict
from nexus.states.media import MEDIA
from nexus.states.story import STORY

S = TypeVar("S", bound=Enum)

_TAKEN = Statement(
    select(history.c.id)
    .where(
        history.c.subject_id == bindparam("row_id"),
        history.c.event == bindparam("event"),
        history.c.attempt == bindparam("fence"),
        history.c.actor == bindparam("actor"),
    )
    .limit(literal_column("1"))
)
LOG = Statement(
    insert(history)
    .values({column: bindparam(column.name) for column in history.c if column.name not in {"id", "tx"}})
    .inline()  # nobody asks for its id
)


@dataclass(frozen=True)
class Subject(Generic[S]):
    """A machine and the table whose rows it moves."""

    machine: Machine[S]
    table: Table
    status: Column[str]
    fence: Column[int]

    @property
    def brief(self) -> tuple[Column[Any], ...]:
        """What a row of history is made from."""
        return (self.table.c.id, self.table.c.status_before, self.table.c.updated_at, self.fence)

    def current(self) -> Statement:
        return Statement(
            select(self.status.label("status"), self.fence.label("fence")).where(
                self.table.c.id == bindparam("row_id")
            )
        )


MEDIA_ROWS = Subject(MEDIA, media, media.c.processing_status, media.c.processing_attempts)
JOB_ROWS = Subject(JOB, jobs, jobs.c.status, jobs.c.attempt)
STORY_ROWS = Subject(STORY, stories, stories.c.status, stories.c.revision)
SUBJECTS: tuple[Subject[Any], ...] = (MEDIA_ROWS, JOB_ROWS, STORY_ROWS)


@dataclass(frozen=True)
class Missed(Generic[S]):
    """Nothing changed. `state` is where the row was found, or None when there is no such row."""

    verdict: Verdict
    state: S | None
    stale: bool = False  #: the row was in place, but its fence or another guard no longer held
    #: The same attempt of the same actor has taken this edge before: the answer to its COMMIT was lost.
    repeated: bool = False

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
        brief: bool = False,
    ) -> None:
        self.edge = edge
        self.subject = subject
        key = subject.table.c.id
        which = key == bindparam("row_id") if pick is None else key.in_(_once(pick))
        fence = [subject.fence == bindparam("fence")] if fenced else []
        moved = move(subject, edge, sets=sets, only=only, brief=brief).where(which, *fence, *guards)
        self.statement = Statement(moved, on_postgres=_with_history(moved, subject, edge))
        self._current = subject.current()

    def __call__(
        self, session: Session, row_id: UUID, *, actor: str, error_code: str | None = None, **values: Any
    ) -> Row | Missed[S]:
        """The row as it is afterwards, or why nothing changed."""
        row = session.first(
            self.statement, row_id=row_id, now=session.now, actor=actor, error_code=error_code, **values
        )
        if row is None:
            return self.missed(session, row_id, actor, values.get("fence"))
        if session.is_sqlite:
            session.run(LOG, **self._entry(row, session.now, actor, error_code))
        return row

    def each(self, session: Session, moves: Sequence[Mapping[str, Any]], *, actor: str) -> list[Row]:
        """Of many rows, each with its values, those that moved. On SQLite alone: see bulk.py."""
        found = [session.first(self.statement, now=session.now, **values) for values in moves]
        moved = [row for row in found if row is not None]
        session.run_many(LOG, [self._entry(row, session.now, actor, None) for row in moved])
        return moved

    def batch(self, session: Session, *, actor: str, **values: Any) -> list[Row]:
        """Every row that the prepared pick chose and that was still in place."""
        rows = session.all(self.statement, now=session.now, actor=actor, error_code=None, **values)
        if session.is_sqlite:
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

    def missed(self, session: Session, row_id: UUID, actor: str, fence: int | None) -> Missed[S]:
        """Why the row did not move."""
        found = session.first(self._current, row_id=row_id)
        if found is None:
            return Missed(Verdict.REFUSE, None)
        state = self.subject.machine.states(found.status)
        verdict = self.edge.decide(state)
        stale = verdict is Verdict.APPLY
        taken = {"row_id": row_id, "event": self.edge.verb, "fence": fence, "actor": actor}
        repeated = fence is not None and session.first(_TAKEN, **taken) is not None
        return Missed(Verdict.REFUSE if stale else verdict, state, stale, repeated)


def move(
    subject: Subject[S],
    edge: Edge[S],
    *,
    sets: Mapping[str, Any],
    only: frozenset[S] | None = None,
    brief: bool = False,
) -> ReturningUpdate[Any]:
    """The UPDATE of every row that the edge leads from. A brief one answers with what its history needs, no more."""
    table, sources = subject.table, edge.sources if only is None else edge.sources & only
    if not sources:
        raise ValueError(f"{edge.verb} has no source left")
    fact = [table.c[edge.where[0]] == constant(edge.where[1])] if edge.where else []
    return (
        update(table)
        .where(one_of(subject.status, sources), *fact)
        .values(
            {
                "status_before": subject.status,
                subject.status.name: constant(edge.target.value),
                "updated_at": bindparam("now"),
                **sets,
            }
        )
        .returning(*(subject.brief if brief else table.c))
    )


def _once(pick: Select[Any]) -> Select[Any]:
    """As a CTE the pick runs once; as a subquery PostgreSQL may run it per row and take more than its limit."""
    picked = pick.cte("picked")
    return select(picked.c.id)


def constant(name: str) -> ColumnElement[str]:
    """A name from a machine's table, written out: nothing to send with each call."""
    return literal_column(f"'{name}'")


def _with_history(moved: ReturningUpdate[Any], subject: Subject[Any], edge: Edge[Any]) -> Select[Any]:
    """The move and its row of history as one statement: a round trip less on PostgreSQL. SQLite has no such form."""
    row = moved.cte("moved")
    return select(row).add_cte(logged(row, subject, edge))


def logged(moved: CTE, subject: Subject[Any], edge: Edge[Any]) -> CTE:
    """The rows of history of all that moved."""
    entry = {
        history.c.subject: constant(subject.machine.name),
        history.c.subject_id: moved.c.id,
        history.c.event: constant(edge.verb),
        history.c.from_status: moved.c.status_before,
        history.c.to_status: constant(edge.target.value),
        history.c.at: moved.c.updated_at,
        history.c.actor: bindparam("actor", type_=history.c.actor.type),
        history.c.attempt: moved.c[subject.fence.name],
        history.c.error_code: bindparam("error_code", type_=history.c.error_code.type),
    }
    return insert(history).from_select(list(entry), select(*entry.values())).cte("logged")


def log_created(session: Session, subject: Subject[Any], *row_ids: UUID, actor: str) -> None:
    """The first row of each history: nothing to the initial state."""
    entry = {
        "subject": subject.machine.name,
        "event": "create",
        "from_status": None,
        "to_status": subject.machine.initial.value,
        "at": session.now,
        "actor": actor,
        "attempt": 0,
        "error_code": None,
    }
    session.run_many(LOG, [{**entry, "subject_id": row_id} for row_id in row_ids])
