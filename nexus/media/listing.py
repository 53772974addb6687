"""The list of what a viewer's libraries hold: filtered, in one of several orders, a page at a time.

What a library holds with the same marks, status and kind is walked along an index, as far as a page needs, and the
walks are merged: a page costs the same however much the libraries hold, and however much of it the filters leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    exists,
    func,
    literal_column,
    select,
    tuple_,
    union_all,
)

from nexus.db.facets import NONE, facet_of
from nexus.db.session import Query, Session, Snapshot
from nexus.db.shelves import shelf
from nexus.db.tables import libraries, library_media, media, memberships
from nexus.db.value_lists import numbered_values
from nexus.libraries import access
from nexus.media.items import HELD_BY_VIEWER, SEEN, item_rows, unplanned
from nexus.media.list_filters import (
    EVERYTHING,
    Sort,
    Wanted,
    admits,
    holding_conditions,
    is_noted,
    mark_conditions,
    range_conditions,
)
from nexus.media.list_orders import HoldingOrder, OrderedRow, cursor_behind, order_of, place_in
from nexus.media.queries import PAGE, SHAPES, Page, View, view_of, written_out
from nexus.states.media import MediaStatus

#: With more parts than this, a list is sorted as a whole instead of walked part by part.
MOST_WALKS = 128


class _StatusTotal(NamedTuple):
    processing_status: MediaStatus
    total: int


class _Part(NamedTuple):
    """What a library holds with the same marks, status and kind."""

    library_id: UUID
    facet: int
    #: Whether the library is the viewer's, and with it the marks in the facet.
    is_owned: bool


@dataclass(frozen=True)
class _Shape:
    """What makes the statement of a list: few-valued filters as they are, and of the others whether they are set."""

    wanted: Wanted
    resumed: bool
    most: int
    #: How many parts are walked, and whether of a single library; None if there are too many of them.
    walks: int | None
    is_alone: bool
    #: Whether marks have to be looked up.
    looks_up: bool

    @property
    def order(self) -> HoldingOrder:
        return order_of(self.wanted)

    def after(self, keys: list[Any], media_id: ColumnElement[UUID]) -> ColumnElement[bool]:
        """Whether something comes after the page before."""
        here: Any = tuple_(*keys, media_id)
        place = self._place()
        found: ColumnElement[bool] = here < place if self.order.descends else here > place
        return found

    def until(self, keys: list[Any], media_id: ColumnElement[UUID]) -> ColumnElement[bool]:
        """Whether it comes before that."""
        here: Any = tuple_(*keys, media_id)
        place = self._place()
        found: ColumnElement[bool] = here >= place if self.order.descends else here <= place
        return found

    def sorted(self, keys: list[Any], media_id: Any) -> list[Any]:
        return [key.desc() if self.order.descends else key.asc() for key in (*keys, media_id)]

    def first(self, key: Any) -> Any:
        """Of an item in several libraries, the place that comes first."""
        return (func.max if self.order.descends else func.min)(key, type_=key.type)

    def _place(self) -> Any:
        given = [
            bindparam(f"place_{number}", type_=library_media.c[name].type)
            for number, name in enumerate(self.order.columns)
        ]
        return tuple_(*given, bindparam("last_id", type_=library_media.c.media_id.type))


def list_items(
    session: Snapshot,
    viewer: UUID,
    wanted: Wanted = EVERYTHING,
    cursor: str | None = None,
    most: int = PAGE,
) -> Page[View]:
    """List what the viewer's libraries hold; an item in several of them is listed once.

    Parts are looked up first and walked then: an item that changed its part in between would be missed, so both see the
    same moment. Raises NotFound for a library that they don't belong to, InvalidRequest for a cursor of another list.
    """
    values = wanted.values() if cursor is None else wanted.values() | place_in(wanted, cursor)
    if wanted.library_id is not None:
        access.require_member(session, wanted.library_id, viewer)
        values["library_id"] = wanted.library_id
    parts = _parts(session, viewer, wanted)
    if not parts:
        return Page([], None)
    shape = _Shape(
        wanted.masked(),
        cursor is not None,
        most + 1,
        1 << (len(parts) - 1).bit_length() if len(parts) <= MOST_WALKS else None,
        is_alone=len({part.library_id for part in parts}) == 1,
        looks_up=not all(part.is_owned for part in parts),
    )
    if shape.walks is not None:
        parts += [parts[0]._replace(facet=NONE)] * (shape.walks - len(parts))
        values |= numbered_values("library", [part.library_id for part in parts])
        values |= numbered_values("facet", [part.facet for part in parts])
    statement = _sorted_whole(shape) if shape.walks is None else _walked(shape)
    rows = session.all(statement, viewer=viewer, **values)
    more = len(rows) > most
    rows = rows[:most]
    return Page([view_of(row.item) for row in rows], cursor_behind(wanted, rows[-1]) if more else None)


def count_items(session: Session, viewer: UUID, wanted: Wanted = EVERYTHING) -> dict[MediaStatus, int]:
    """Count what all pages of a list hold, by status."""
    if wanted.library_id is not None:
        access.require_member(session, wanted.library_id, viewer)
    given = {"library_id": wanted.library_id} if wanted.library_id else {}
    found = session.all(_counted(wanted.masked()), viewer=viewer, **given, **wanted.values())
    totals = {row.processing_status: row.total for row in found}
    return {status: totals.get(status, 0) for status in MediaStatus}


def _parts(session: Session, viewer: UUID, wanted: Wanted) -> list[_Part]:
    """The parts of the viewer's libraries that can be in the list."""
    only = {} if wanted.library_id is None else {"library_id": wanted.library_id}
    found = session.all(_present(wanted.library_id is None), viewer=viewer, **only)
    return [part for part in found if admits(wanted, facet_of(part.facet), is_owned=part.is_owned)]


