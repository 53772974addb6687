"""What a viewer sees: media with their capabilities, their text, their history, and what happens to them."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, TypeVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    tuple_,
    union_all,
)

from nexus.db.session import Row, Session, Statement
from nexus.db.tables import fragments, history, libraries, library_media, media, media_file, memberships
from nexus.errors import InvalidRequest, NotFound
from nexus.ingest import access
from nexus.states import capabilities
from nexus.states.capabilities import Capabilities
from nexus.states.media import Kind, Status

T = TypeVar("T")
PAGE = 50
MOST = 200
NOT_OURS = "This cursor is not one that Nexus gave out. Start from the first page."

_HAS_FILE = exists(select(media_file.c.media_id).where(media_file.c.media_id == media.c.id).correlate(media))
_HAS_TEXT = exists(select(fragments.c.media_id).where(fragments.c.media_id == media.c.id).correlate(media))
_FACTS = [*media.c, _HAS_FILE.label("has_file"), _HAS_TEXT.label("has_text"), access.MANAGED.label("managed")]
_ONE = Statement(select(*_FACTS).where(media.c.id == bindparam("media_id"), access.READABLE))
_LIBRARIES = Statement(
    select(
        libraries.c.id, libraries.c.name, libraries.c.is_default, libraries.c.created_at, memberships.c.role
    )
    .join(memberships, memberships.c.library_id == libraries.c.id)
    .where(memberships.c.user_id == bindparam("viewer"))
    .order_by(libraries.c.is_default.desc(), libraries.c.created_at, libraries.c.id)
)
_FRAGMENTS = Statement(
    select(fragments.c.position, fragments.c.text)
    .where(
        fragments.c.media_id == bindparam("media_id"),
        fragments.c.position > bindparam("after", type_=BigInteger),
    )
    .order_by(fragments.c.position)
    .limit(bindparam("most"))
)
_HISTORY = Statement(
    select(history)
    .where(
        history.c.subject == "media",
        history.c.subject_id == bindparam("media_id"),
        history.c.id > bindparam("after"),
    )
    .order_by(history.c.id)
    .limit(bindparam("most"))
)


@dataclass(frozen=True)
class View:
    """One media as one viewer sees it."""

    row: Row
    capabilities: Capabilities
    may_retry: bool


@dataclass(frozen=True)
class Page(Generic[T]):
    items: list[T]
    #: What to ask for next; None at the end.
    next_cursor: str | None


def get(session: Session, media_id: UUID, viewer: UUID) -> View:
    """Raises NotFound where there is none that the viewer may read."""
    row = session.first(_ONE, media_id=media_id, viewer=viewer)
    if row is None:
        raise NotFound
    return _view(row)


def newest(
    session: Session,
    viewer: UUID,
    *,
    library_id: UUID | None = None,
    status: Status | None = None,
    cursor: str | None = None,
    most: int = PAGE,
) -> Page[View]:
    """What the viewer's libraries hold, the latest added first. A media in several of them stands once."""
    if library_id is None:
        chosen = [row.id for row in session.all(_LIBRARIES, viewer=viewer)]
    else:
        access.require_member(session, library_id, viewer)
        chosen = [library_id]
    if not chosen:
        return Page([], None)
    added_at, media_id = _moment_and_id(cursor)
    statement = _listing(len(chosen), status is not None, cursor is not None)
    values: dict[str, Any] = {f"library_{place}": value for place, value in enumerate(chosen)}
    if cursor is not None:
        values |= {"added_at": added_at, "last_id": media_id}
    if status is not None:
        values["status"] = status.value
    rows = session.all(statement, viewer=viewer, most=most + 1, **values)
    more = len(rows) > most
    rows = rows[:most]
    return Page(
        [_view(row) for row in rows],
        _cursor(rows[-1].added_at.isoformat(), rows[-1].id.hex) if more else None,
    )


def text(
    session: Session, media_id: UUID, viewer: UUID, cursor: str | None = None, most: int = PAGE
) -> Page[Row]:
    access.require_readable(session, media_id, viewer)
    return _numbered(session, _FRAGMENTS, "position", media_id, cursor, most, start=-1)


