"""Where to look: the texts that a viewer may read and that the filters leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Select,
    and_,
    bindparam,
    column,
    func,
    select,
    tuple_,
)
from sqlalchemy.engine import Dialect

from nexus.db.chunks import chunks
from nexus.db.session import Session


class ChunkPlace(NamedTuple):
    """A chunk of a text that the viewer may read. Position ABOUT is the item's title, byline and site."""

    key: int
    media_id: UUID
    revision: int
    position: int
    fragment: int
    start: int
    end: int


#: The columns of a place.
CHUNK_PLACE = tuple(
    chunks.c[name] for name in ("key", "media_id", "revision", "position", "fragment", "start", "end")
)


@dataclass(frozen=True, eq=False)
class SearchScope:
    """The texts to search: a statement that every query joins, so that nothing else is ever found.

    Its columns are `media_id` and `revision`, at most one row for an item. Each new statement has to be compiled: build
    one for each shape of filters, and give their values apart from it.
    """

    readable: Select[Any]
    values: Mapping[str, Any]
    #: What else an item has to hold, or must not: statements with the same columns as `readable`.
    holding: tuple[Select[Any], ...] = ()
    lacking: tuple[Select[Any], ...] = ()

    def narrowed(
        self, holding: tuple[Select[Any], ...], lacking: tuple[Select[Any], ...], values: Mapping[str, Any]
    ) -> SearchScope:
        return replace(self, holding=holding, lacking=lacking, values={**self.values, **values})

    @property
    def shape(self) -> Shape:
        """What makes a statement: scopes of the same shape differ in values only."""
        return (self.readable, self.holding, self.lacking)


Shape = tuple[Select[Any], tuple[Select[Any], ...], tuple[Select[Any], ...]]


def is_readable(
    shape: Shape, among: Select[Any] | None = None, of: FromClause = chunks
) -> ColumnElement[bool]:
    """Return the condition that a chunk is in scope. `among` names the items that matter; others are not looked at.

    Not a join: SQLite would compare every chunk with every text.
    """
    readable, holding, lacking = shape
    if among is not None:
        readable = readable.where(readable.selected_columns.media_id.in_(among))
    text = tuple_(of.c.media_id, of.c.revision)
    conditions = [text.in_(wanted) for wanted in (readable, *holding)]
    return and_(*conditions, *(text.not_in(unwanted) for unwanted in lacking))


#: Statements for one shape of scope are made once.
per_shape = lru_cache(128)


def numbered(dialect: Dialect, key: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that a key is in the parameter `numbers`, which `listed` makes."""
    if dialect.name == "sqlite":
        each = func.json_each(bindparam("numbers")).table_valued(column("value", Integer))
        return key.in_(select(each.c.value))
    matched: ColumnElement[bool] = key == func.any(bindparam("numbers"))
    return matched


def listed(session: Session, numbers: Iterable[int]) -> str | list[int]:
    """Return numbers as a parameter: SQLite takes a list as JSON."""
    found = list(numbers)
    return str(found) if session.is_sqlite else found
