"""One edge for many rows at once, each with its own fence, together with rows of other tables.

PostgreSQL gets one statement for any number of rows: they are sent as JSON, locked in the order of their ids, moved and
logged. SQLite moves them one by one, because a statement costs no round trip there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import (
    CTE,
    JSON,
    ColumnElement,
    Select,
    Table,
    Uuid,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.types import TypeEngine

from nexus.db.moves import Missed, Move, Subject, logged, move
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import given_columns, insert_all
from nexus.states.machine import Edge

S = TypeVar("S", bound=Enum)
R = TypeVar("R", bound=tuple[Any, ...])
#: Rows to write, for each of several tables.
Rows = Mapping[Table, Sequence[Mapping[str, Any]]]
#: Finds a value that comes with each row, by name.
Given = Callable[[str], ColumnElement[Any]]
_as_json = json.JSONEncoder(default=str, ensure_ascii=False).encode


class BulkMove(Generic[S, R]):
    """`values` come with each row, besides its id and fence; `sets` makes the columns to write from them.

    The tables `beside` have a media_id: rows of media that did not move are not written. `shared` maps columns of those
    tables to columns of the moved row, from which they are filled. Like `Move`, it returns a `row` for each that moved.
    """

    def __init__(
        self,
        subject: Subject[S],
        edge: Edge[S],
        *,
        row: type[R],
        values: Mapping[str, TypeEngine[Any]],
        sets: Callable[[Given], Mapping[str, Any]],
        beside: Sequence[Table],
        shared: Mapping[str, str] = {},
    ) -> None:
        self.one = Move(
            subject,
            edge,
            row=row,
            sets=sets(lambda name: bindparam(name, type_=values[name])),
            fenced=True,
        )
        self._beside = {table: Statement(insert_all(table)) for table in beside}
        self._shared = shared
        self.query = Query(lambda _: _all_at_once(subject, edge, row, values, sets, beside, shared), row)

    def __call__(
        self, session: Session, moves: Sequence[Mapping[str, Any]], rows: Rows, *, actor: str
    ) -> list[R]:
        """Make the moves, each with a row_id, a fence and the values; return the rows that moved."""
        if not session.is_sqlite:
            written = {table.name: _as_json(rows[table]) for table in self._beside}
            given = {"moves": _as_json(moves), "now": session.now, "actor": actor, "error_code": None}
            return session.all(self.query, **given, **written)
        moved = self.one.each(session, moves, actor=actor)
        known = {row.id: row for row in moved}  # type: ignore[attr-defined]
        for table, statement in self._beside.items():
            shared = {name: of for name, of in self._shared.items() if name in table.c}
            session.run_many(
                statement,
                [
                    {**given, **{name: getattr(known[given["media_id"]], of) for name, of in shared.items()}}
                    for given in rows[table]
                    if given["media_id"] in known
                ],
            )
        return moved

    def missed(self, session: Session, row_id: UUID, actor: str, fence: int) -> Missed[S]:
        """Return why one of them did not move."""
        return self.one.missed(session, row_id, actor, fence)


def _all_at_once(
    subject: Subject[S],
    edge: Edge[S],
    answer: type[Any],
    values: Mapping[str, TypeEngine[Any]],
    sets: Callable[[Given], Mapping[str, Any]],
    beside: Sequence[Table],
    shared: Mapping[str, str],
) -> Select[Any]:
    given = _recordset("moves", {"row_id": Uuid(), "fence": subject.fence.type, **values})
    key = subject.table.c.id
    # Lock the rows in order, so that of two writers with rows in common one waits, instead of both.
    locked = (
        select(given).join_from(given, subject.table, key == given.c.row_id).order_by(key)
    ).with_for_update(of=subject.table)
    row = locked.cte("locked")
    moved = (
        move(subject, edge, sets=sets(lambda name: row.c[name]))
        .where(key == row.c.row_id, subject.fence == row.c.fence)
        .returning(*subject.columns(answer))
        .cte("moved")
    )
    return select(*moved.c).add_cte(
        logged(moved, subject, edge), *(_written(moved, table, shared) for table in beside)
    )


def _written(moved: CTE, table: Table, shared: Mapping[str, str]) -> CTE:
    columns = given_columns(table)
    given = _recordset(table.name, {one.name: one.type for one in columns if one.name not in shared})
    values = [moved.c[shared[one.name]] if one.name in shared else given.c[one.name] for one in columns]
    rows = select(*values).join_from(given, moved, moved.c.id == given.c.media_id)
    return insert(table).from_select(columns, rows).cte(f"written_{table.name}")


def _recordset(name: str, types: Mapping[str, TypeEngine[Any]]) -> TableValuedAlias:
    """Turn a parameter that is a JSON array into rows."""
    return (
        func.json_to_recordset(cast(bindparam(name), JSON))
        .table_valued(*(column(key, kind) for key, kind in types.items()))
        .render_derived(name=f"given_{name}", with_types=True)
    )
