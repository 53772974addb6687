"""What a viewer sees: items with their capabilities, a page at a time."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Integer, bindparam, func, literal_column, select

from nexus.db.session import Query, Session
from nexus.db.tables import library_media, media, memberships
from nexus.db.value_lists import in_values, numbered_values, padded_values
from nexus.errors import InvalidRequest, NotFound
from nexus.media.illustrations import ASSET
from nexus.media.items import HELD_BY_VIEWER, SEEN, ItemRow, item_rows
from nexus.states import capabilities
from nexus.states.capabilities import Capabilities
from nexus.states.media import KINDS_OF_FILES, Kind, MediaStatus

T = TypeVar("T")
PAGE = 50
MOST = 200
WORDS_PER_MINUTE = 230
#: With more libraries than this, a list is sorted as a whole instead of walked library by library.
WALKS = 8
#: Statements of a list that are kept: those of the usual filters and page sizes stay.
SHAPES = 256
NOT_OURS = "This cursor is not one that Nexus gave out. Start from the first page."


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
        """The kind that people see: an address that answered with a PDF or an EPUB is one."""
        return KINDS_OF_FILES.get(self.row.file_type or "", self.row.kind)

    @property
    def reading_minutes(self) -> int:
        """At an even pace, and at least one; 0 without a text."""
        return max(1, round(self.row.words / WORDS_PER_MINUTE)) if self.row.has_text else 0

    @property
    def can_be_heard(self) -> bool:
        """Whether it is a recording that can be played."""
        return self.capabilities.can_play and self.row.kind in capabilities.PLAYABLE

    @property
    def lead(self) -> str | None:
        """The name of the picture that stands for it, if it is there: for a book its cover, else its first."""
        image = self.row.lead_image or ""
        return image.removeprefix(ASSET) if image.startswith(ASSET) else self.row.picture

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
    return view_of(row)


def views_of(session: Session, viewer: UUID, media_ids: Sequence[UUID]) -> dict[UUID, View]:
    """Return items as their viewer sees them, by their ids. Those that the viewer may not read are left out."""
    chosen = padded_values(media_ids)
    if not chosen:
        return {}
    rows = session.all(_several(len(chosen)), viewer=viewer, **numbered_values("item", chosen))
    return {row.id: view_of(row) for row in rows}


@lru_cache
def _several(count: int) -> Query[ItemRow]:
    seen = (
        select(*SEEN, func.max(library_media.c.added_at).label("added_at"))
        .join_from(library_media, memberships, memberships.c.library_id == library_media.c.library_id)
        .join(media, media.c.id == library_media.c.media_id)
        .where(in_values(library_media.c.media_id, "item", count), HELD_BY_VIEWER)
        .group_by(media.c.id)
        .subquery("seen")
    )
    return Query(item_rows(seen, seen.c.revision), ItemRow)


def view_of(row: ItemRow) -> View:
    """Return a row with what follows from it."""
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


def written_out(most: int) -> ColumnElement[int]:
    """Not a parameter: without the number PostgreSQL expects a tenth of the library, and plans again at each call."""
    return literal_column(str(most), Integer)


def cursor_after(*parts: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts, ensure_ascii=False).encode()).decode().rstrip("=")


def cursor_parts(cursor: str) -> list[Any]:
    """Return what a cursor was made of. Raises InvalidRequest for one that Nexus did not make."""
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidRequest(NOT_OURS) from error
    return parts if isinstance(parts, list) else []


def moment_and_id(cursor: str | None) -> tuple[datetime, UUID] | tuple[None, None]:
    if cursor is None:
        return None, None
    try:
        moment, row_id = cursor_parts(cursor)
        return moment_in(moment), UUID(hex=row_id)
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidRequest(NOT_OURS) from error


def moment_in(text: Any) -> datetime:
    """Return a moment that a cursor holds. Raises ValueError or TypeError for anything else."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(text)
    return found.astimezone(UTC)


def number_in(cursor: str | None, start: int) -> int:
    if cursor is None:
        return start
    match cursor_parts(cursor):
        case [int(number)] if 0 <= number < 2**63:
            return number
    raise InvalidRequest(NOT_OURS)
