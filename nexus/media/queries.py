"""What a viewer sees: items with their capabilities, a page at a time."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    tuple_,
    union_all,
)

from nexus.db.session import Query, Session
from nexus.db.tables import library_media, media, memberships
from nexus.errors import InvalidRequest, NotFound
from nexus.libraries import access, catalog
from nexus.media.items import HELD_BY_VIEWER, SEEN, ItemRow, item_rows
from nexus.states import capabilities
from nexus.states.capabilities import Capabilities
from nexus.states.media import Kind, MediaStatus

T = TypeVar("T")
PAGE = 50
MOST = 200
#: With more libraries than this, the list is sorted as a whole instead of walked library by library.
WALKS = 8
#: Statements of the list that are kept: those of the usual page sizes stay.
SHAPES = 128
NOT_OURS = "This cursor is not one that Nexus gave out. Start from the first page."


#: The types of files that an address may answer with.
_KINDS_OF_FILES = {"application/pdf": Kind.PDF, "application/epub+zip": Kind.EPUB}
_DATES = ("created_at", "updated_at", "processing_started_at", "processing_completed_at", "failed_at")
_SEEN_ONE = (
    select(*SEEN, func.max(library_media.c.added_at).label("added_at"))
    .join_from(library_media, memberships, memberships.c.library_id == library_media.c.library_id)
    .join(media, media.c.id == library_media.c.media_id)
    .where(library_media.c.media_id == bindparam("media_id"), HELD_BY_VIEWER)
    .group_by(media.c.id)
    .subquery("seen")
)
_ONE = Query(item_rows(_SEEN_ONE, _SEEN_ONE.c.revision), ItemRow)
_ONE_AT = Query(item_rows(_SEEN_ONE, bindparam("number", type_=Integer)), ItemRow)


@dataclass(frozen=True)
class View:
    """One item as one viewer sees it."""

    row: ItemRow
    capabilities: Capabilities
    may_retry: bool
    #: When it is fetched, if its site is busy or asked Nexus to wait: a new item is due at once. Once that is over,
    #: its turn is next.
    waiting_until: datetime | None = None

    @property
    def shown_kind(self) -> Kind:
        """What people call it: an address that answered with a PDF or an EPUB is one."""
        return _KINDS_OF_FILES.get(self.row.file_type or "", self.row.kind)

    @property
    def newer_revision(self) -> int | None:
        """A newer version that the viewer can take, if there is one."""
        return self.row.newest_revision if 0 < self.row.revision < self.row.newest_revision else None


@dataclass(frozen=True)
class Page(Generic[T]):
    items: list[T]
    #: What to ask for next; None at the end.
    next_cursor: str | None


@dataclass(frozen=True)
class ItemPage(Page[T]):
    """A page of what belongs to one item, and what the viewer can do with that item."""

    capabilities: Capabilities


def get_media(session: Session, media_id: UUID, viewer: UUID, number: int | None = None) -> View:
    """Return one item as its viewer sees it, or at a revision that the caller has found for them.

    Raises NotFound if there is none that the viewer may read.
    """
    if number is None:
        row = session.first(_ONE, media_id=media_id, viewer=viewer)
    else:
        row = session.first(_ONE_AT, media_id=media_id, viewer=viewer, number=number)
    if row is None:
        raise NotFound
    return _view(row)


def newest(
    session: Session,
    viewer: UUID,
    *,
    library_id: UUID | None = None,
    status: MediaStatus | None = None,
    cursor: str | None = None,
    most: int = PAGE,
) -> Page[View]:
    """List what the viewer's libraries hold, the latest added first; an item in several of them is listed once."""
    if library_id is None:
        chosen = [row.id for row in catalog.list_libraries(session, viewer)]
    else:
        access.require_member(session, library_id, viewer)
        chosen = [library_id]
    if not chosen:
        return Page([], None)
    added_at, media_id = moment_and_id(cursor)
    if len(chosen) > WALKS:
        statement, values = _long_listing(status is not None, cursor is not None, most + 1), dict[str, Any]()
    else:
        statement = _listing(len(chosen), status is not None, cursor is not None, most + 1)
        values = {f"library_{place}": value for place, value in enumerate(chosen)}
    if cursor is not None:
        values |= {"added_at": added_at, "last_id": media_id}
    if status is not None:
        values["wanted"] = status.value
    rows = session.all(statement, viewer=viewer, **values)
    more = len(rows) > most
    rows = rows[:most]
    return Page(
        [_view(row) for row in rows],
        cursor_after(rows[-1].added_at.isoformat(), rows[-1].id.hex) if more else None,
    )


def _view(row: ItemRow) -> View:
    if row.created_at < row.held_since:
        row = _as_new(row)
    derived = capabilities.derive(
        row.kind,
        row.processing_status,
        row.last_error_code,
        has_file=row.has_file,
        has_plain_text=row.has_text,
        has_playback_url=row.external_playback_url is not None,
        has_own_text=row.is_entered,
    )
    may_retry = row.managed and row.processing_status is MediaStatus.FAILED
    is_queued = row.processing_status is MediaStatus.PENDING and row.canonical_url is not None
    waiting_until = row.run_after if is_queued and row.run_after > row.updated_at else None
    return View(row, derived, may_retry, waiting_until)


