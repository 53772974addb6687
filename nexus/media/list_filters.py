"""What a viewer wants to see of the list, as conditions on what a library holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    and_,
    bindparam,
    exists,
    literal_column,
    or_,
    select,
)

from nexus.db.facets import KINDS, OF_KIND, OF_STATUS, STATUSES, Facet
from nexus.db.shelves import shelf
from nexus.db.tables import library_media
from nexus.states.media import Kind, MediaStatus

_FLAGS = {"is_read": "read_at", "is_archived": "archived_at", "is_favourite": "favourite_at"}
_SOME_TIME = datetime.min.replace(tzinfo=UTC)


class Sort(StrEnum):
    """What a list is sorted by, and which end comes first."""

    ADDED = "added"  #: the latest first
    TITLE = "title"  #: from A to Z
    SITE = "site"  #: from A to Z, the first added first
    PUBLISHED = "published"  #: the latest first
    TIME = "time"  #: the shortest to read first


@dataclass(frozen=True)
class Wanted:
    """What to list, and in which order. Archived items are left out unless they are asked for."""

    library_id: UUID | None = None
    #: Any of these; empty for all.
    statuses: frozenset[MediaStatus] = frozenset()
    #: What people call it: an address that answered with a PDF is one.
    kind: Kind | None = None
    #: The host of its address, without `www.`.
    site: str | None = None
    #: The first moment, and the first that is too late.
    added_from: datetime | None = None
    added_until: datetime | None = None
    is_read: bool | None = None
    is_archived: bool | None = False
    is_favourite: bool | None = None
    sort: Sort = Sort.ADDED
    is_reversed: bool = False

    def masked(self) -> Wanted:
        """Return the same without the values that are parameters of the statement: they don't change its shape."""
        return replace(
            self,
            library_id=self.library_id and UUID(int=0),
            site=None if self.site is None else "",
            added_from=self.added_from and _SOME_TIME,
            added_until=self.added_until and _SOME_TIME,
        )

    def values(self) -> dict[str, Any]:
        """Return those parameters, without the library."""
        given = {
            "wanted_site": self.site,
            "added_from": self.added_from,
            "added_until": self.added_until,
        }
        return {name: value for name, value in given.items() if value is not None}


EVERYTHING = Wanted()


def admits(wanted: Wanted, facet: Facet, *, is_owned: bool) -> bool:
    """Whether what has this facet can be in the list. Its marks are the viewer's if the library is owned by them."""
    return (
        (not wanted.statuses or facet.status in wanted.statuses)
        and wanted.kind in {None, facet.kind}
        and not (is_owned and any((name in facet.marks) is not is_set for name, is_set in _marks(wanted)))
    )


def holding_conditions(wanted: Wanted, mine: FromClause) -> list[ColumnElement[bool]]:
    """What has to be true of a holding."""
    conditions = [*range_conditions(wanted, mine), *mark_conditions(wanted, mine)]
    if wanted.statuses:
        numbers = [STATUSES[status] * OF_STATUS for status in sorted(wanted.statuses)]
        conditions.append(_one_of(mine.c.facet.bitwise_and(_number(OF_KIND - OF_STATUS)), numbers))
    if wanted.kind is not None:
        conditions.append(of_kinds([wanted.kind], mine))
    return conditions


def range_conditions(wanted: Wanted, mine: FromClause) -> list[ColumnElement[bool]]:
    """Of these, what no facet says: the site, and when it was added."""
    conditions: list[ColumnElement[bool]] = []
    moment = library_media.c.added_at.type
    if wanted.site is not None:
        conditions.append(mine.c.host == bindparam("wanted_site", type_=library_media.c.host.type))
    if wanted.added_from is not None:
        conditions.append(mine.c.added_at >= bindparam("added_from", type_=moment))
    if wanted.added_until is not None:
        conditions.append(mine.c.added_at < bindparam("added_until", type_=moment))
    return conditions


def mark_conditions(wanted: Wanted, mine: FromClause) -> list[ColumnElement[bool]]:
    """Of these, what the viewer has marked, whoever owns the library."""
    conditions: list[ColumnElement[bool]] = []
    noted = [name for name, is_set in _marks(wanted) if is_set]
    if noted:
        conditions.append(is_noted(mine, lambda own: and_(*(own.c[name].is_not(None) for name in noted))))
    free = [name for name, is_set in _marks(wanted) if not is_set]
    if free:
        conditions.append(~is_noted(mine, lambda own: or_(*(own.c[name].is_not(None) for name in free))))
    return conditions


def of_kinds(kinds: Iterable[Kind], mine: FromClause) -> ColumnElement[bool]:
    """Whether a holding is of one of the kinds, as people call them."""
    return _one_of(
        mine.c.facet.bitwise_rshift(_number(OF_KIND.bit_length() - 1)), sorted(KINDS[kind] for kind in kinds)
    )


def is_noted(mine: FromClause, what: Callable[[FromClause], ColumnElement[bool]]) -> ColumnElement[bool]:
    """Whether the viewer has noted something about an item."""
    own = shelf.alias()
    return exists(
        select(literal_column("1"))
        .select_from(own)
        .where(own.c.user_id == bindparam("viewer"), own.c.media_id == mine.c.media_id, what(own))
        .correlate(mine)
    )


def _marks(wanted: Wanted) -> list[tuple[str, bool]]:
    flags = ((column, getattr(wanted, flag)) for flag, column in _FLAGS.items())
    return [(column, is_set) for column, is_set in flags if is_set is not None]


def _one_of(number: ColumnElement[int], values: Iterable[int]) -> ColumnElement[bool]:
    return number.in_([_number(value) for value in values])


def _number(value: int) -> ColumnElement[int]:
    return literal_column(str(value), Integer)
