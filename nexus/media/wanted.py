"""What a viewer wants to see of the list, as conditions on what a library holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, and_, bindparam, exists, func, literal_column, or_, select

from nexus.db.moves import constant
from nexus.db.shelves import shelf
from nexus.db.tables import library_media, media, media_file, one_of
from nexus.media.queries import KINDS_OF_FILES
from nexus.states.media import Kind, MediaStatus

_FLAGS = {"is_read": "read_at", "is_archived": "archived_at", "is_favourite": "favourite_at"}
_FILES = frozenset(KINDS_OF_FILES.values())
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


def holding_conditions(wanted: Wanted, mine: FromClause) -> list[ColumnElement[bool]]:
    """What has to be true of a holding."""
    conditions: list[ColumnElement[bool]] = []
    moment = library_media.c.added_at.type
    if wanted.site is not None:
        conditions.append(mine.c.host == bindparam("wanted_site", type_=library_media.c.host.type))
    if wanted.added_from is not None:
        conditions.append(mine.c.added_at >= bindparam("added_from", type_=moment))
    if wanted.added_until is not None:
        conditions.append(mine.c.added_at < bindparam("added_until", type_=moment))
    if wanted.statuses or wanted.kind is not None:
        conditions.append(_of_item(wanted, mine))
    noted = [column for flag, column in _FLAGS.items() if getattr(wanted, flag) is True]
    if noted:
        conditions.append(is_noted(mine, lambda own: and_(*(own.c[name].is_not(None) for name in noted))))
    free = [column for flag, column in _FLAGS.items() if getattr(wanted, flag) is False]
    if free:
        conditions.append(~is_noted(mine, lambda own: or_(*(own.c[name].is_not(None) for name in free))))
    return conditions


def is_noted(mine: FromClause, what: Callable[[FromClause], ColumnElement[bool]]) -> ColumnElement[bool]:
    """Whether the viewer has noted something about an item."""
    own = shelf.alias()
    return exists(
        select(literal_column("1"))
        .select_from(own)
        .where(own.c.user_id == bindparam("viewer"), own.c.media_id == mine.c.media_id, what(own))
        .correlate(mine)
    )


def _of_item(wanted: Wanted, mine: FromClause) -> ColumnElement[bool]:
    conditions = [media.c.id == mine.c.media_id]
    if wanted.statuses:
        conditions.append(one_of(media.c.processing_status, wanted.statuses))
    if wanted.kind is not None:
        conditions.append(of_kind(wanted.kind, mine))
    return exists(select(media.c.id).where(*conditions).correlate(mine))


def of_kind(kind: Kind, mine: FromClause) -> ColumnElement[bool]:
    types = [name for name, made in KINDS_OF_FILES.items() if made is kind or kind not in _FILES]
    is_one = media.c.kind == constant(kind.value)
    answered = exists(
        select(media_file.c.media_id)
        .where(
            media_file.c.media_id == mine.c.media_id,
            media_file.c.revision == func.coalesce(mine.c.revision, media.c.revision),
            media_file.c.content_type.in_([constant(name) for name in types]),
        )
        .correlate(mine, media)
    )
    return or_(is_one, answered) if kind in _FILES else and_(is_one, ~answered)