@lru_cache
def _present(everywhere: bool) -> Query[_Part]:
    """Every facet that a library has, found by leaping from one to the next along an index."""
    chosen = (
        [HELD_BY_VIEWER]
        if everywhere
        else [HELD_BY_VIEWER, memberships.c.library_id == bindparam("library_id")]
    )
    held = library_media.alias("held")
    least = select(func.min(held.c.facet, type_=Integer))
    first = least.where(held.c.library_id == memberships.c.library_id).scalar_subquery().label("facet")
    present = select(memberships.c.library_id, first).where(*chosen).cte("present", recursive=True)
    here = held.c.library_id == present.c.library_id
    later = least.where(here, held.c.facet > present.c.facet).correlate(present).scalar_subquery()
    present = present.union_all(select(present.c.library_id, later).where(present.c.facet.is_not(None)))
    is_owned = (libraries.c.owner_user_id == bindparam("viewer")).label("is_owned")
    return Query(
        select(present.c.library_id, present.c.facet, is_owned)
        .join_from(present, libraries, libraries.c.id == present.c.library_id)
        .where(present.c.facet.is_not(None)),
        _Part,
    )


@lru_cache(SHAPES)
def _walked(shape: _Shape) -> Query[OrderedRow]:
    """One limited walk along each part, then merged: the cost does not grow with the libraries' size."""
    walks = [_walk(shape, place) for place in range(shape.walks or 0)]
    if shape.wanted.sort is Sort.TITLE:
        walks.append(_walk_own_titles(shape))
    merged = (union_all(*walks) if len(walks) > 1 else walks[0]).subquery("merged")
    keys = [shape.first(merged.c[name]) for name in _names(shape)]
    query = select(merged.c.media_id, func.max(merged.c.listed_at).label("added_at"))
    return _latest(shape, query, merged.c.media_id, keys)


@lru_cache(SHAPES)
def _sorted_whole(shape: _Shape) -> Query[OrderedRow]:
    """For a viewer of many libraries: everything they hold, once, sorted."""
    own = shelf.alias("own")
    held = library_media.join(memberships, memberships.c.library_id == library_media.c.library_id).outerjoin(
        own, and_(own.c.user_id == bindparam("viewer"), own.c.media_id == library_media.c.media_id)
    )
    keys: list[Any] = [library_media.c[name] for name in shape.order.columns]
    if shape.wanted.sort is Sort.TITLE:
        keys = [func.coalesce(own.c.title_key, library_media.c.title_key, type_=own.c.title_key.type)]
    keys = [shape.first(key) for key in keys]
    query = (
        select(library_media.c.media_id, func.max(library_media.c.added_at).label("added_at"))
        .select_from(held)
        .where(HELD_BY_VIEWER, *holding_conditions(shape.wanted, library_media))
    )
    if shape.wanted.library_id is not None:
        query = query.where(
            library_media.c.library_id == bindparam("library_id", type_=library_media.c.library_id.type)
        )
    return _latest(shape, query, library_media.c.media_id, keys, resumed=shape.resumed)