def events(
    session: Session, media_id: UUID, viewer: UUID, cursor: str | None = None, most: int = PAGE
) -> Page[Row]:
    access.require_readable(session, media_id, viewer)
    return _numbered(session, _HISTORY, "id", media_id, cursor, most, start=0)


def _numbered(
    session: Session,
    statement: Statement,
    column: str,
    media_id: UUID,
    cursor: str | None,
    most: int,
    start: int,
) -> Page[Row]:
    rows = session.all(statement, media_id=media_id, after=_number(cursor, start), most=most + 1)
    more = len(rows) > most
    rows = rows[:most]
    return Page(rows, _cursor(getattr(rows[-1], column)) if more else None)


def _view(row: Row) -> View:
    status = Status(row.processing_status)
    derived = capabilities.derive(
        Kind(row.kind),
        status,
        row.last_error_code,
        has_file=row.has_file,
        has_plain_text=row.has_text,
        has_playback_url=row.external_playback_url is not None,
    )
    return View(row, derived, may_retry=bool(row.managed) and status is Status.FAILED)


@cache
def _listing(count: int, by_status: bool, resumed: bool) -> Statement:
    """One limited walk along each library, then merged: the cost does not grow with the libraries' size."""
    walks = [_walk(place, by_status, resumed, alone=count == 1) for place in range(count)]
    merged = (union_all(*walks) if count > 1 else walks[0]).subquery("merged")
    latest = (
        select(merged.c.media_id, func.max(merged.c.added_at).label("added_at"))
        .group_by(merged.c.media_id)
        .order_by(func.max(merged.c.added_at).desc(), merged.c.media_id.desc())
        .limit(bindparam("most"))
        .subquery("latest")
    )
    return Statement(
        select(*_FACTS, latest.c.added_at)
        .join(latest, latest.c.media_id == media.c.id)
        .order_by(latest.c.added_at.desc(), media.c.id.desc())
    )


def _walk(place: int, by_status: bool, resumed: bool, alone: bool) -> Select[Any]:
    """The next entries of one library, less those that another library of the list shows earlier in it."""
    mine = library_media.alias(f"held_{place}")
    order = tuple_(mine.c.added_at, mine.c.media_id)
    conditions: list[ColumnElement[bool]] = [
        mine.c.library_id == bindparam(f"library_{place}", type_=mine.c.library_id.type)
    ]
    if resumed:
        at = bindparam("added_at", type_=mine.c.added_at.type)
        last = bindparam("last_id", type_=mine.c.media_id.type)
        conditions.append(order < tuple_(at, last))
        if not alone:
            conditions.append(~_shown_earlier(mine, at, last))
    if by_status:
        of_status = exists(
            select(media.c.id).where(
                media.c.id == mine.c.media_id, media.c.processing_status == bindparam("status")
            )
        )
        conditions.append(of_status)
    walk = (
        select(mine.c.media_id, mine.c.added_at)
        .where(*conditions)
        .order_by(mine.c.added_at.desc(), mine.c.media_id.desc())
        .limit(bindparam("most"))
    )
    return select(walk.subquery(f"walk_{place}"))


def _shown_earlier(mine: Any, at: Any, last: Any) -> ColumnElement[bool]:
    other, member = library_media.alias(), memberships.alias()
    return exists(
        select(literal_column("1"))
        .select_from(other.join(member, member.c.library_id == other.c.library_id))
        .where(
            other.c.media_id == mine.c.media_id,
            member.c.user_id == bindparam("viewer"),
            tuple_(other.c.added_at, other.c.media_id) >= tuple_(at, last),
        )
        .correlate(mine)
    )


def _cursor(*parts: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _parts(cursor: str) -> list[Any]:
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidRequest(NOT_OURS) from error
    return parts if isinstance(parts, list) else []


def _moment_and_id(cursor: str | None) -> tuple[datetime, UUID] | tuple[None, None]:
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


def _number(cursor: str | None, start: int) -> int:
    if cursor is None:
        return start
    match _parts(cursor):
        case [int(number)] if 0 <= number < 2**63:
            return number
    raise InvalidRequest(NOT_OURS)
