"""The guarded move: one UPDATE with its guard, and its row of history. It never commits.

The guard is in the UPDATE's own WHERE: with a guard in a subquery, PostgreSQL lets several racing workers win.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar, overload
from uuid import UUID

from sqlalchemy import (
    CTE,
    ClauseElement,
    Column,
    ColumnElement,
    Select,
    Table,
    TextClause,
    Update,
    bindparam,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningUpdate

from nexus.db.editorial import jobs, stories
from nexus.db.feeds import subscriptions
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import history, media, one_of
from nexus.states.job import JOB
from nexus.states.machine import Edge, Machine, Verdict
from nexus.states.media import MEDIA
from nexus.states.story import STORY
from nexus.states.subscription import SUBSCRIPTION

S = TypeVar("S", bound=Enum)
R = TypeVar("R", bound=tuple[Any, ...])


class _Current(NamedTuple):
    status: str
    fence: int


class _Entry(NamedTuple):
    id: int


_TAKEN = Query(
    select(history.c.id)
    .where(
        history.c.subject_id == bindparam("row_id"),
        history.c.event == bindparam("event"),
        history.c.attempt == bindparam("fence"),
        history.c.actor == bindparam("actor"),
    )
    .limit(literal_column("1")),
    _Entry,
)
LOG = Statement(
    insert(history)
    .values({column: bindparam(column.name) for column in history.c if column.name not in {"id", "tx"}})
    .inline()  # nobody needs its id
)


@dataclass(frozen=True)
class Subject(Generic[S]):
    """A machine and the table whose rows it moves."""

    machine: Machine[S]
    table: Table
    status: Column[str]
    fence: Column[int]

    def columns(self, row: type[Any]) -> list[ColumnElement[Any]]:
        """Return the columns of a row type, for RETURNING."""
        names: tuple[str, ...] = row._fields
        return [self.fence.label("fence") if name == "fence" else self.table.c[name] for name in names]

    @cached_property
    def current(self) -> Query[_Current]:
        """Where one row stands."""
        return Query(
            select(self.status.label("status"), self.fence.label("fence")).where(
                self.table.c.id == bindparam("row_id")
            ),
            _Current,
        )


MEDIA_ROWS = Subject(MEDIA, media, media.c.processing_status, media.c.processing_attempts)
JOB_ROWS = Subject(JOB, jobs, jobs.c.status, jobs.c.attempt)
STORY_ROWS = Subject(STORY, stories, stories.c.status, stories.c.revision)
SUBSCRIPTION_ROWS = Subject(SUBSCRIPTION, subscriptions, subscriptions.c.status, subscriptions.c.attempt)
SUBJECTS: tuple[Subject[Any], ...] = (MEDIA_ROWS, JOB_ROWS, STORY_ROWS, SUBSCRIPTION_ROWS)


@dataclass(frozen=True)
class Missed(Generic[S]):
    """Nothing changed. `state` is the row's, or None if there is no such row."""

    verdict: Verdict
    state: S | None
    stale: bool = False  #: the edge leads from this state, but the fence or another guard failed
    #: The same attempt of the same actor has already made this move: the answer to its COMMIT was lost.
    repeated: bool = False

    def __bool__(self) -> bool:
        return False


class Moved(NamedTuple):
    """What history needs to know of a row."""

    id: UUID
    status_before: str | None
    fence: int


