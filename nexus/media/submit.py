"""Whole requests: the verb in one transaction, then, after the commit, the announcement."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from nexus.db.session import Sessions
from nexus.errors import InvalidState
from nexus.libraries import access, catalog
from nexus.libraries.quota import Allowances
from nexus.media.add import add_url
from nexus.media.enqueue import maybe_enqueue_extraction
from nexus.media.files import Files
from nexus.media.lifecycle import retry_media
from nexus.media.uploads import Begun, Confirmed, Expected, begin_again, confirm_upload, upload_failed
from nexus.queue import Queue
from nexus.states.media import MediaStatus


@dataclass(frozen=True)
class Submitted:
    media_id: UUID
    created: bool
    enqueued: bool


def url(
    sessions: Sessions,
    queue: Queue,
    limits: Allowances,
    viewer: UUID,
    kind: str,
    url: str,
    request_id: str | None = None,
    library_id: UUID | None = None,
) -> Submitted:
    """Add an address to the default library, and to another one if its id is given; tell a worker if there is work."""
    with sessions.begin() as session:
        if library_id is not None:
            access.require_admin(session, library_id, viewer)
            access.keep_library(session, library_id)
        added = add_url(session, viewer, kind, url, limits, request_id)
        if library_id is not None:
            catalog.add_media(session, library_id, added.media_id, viewer)
    enqueued = added.due and maybe_enqueue_extraction(queue, added.kind, added.media_id)
    return Submitted(added.media_id, added.created, enqueued)


def confirm_into_library(
    sessions: Sessions,
    files: Files,
    queue: Queue,
    viewer: UUID,
    media_id: UUID,
    library_id: UUID,
    request_id: str | None = None,
) -> Confirmed:
    """Confirm an upload, and put its item into another library as well.

    A library that the viewer can't change is refused before anything is done.
    """
    with sessions.read() as session:
        access.require_admin(session, library_id, viewer)
    done = confirm_upload(sessions, files, queue, viewer, media_id, request_id)
    with sessions.begin() as session:
        catalog.add_media(session, library_id, done.media_id, viewer)
    return done


def retry_failed_item(
    sessions: Sessions, queue: Queue, media_id: UUID, viewer: UUID, request_id: str | None = None
) -> bool:
    """Retry an item that failed; return whether a worker was told."""
    with sessions.begin() as session:
        row = retry_media(session, media_id, viewer, request_id)
    pending = row.processing_status is MediaStatus.PENDING
    return pending and maybe_enqueue_extraction(queue, row.kind, media_id)


def retry_received(
    sessions: Sessions, queue: Queue, media_id: UUID, viewer: UUID, request_id: str | None = None
) -> bool:
    """Retry an item whose file, if it has one, has arrived; return whether a worker was told.

    Raises InvalidState if its upload failed: only its user has the file.
    """
    with sessions.read() as session:
        if upload_failed(session, viewer, media_id):
            raise InvalidState("Its file never arrived. Upload the file again on its page.")
    return retry_failed_item(sessions, queue, media_id, viewer, request_id)


def retry_or_upload_again(
    sessions: Sessions,
    files: Files,
    queue: Queue,
    viewer: UUID,
    media_id: UUID,
    expected: Expected | None,
    request_id: str | None = None,
) -> Begun | bool:
    """Retry an item. Returns a new place to upload to if its upload failed, else whether a worker was told."""
    with sessions.read() as session:
        begins_again = upload_failed(session, viewer, media_id)
    if begins_again:
        return begin_again(sessions, files, viewer, media_id, expected)
    return retry_failed_item(sessions, queue, media_id, viewer, request_id)
