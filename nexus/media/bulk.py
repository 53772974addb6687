"""What is done to many items at once: each in a transaction of its own, so that one refusal stops no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import select

from nexus.db.session import Query, Session, Sessions
from nexus.db.tables import media
from nexus.errors import ApiError, public_code
from nexus.libraries import access
from nexus.media import files, submit
from nexus.media.files import Files
from nexus.queue import Queue
from nexus.states.media import MediaStatus, Stage

#: How many items a request may name.
MOST = 1000


@dataclass(frozen=True)
class Refusal:
    media_id: UUID
    code: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """With which of several items something was done, and why not with the others."""

    done: list[UUID]
    refused: list[Refusal]


class _Failed(NamedTuple):
    id: UUID
    last_error_code: str | None


#: What the viewer may retry. Only its user has the file of a failed upload.
_FAILED = Query(
    select(media.c.id, media.c.last_error_code)
    .where(
        media.c.processing_status == MediaStatus.FAILED.value,
        media.c.failure_stage != Stage.UPLOAD.value,
        access.READABLE,
        access.MANAGED,
    )
    .order_by(media.c.failed_at, media.c.id),
    _Failed,
)


def count_failures(session: Session, viewer: UUID) -> dict[str, int]:
    """Return how many items failed with each error, of those that the viewer may retry; the most frequent first."""
    codes = Counter(public_code(row.last_error_code) or "" for row in session.all(_FAILED, viewer=viewer))
    return dict(codes.most_common())


def failed_items(session: Session, viewer: UUID, error_code: str | None = None) -> list[UUID]:
    """Return what failed and the viewer may retry, with one error or with any; the longest failed first."""
    rows = session.all(_FAILED, viewer=viewer)
    return [row.id for row in rows if error_code is None or public_code(row.last_error_code) == error_code]


def retry_items(
    sessions: Sessions, queue: Queue, viewer: UUID, media_ids: Iterable[UUID], request_id: str | None = None
) -> Outcome:
    return _each(
        media_ids, lambda media_id: submit.retry_received(sessions, queue, media_id, viewer, request_id)
    )


def delete_items(sessions: Sessions, stored: Files, viewer: UUID, media_ids: Iterable[UUID]) -> Outcome:
    """Take items out of every library that the viewer administers."""
    return _each(media_ids, lambda media_id: files.delete_media_and_files(sessions, stored, viewer, media_id))


def _each(media_ids: Iterable[UUID], act: Callable[[UUID], object]) -> Outcome:
    outcome = Outcome([], [])
    for media_id in dict.fromkeys(media_ids):
        try:
            act(media_id)
        except ApiError as error:
            outcome.refused.append(Refusal(media_id, error.code, error.message))
        else:
            outcome.done.append(media_id)
    return outcome