def _latest(
    shape: _Shape, query: Select[Any], media_id: Any, keys: list[Any], *, resumed: bool = False
) -> Query[OrderedRow]:
    """The next items that a query holds, each once and in order."""
    grouped = query.add_columns(*_labelled(keys)).group_by(media_id)
    if resumed:
        grouped = grouped.having(shape.after(keys, media_id))
    latest = grouped.order_by(*shape.sorted(keys, media_id)).limit(written_out(shape.most)).subquery("latest")
    kept = [latest.c[name] for name in _names(shape)]
    seen = (
        select(*SEEN, latest.c.added_at, *kept)
        .join_from(latest, library_media, library_media.c.media_id == latest.c.media_id)
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .join(media, media.c.id == latest.c.media_id)
        .where(HELD_BY_VIEWER)
        .group_by(media.c.id, latest.c.added_at, *kept)
        .subquery("seen")
    )
    placed = [seen.c[name] for name in _names(shape)]
    rows = item_rows(seen, seen.c.revision).add_columns(*_labelled(placed, shape.order.row._fields[1:]))
    return Query(rows.order_by(*shape.sorted(placed, seen.c.id)), shape.order.row)


def _names(shape: _Shape) -> list[str]:
    return [f"key_{number}" for number in range(len(shape.order.columns))]


def _labelled(keys: list[Any], names: tuple[str, ...] = ("key_0", "key_1")) -> list[Any]:
    return [key.label(name) for key, name in zip(keys, names, strict=False)]


def _walk(shape: _Shape, place: int) -> Select[Any]:
    """The next entries of one part, without those that an earlier page showed for another library."""
    mine = library_media.alias(f"held_{place}")
    keys = [mine.c[name] for name in shape.order.columns]
    conditions = [
        mine.c.library_id == unplanned(f"library_{place}", mine.c.library_id),
        mine.c.facet == unplanned(f"facet_{place}", mine.c.facet),
        *range_conditions(shape.wanted, mine),
    ]
    if shape.looks_up:
        conditions += mark_conditions(shape.wanted, mine)
    if shape.wanted.sort is Sort.TITLE:
        conditions.append(~is_noted(mine, lambda own: own.c.title.is_not(None)))
    if shape.resumed:
        conditions.append(shape.after(keys, mine.c.media_id))
        if not shape.is_alone:
            conditions.append(~_shown_earlier(shape, mine))
    return _limited(
        shape, select(mine.c.media_id, mine.c.added_at.label("listed_at")), mine, keys, conditions
    )


def _walk_own_titles(shape: _Shape) -> Select[Any]:
    """Those to which the viewer gave a title of their own: they stand where that belongs."""
    mine, own, member = library_media.alias("named"), shelf.alias("own"), memberships.alias("member_of")
    conditions = [
        own.c.user_id == bindparam("viewer"),
        own.c.title.is_not(None),
        own.c.media_id == mine.c.media_id,
        member.c.user_id == bindparam("viewer"),
        member.c.library_id == mine.c.library_id,
        *holding_conditions(shape.wanted, mine),
    ]
    if shape.wanted.library_id is not None:
        conditions.append(mine.c.library_id == bindparam("library_id", type_=mine.c.library_id.type))
    if shape.resumed:
        conditions.append(shape.after([own.c.title_key], own.c.media_id))
    found = select(own.c.media_id, mine.c.added_at.label("listed_at")).select_from(own, mine, member)
    return _limited(shape, found, own, [own.c.title_key], conditions)


def _limited(
    shape: _Shape, found: Select[Any], of: Any, keys: list[Any], conditions: list[ColumnElement[bool]]
) -> Select[Any]:
    walk = (
        found.add_columns(*_labelled(keys))
        .where(*conditions)
        .order_by(*shape.sorted(keys, of.c.media_id))
        .limit(written_out(shape.most))
    )
    return select(walk.subquery(f"walk_of_{of.name}"))


def _shown_earlier(shape: _Shape, mine: FromClause) -> ColumnElement[bool]:
    other, member = library_media.alias(), memberships.alias()
    return exists(
        select(literal_column("1"))
        .select_from(other.join(member, member.c.library_id == other.c.library_id))
        .where(
            other.c.media_id == mine.c.media_id,
            member.c.user_id == bindparam("viewer"),
            shape.until([other.c[name] for name in shape.order.columns], other.c.media_id),
            *holding_conditions(shape.wanted, other),
        )
        .correlate(mine)
    )


@lru_cache(SHAPES)
def _counted(wanted: Wanted) -> Query[_StatusTotal]:
    held = [HELD_BY_VIEWER, *holding_conditions(wanted, library_media)]
    if wanted.library_id is not None:
        held.append(library_media.c.library_id == bindparam("library_id"))
    items = (
        select(library_media.c.media_id)
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .where(*held)
    )
    total = select(media.c.processing_status, func.count().label("total")).where(media.c.id.in_(items))
    return Query(total.group_by(media.c.processing_status), _StatusTotal)