def _as_new(row: ItemRow) -> ItemRow:
    """An item as it looks to somebody who has held it for a shorter time than others: no date is before their own."""
    dates = {name: getattr(row, name) for name in _DATES}
    return row._replace(
        **{name: max(at, row.held_since) for name, at in dates.items() if at is not None},
    )


@lru_cache(SHAPES)
def _listing(count: int, by_status: bool, resumed: bool, most: int) -> Query[ItemRow]:
    """One limited walk along each library, then merged: the cost does not grow with the libraries' size."""
    walks = [_walk(place, by_status, resumed, most, alone=count == 1) for place in range(count)]
    merged = (union_all(*walks) if count > 1 else walks[0]).subquery("merged")
    query = select(merged.c.media_id, func.max(merged.c.added_at).label("added_at"))
    return _latest(query, merged, None, most)


@lru_cache(SHAPES)
def _long_listing(by_status: bool, resumed: bool, most: int) -> Query[ItemRow]:
    """For a viewer of many libraries: everything they hold, once, sorted."""
    held = library_media.join(memberships, memberships.c.library_id == library_media.c.library_id)
    latest = func.max(library_media.c.added_at)
    query = (
        select(library_media.c.media_id, latest.label("added_at"))
        .select_from(held)
        .where(memberships.c.user_id == bindparam("viewer"))
    )
    if by_status:
        query = query.where(_of_status(library_media.c.media_id))
    place = _place()
    having = tuple_(latest, library_media.c.media_id) < place if resumed else None
    return _latest(query, library_media, having, most)


def _latest(query: Select[Any], held: Any, having: ColumnElement[bool] | None, most: int) -> Query[ItemRow]:
    """The next items that a query holds, each once, the latest added first."""
    grouped = query.group_by(held.c.media_id)
    if having is not None:
        grouped = grouped.having(having)
    order = (func.max(held.c.added_at).desc(), held.c.media_id.desc())
    latest = grouped.order_by(*order).limit(written_out(most)).subquery("latest")
    seen = (
        select(*SEEN, latest.c.added_at)
        .join_from(latest, library_media, library_media.c.media_id == latest.c.media_id)
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .join(media, media.c.id == latest.c.media_id)
        .where(HELD_BY_VIEWER)
        .group_by(media.c.id, latest.c.added_at)
        .subquery("seen")
    )
    return Query(item_rows(seen, seen.c.revision).order_by(seen.c.added_at.desc(), seen.c.id.desc()), ItemRow)


def written_out(most: int) -> ColumnElement[int]:
    """Not a parameter: without the number PostgreSQL expects a tenth of the library, and plans again at each call."""
    return literal_column(str(most), Integer)


def _place() -> Any:
    """Where the page before ended."""
    at = bindparam("added_at", type_=library_media.c.added_at.type)
    return tuple_(at, bindparam("last_id", type_=library_media.c.media_id.type))


def _of_status(media_id: ColumnElement[UUID]) -> ColumnElement[bool]:
    return exists(
        select(media.c.id).where(media.c.id == media_id, media.c.processing_status == bindparam("wanted"))
    )


def _walk(place: int, by_status: bool, resumed: bool, most: int, alone: bool) -> Select[Any]:
    """The next entries of one library, without those that an earlier page showed for another library."""
    mine = library_media.alias(f"held_{place}")
    order = tuple_(mine.c.added_at, mine.c.media_id)
    conditions: list[ColumnElement[bool]] = [
        mine.c.library_id == bindparam(f"library_{place}", type_=mine.c.library_id.type)
    ]
    if resumed:
        conditions.append(order < _place())
        if not alone:
            conditions.append(~_shown_earlier(mine))
    if by_status:
        conditions.append(_of_status(mine.c.media_id))
    walk = (
        select(mine.c.media_id, mine.c.added_at)
        .where(*conditions)
        .order_by(mine.c.added_at.desc(), mine.c.media_id.desc())
        .limit(written_out(most))
    )
    return select(walk.subquery(f"walk_{place}"))


def _shown_earlier(mine: Any) -> ColumnElement[bool]:
    other, member = library_media.alias(), memberships.alias()
    return exists(
        select(literal_column("1"))
        .select_from(other.join(member, member.c.library_id == other.c.library_id))
        .where(
            other.c.media_id == mine.c.media_id,
            member.c.user_id == bindparam("viewer"),
            tuple_(other.c.added_at, other.c.media_id) >= _place(),
        )
        .correlate(mine)
    )


def cursor_after(*parts: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _parts(cursor: str) -> list[Any]:
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidRequest(NOT_OURS) from error
    return parts if isinstance(parts, list) else []


def moment_and_id(cursor: str | None) -> tuple[datetime, UUID] | tuple[None, None]:
    if cursor is None:
        return None, None
    try:
        moment, media_id = _parts(cursor)
        added_at = datetime.fromisoformat(moment)
        if added_at.tzinfo is None:
            raise ValueError
        return added_at.astimezone(UTC), UUID(hex=media_id)
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidRequest(NOT_OURS) from error


def number_in(cursor: str | None, start: int) -> int:
    if cursor is None:
        return start
    match _parts(cursor):
        case [int(number)] if 0 <= number < 2**63:
            return number
    raise InvalidRequest(NOT_OURS)
