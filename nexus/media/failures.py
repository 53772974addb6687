"""What has failed and can be retried, by error."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Integer, Select, bindparam, literal_column, select

from nexus.db.facets import facets_of
from nexus.db.session import Query, Session
from nexus.db.tables import library_media, media, memberships
from nexus.errors import public_code
from nexus.libraries import access
from nexus.states.media import MediaStatus, Stage


class _Failed(NamedTuple):
    id: UUID
    last_error_code: str | None


#: Found along the index of each library's list. The status itself decides: an item may fail or be retried meanwhile.
_HELD = (
    select(library_media.c.media_id)
    .join(memberships, memberships.c.library_id == library_media.c.library_id)
    .where(
        memberships.c.user_id == bindparam("viewer"),
        library_media.c.facet.in_(
            literal_column(str(facet), Integer) for facet in facets_of(MediaStatus.FAILED)
        ),
    )
)
_HELD_IN = _HELD.where(library_media.c.library_id == bindparam("library_id"))


def _may_retry(held: Select[Any]) -> Query[_Failed]:
    """What the viewer may retry. Only its user has the file of a failed upload."""
    return Query(
        select(media.c.id, media.c.last_error_code)
        .where(
            media.c.id.in_(held),
            media.c.processing_status == MediaStatus.FAILED.value,
            media.c.failure_stage != Stage.UPLOAD.value,
            access.MANAGED,
        )
        .order_by(media.c.failed_at, media.c.id),
        _Failed,
    )


_FAILED = _may_retry(_HELD)
_FAILED_IN = _may_retry(_HELD_IN)


def count_failed_items(session: Session, viewer: UUID, library_id: UUID | None = None) -> dict[str, int]:
    """Return how many items failed with each error, of those that the viewer may retry; the most frequent first."""
    codes = Counter(public_code(row.last_error_code) or "" for row in _failed(session, viewer, library_id))
    return dict(codes.most_common())


def failed_items(
    session: Session, viewer: UUID, error_code: str | None = None, library_id: UUID | None = None
) -> list[UUID]:
    """Return what failed and the viewer may retry, with one error or with any; the longest failed first."""
    rows = _failed(session, viewer, library_id)
    return [row.id for row in rows if error_code is None or public_code(row.last_error_code) == error_code]


def _failed(session: Session, viewer: UUID, library_id: UUID | None) -> list[_Failed]:
    if library_id is None:
        return session.all(_FAILED, viewer=viewer)
    return session.all(_FAILED_IN, viewer=viewer, library_id=library_id)