class Move(Generic[S, R]):
    """One edge as a prepared statement. `sets` are the columns it writes, `guards` conditions besides the status.

    It returns a `row` of the table's columns, which must include those that history needs; only those if no type is
    given.
    """

    @overload
    def __init__(
        self: Move[S, Moved],
        subject: Subject[S],
        edge: Edge[S],
        *,
        sets: Mapping[str, Any],
        guards: Sequence[ColumnElement[bool] | TextClause] = (),
        only: frozenset[S] | None = None,
        fenced: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Move[S, R],
        subject: Subject[S],
        edge: Edge[S],
        *,
        row: type[R],
        sets: Mapping[str, Any],
        guards: Sequence[ColumnElement[bool] | TextClause] = (),
        only: frozenset[S] | None = None,
        fenced: bool = False,
        pick: Select[Any] | None = None,
    ) -> None: ...
    def __init__(
        self,
        subject: Subject[S],
        edge: Edge[S],
        *,
        row: type[Any] = Moved,
        sets: Mapping[str, Any],
        guards: Sequence[ColumnElement[bool] | TextClause] = (),
        only: frozenset[S] | None = None,
        fenced: bool = False,
        pick: Select[Any] | None = None,
    ) -> None:
        if only is not None and not edge.sources & only:
            raise ValueError(f"{edge.verb} has no source left")
        self.edge = edge
        self.subject = subject

        def clause(dialect: Dialect) -> ClauseElement:
            """Built by the first call: a process uses few of its moves."""
            key = subject.table.c.id
            which = key == bindparam("row_id") if pick is None else key.in_(_once(pick))
            fence = [subject.fence == bindparam("fence")] if fenced else []
            moved = move(subject, edge, sets=sets, only=only).where(which, *fence, *guards)
            answer = moved.returning(*subject.columns(row))
            return answer if dialect.name == "sqlite" else _with_history(answer, subject, edge)

        self.query: Query[R] = Query(clause, row)
        self._fence = "fence" if "fence" in row._fields else subject.fence.name

    def __call__(
        self, session: Session, row_id: UUID, *, actor: str, error_code: str | None = None, **values: Any
    ) -> R | Missed[S]:
        """Make the move; return the row as it is afterwards, or why nothing changed."""
        row: R | None = session.first(
            self.query, row_id=row_id, now=session.now, actor=actor, error_code=error_code, **values
        )
        if row is None:
            return self.missed(session, row_id, actor, values.get("fence"))
        if session.is_sqlite:
            session.run(LOG, **self._entry(row, session.now, actor, error_code))
        return row

    def each(self, session: Session, moves: Sequence[Mapping[str, Any]], *, actor: str) -> list[R]:
        """Move many rows, each with its own values; return those that moved. For SQLite only: see bulk.py."""
        found = [session.first(self.query, now=session.now, **values) for values in moves]
        moved = [row for row in found if row is not None]
        session.run_many(LOG, [self._entry(row, session.now, actor, None) for row in moved])
        return moved

    def batch(self, session: Session, *, actor: str, **values: Any) -> list[R]:
        """Move the rows that `pick` selects; return those that moved."""
        rows = session.all(self.query, now=session.now, actor=actor, error_code=None, **values)
        if session.is_sqlite:
            session.run_many(LOG, [self._entry(row, session.now, actor, None) for row in rows])
        return rows

    def _entry(self, row: Any, now: datetime, actor: str, error_code: str | None) -> dict[str, Any]:
        return {
            "subject": self.subject.machine.name,
            "subject_id": row.id,
            "event": self.edge.verb,
            "from_status": row.status_before,
            "to_status": self.edge.target.value,
            "at": now,
            "actor": actor,
            "attempt": getattr(row, self._fence),
            "error_code": error_code,
        }

    def missed(self, session: Session, row_id: UUID, actor: str, fence: int | None) -> Missed[S]:
        """Return why the row did not move."""
        found = session.first(self.subject.current, row_id=row_id)
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
) -> Update:
    """Return an UPDATE of every row in a state that the edge leads from."""
    table, sources = subject.table, edge.sources if only is None else edge.sources & only
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
    )


def _once(pick: Select[Any]) -> Select[Any]:
    """As a CTE the pick runs once. As a subquery, PostgreSQL may run it for each row and exceed its limit."""
    picked = pick.cte("picked")
    return select(picked.c.id)


def constant(name: str) -> ColumnElement[str]:
    """Return a name from a machine's table as a literal, so that it is not sent with each call."""
    return literal_column(f"'{name}'")


def _with_history(moved: ReturningUpdate[Any], subject: Subject[Any], edge: Edge[Any]) -> Select[Any]:
    """Return the move and its history as one statement, which saves PostgreSQL a round trip. SQLite can't do this."""
    row = moved.cte("moved")
    return select(row).add_cte(logged(row, subject, edge))


def logged(moved: CTE, subject: Subject[Any], edge: Edge[Any]) -> CTE:
    """Return an INSERT of history rows for everything that moved."""
    fence = moved.c["fence"] if "fence" in moved.c else moved.c[subject.fence.name]
    entry = {
        history.c.subject: constant(subject.machine.name),
        history.c.subject_id: moved.c.id,
        history.c.event: constant(edge.verb),
        history.c.from_status: moved.c.status_before,
        history.c.to_status: constant(edge.target.value),
        history.c.at: bindparam("now", type_=history.c.at.type),
        history.c.actor: bindparam("actor", type_=history.c.actor.type),
        history.c.attempt: fence,
        history.c.error_code: bindparam("error_code", type_=history.c.error_code.type),
    }
    return insert(history).from_select(list(entry), select(*entry.values())).cte("logged")


def log_created(session: Session, subject: Subject[Any], *row_ids: UUID, actor: str) -> None:
    """Write the first row of each history, from nothing to the initial state."""
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
