"""What is done to many items at once: one refusal stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from nexus.db.session import Sessions
from nexus.errors import ApiError
from nexus.libraries import catalog
from nexus.media import deletions, shelving, submit
from nexus.media.files import Files
from nexus.media.shelving import Marks
from nexus.queue import Queue

#: How many items a request may name.
MOST = 1000


@dataclass(frozen=True)
class RefusedItem:
    media_id: UUID
    code: str
    message: str


@dataclass(frozen=True)
class BulkResult:
    """Which of several items something was done with, and why it was refused for the others."""

    done: list[UUID]
    refused: list[RefusedItem]


def retry_each(
    sessions: Sessions, queue: Queue, viewer: UUID, media_ids: Iterable[UUID], request_id: str | None = None
) -> BulkResult:
    """Retry items, each in a transaction of its own."""
    return _each(
        media_ids, lambda media_id: submit.retry_received(sessions, queue, media_id, viewer, request_id)
    )


def delete_each(sessions: Sessions, stored: Files, viewer: UUID, media_ids: Iterable[UUID]) -> BulkResult:
    """Take items out of every library that the viewer administers, each in a transaction of its own."""
    return _each(
        media_ids, lambda media_id: deletions.delete_media_and_files(sessions, stored, viewer, media_id)
    )


def mark_each(sessions: Sessions, viewer: UUID, media_ids: Iterable[UUID], marks: Marks) -> BulkResult:
    """Note the same about several items, in one transaction: each can only be refused for a reason of its own.

    They are taken in the order of their ids, so that two requests don't wait for each other.
    """
    with sessions.begin() as session:
        return _each(sorted(media_ids), lambda media_id: shelving.mark_item(session, media_id, viewer, marks))


def remove_each(
    sessions: Sessions, stored: Files, viewer: UUID, library_id: UUID, media_ids: Iterable[UUID]
) -> BulkResult:
    """Take items out of one library."""
    return _each(
        media_ids, lambda one: deletions.remove_media_and_files(sessions, stored, viewer, library_id, one)
    )


def copy_each(sessions: Sessions, viewer: UUID, library_id: UUID, media_ids: Iterable[UUID]) -> BulkResult:
    """Put items into a library."""

    def copy(media_id: UUID) -> None:
        with sessions.begin() as session:
            catalog.add_media(session, library_id, media_id, viewer)

    return _each(media_ids, copy)


def move_each(
    sessions: Sessions, viewer: UUID, from_id: UUID, to_id: UUID, media_ids: Iterable[UUID]
) -> BulkResult:
    """Put items into a library, and take them out of another."""

    def move(media_id: UUID) -> None:
        with sessions.begin() as session:
            catalog.move_media(session, media_id, viewer, from_id, to_id)

    return _each(media_ids, move)


def _each(media_ids: Iterable[UUID], act: Callable[[UUID], object]) -> BulkResult:
    outcome = BulkResult([], [])
    for media_id in dict.fromkeys(media_ids):
        try:
            act(media_id)
        except ApiError as error:
            outcome.refused.append(RefusedItem(media_id, error.code, error.message))
        else:
            outcome.done.append(media_id)
    return outcome
