"""How much of the store one user may take: by the bytes of their files and pictures, those fetched for them included,
and by uploads that they have begun."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, and_, bindparam, cast, func, literal_column, select

from nexus.db.moves import constant
from nexus.db.pictures import pictures
from nexus.db.rows import IdRow
from nexus.db.session import Query, Session
from nexus.db.tables import media, media_file, revisions, uploads, users
from nexus.errors import RateLimited, StorageFull
from nexus.libraries import access
from nexus.states.media import FILE_KINDS, MediaStatus

GIB = 1024**3


@dataclass(frozen=True)
class FileShares:
    """What one user may take. The owner, whose machine it is, may take everything."""

    stored_bytes: int
    open_uploads: int
    owner: UUID | None = None


class _Stored(NamedTuple):
    filed: int
    fetched: int
    coming: int
    shown: int


class _OpenUploads(NamedTuple):
    how_many: int
    first_expires_at: datetime | None


_IN_LINE = Query(
    select(users.c.id).where(users.c.id == bindparam("user_id")).with_for_update(key_share=True), IdRow
)
_OWN = media.c.created_by_user_id == bindparam("user_id")
_AWAITED = media.c.processing_status == MediaStatus.PENDING.value


def _sum(column: Any) -> Any:
    # PostgreSQL sums bigints to a numeric.
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


#: What was fetched counts towards the user who had the text read, as long as one of their libraries holds it: whoever
#: added the item first, or refreshed it.
_READ_FOR = func.coalesce(revisions.c.made_by, media.c.created_by_user_id) == bindparam("user_id")
_FETCHED = (
    select(_sum(media_file.c.size_bytes))
    .join_from(media_file, media, media.c.id == media_file.c.media_id)
    .outerjoin(
        revisions,
        and_(revisions.c.media_id == media_file.c.media_id, revisions.c.number == media_file.c.revision),
    )
    .where(media_file.c.revision > literal_column("0"), _READ_FOR, access.READABLE)
)
#: The same holds for pictures. Two addresses of a text may have the same object.
_SHOWN = (
    select(pictures.c.storage_path, pictures.c.size_bytes)
    .join_from(pictures, media, media.c.id == pictures.c.media_id)
    .where(pictures.c.user_id == bindparam("user_id"), pictures.c.name.is_not(None), access.READABLE)
    .distinct()
    .subquery()
)
#: What was begun and not confirmed counts as if it had arrived: it may have.
_STORED = Query(
    select(
        select(_sum(media_file.c.size_bytes))
        .join_from(media, media_file, media_file.c.media_id == media.c.id)
        .where(_OWN, media.c.kind.in_([constant(kind.value) for kind in sorted(FILE_KINDS)]))
        .scalar_subquery()
        .label("filed"),
        _FETCHED.scalar_subquery().label("fetched"),
        select(_sum(uploads.c.size_bytes))
        .join_from(media, uploads, uploads.c.media_id == media.c.id)
        .where(_OWN, _AWAITED)
        .scalar_subquery()
        .label("coming"),
        select(_sum(_SHOWN.c.size_bytes)).scalar_subquery().label("shown"),
    ),
    _Stored,
)
_OPEN = Query(
    select(func.count().label("how_many"), func.min(uploads.c.expires_at).label("first_expires_at"))
    .join_from(media, uploads, uploads.c.media_id == media.c.id)
    .where(_OWN, _AWAITED, uploads.c.expires_at > bindparam("now", type_=uploads.c.expires_at.type)),
    _OpenUploads,
)


def stand_in_line(session: Session, viewer: UUID) -> None:
    """Let no other transaction give the user a new file until this one ends: the same file can't come first twice, and
    two can't both take the last of a share."""
    session.first(_IN_LINE, user_id=viewer)


def require_place(session: Session, shares: FileShares, viewer: UUID, size: int) -> None:
    """Pass users who may begin an upload of this size. Raises RateLimited or StorageFull for others.

    Exact if the caller stands in line.
    """
    if viewer == shares.owner:
        return
    (found,) = session.all(_OPEN, user_id=viewer, now=session.now)
    if found.how_many >= shares.open_uploads and found.first_expires_at is not None:
        raise RateLimited(
            f"You have started {found.how_many} uploads that have not arrived. Finish some of them, then go on.",
            max(1, ceil((found.first_expires_at - session.now).total_seconds())),
        )
    require_room(session, shares, viewer, size)


def require_room(session: Session, shares: FileShares, viewer: UUID, size: int) -> None:
    """Raises StorageFull if the user may not store so many bytes more. Exact if the caller stands in line."""
    if not has_room(session, shares, viewer, size):
        raise StorageFull(
            f"Your files would take up more than {shares.stored_bytes / GIB:g} GiB. Delete some, or ask for more room."
        )


def has_room(session: Session, shares: FileShares, viewer: UUID, size: int) -> bool:
    """Whether the user may store so many bytes more."""
    if viewer == shares.owner:
        return True
    (found,) = session.all(_STORED, user_id=viewer, viewer=viewer)
    return sum(found) + size <= shares.stored_bytes
