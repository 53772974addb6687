"""Files: a signed place to put one, then the check that makes it a media's file. Each user has each file once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import bindparam, insert

from nexus import logging
from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.session import Session, Sessions, Statement
from nexus.db.tables import media, uploads
from nexus.db.upserts import every_column, upsert
from nexus.errors import (
    FileTooLarge,
    Forbidden,
    InvalidFileType,
    InvalidKind,
    InvalidRequest,
    InvalidState,
    NotFound,
    NotReady,
    SignUploadFailed,
)
from nexus.libraries import access
from nexus.libraries.catalog import hold_media
from nexus.media.enqueue import maybe_enqueue_extraction
from nexus.media.files import CONTENT_TYPES, Files, locked, refusal
from nexus.media.lifecycle import retry_media
from nexus.media.settle import EARLIER, Settled, Upload, check, find, forget
from nexus.queue import Queue
from nexus.states.media import Kind, Stage, Status
from nexus.storage import StorageError, UploadTarget

log = logging.get(__name__)

NAME_LENGTH = 255
UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\]|[\ud800-\udfff]")


@dataclass(frozen=True)
class Expected:
    """What the client says it will upload."""

    kind: str
    filename: str
    content_type: str
    size_bytes: int


@dataclass(frozen=True)
class Begun:
    media_id: UUID
    storage_path: str
    target: UploadTarget


@dataclass(frozen=True)
class Confirmed:
    media_id: UUID
    duplicate: bool
    enqueued: bool


_CREATE = Statement(
    insert(media).values(
        {
            media.c[name]: bindparam(name)
            for name in ("id", "kind", "title", "run_after", "created_by_user_id", "created_at", "updated_at")
        }
    )
)
_EXPECT_UPLOAD = upsert(
    uploads,
    every_column(uploads),
    lambda new: new.on_conflict_do_update(
        index_elements=[uploads.c.media_id],
        set_={c.name: new.excluded[c.name] for c in uploads.c if c.name != "media_id"},
    ),
)


def begin(sessions: Sessions, files: Files, viewer: UUID, expected: Expected) -> Begun:
    """Signs first and writes after, so that a store that can't sign leaves nothing behind."""
    kind, name = _checked(files, expected), safe_name(expected.filename)
    media_id = uuid4()
    target = _sign(files, media_id, kind, expected.size_bytes)
    with sessions.begin() as session:
        library = access.ensure_user(session, viewer)
        _create(session, viewer, media_id, kind, title=name.rpartition(".")[0] or name)
        hold_media(session, library, media_id)
        _expect(session, media_id, kind, name, expected.size_bytes, target.expires_at)
    return Begun(media_id, files.path(media_id, kind), target)


def failed_upload(session: Session, viewer: UUID, media_id: UUID) -> bool:
    """Whether it is the upload of this media that failed. Raises NotFound where the viewer may not read it."""
    return bool(find(session, viewer, media_id).failure_stage == Stage.UPLOAD.value)


def begin_again(
    sessions: Sessions, files: Files, viewer: UUID, media_id: UUID, expected: Expected | None
) -> Begun:
    """A new place for an upload that failed, under the same id. What the failed one left is removed.

    If nothing is said of what is to come, it is taken to be the same again. Raises NotFound, Forbidden for everyone
    but the uploader, InvalidState if no upload has failed.
    """
    with sessions.read() as session:
        access.require_manager(session, media_id, viewer)
        found = find(session, viewer, media_id)
    if found.failure_stage is not Stage.UPLOAD:
        raise InvalidState("The upload of this item did not fail. Look at its state.")
    if found.created_by_user_id != viewer:
        raise Forbidden("Only the uploader can send this file again.")
    kind = found.kind
    again = expected or Expected(kind.value, found.filename or "", CONTENT_TYPES[kind], found.size_bytes or 0)
    if _checked(files, again) is not kind:
        raise InvalidKind("This was begun as another kind. Begin a new upload for it.")
    target = _sign(files, media_id, kind, again.size_bytes)
    with locked(sessions, media_id) as session:
        retry_media(session, media_id, viewer)
        _expect(session, media_id, kind, safe_name(again.filename), again.size_bytes, target.expires_at)
        if not files.remove(files.path(media_id, kind)):
            raise SignUploadFailed
    return Begun(media_id, files.path(media_id, kind), target)


def confirm(
    sessions: Sessions,
    files: Files,
    queue: Queue,
    viewer: UUID,
    media_id: UUID,
    request_id: str | None = None,
) -> Confirmed:
    """Check what was uploaded and make it the media's file, or answer with the one that the user has already.

    Asking twice is the same as asking once. Raises what is wrong with the file, after the media has failed with it;
    StorageMissing while it may still arrive, and IngestTimeout, change nothing.
    """
    with sessions.read() as session:
        try:
            found = find(session, viewer, media_id)
        except NotFound:
            earlier = session.first(EARLIER, media_id=media_id, viewer=viewer)
            if earlier is None:
                raise
            # The link outlives the row: the file may have been sent again.
            files.remove(files.path(media_id, earlier.kind))
            return Confirmed(earlier.winner_id, duplicate=True, enqueued=False)
    _require_expected(found, viewer)
    if found.file_sha256 is None:
        outcome = check(sessions, files, viewer, found, request_id)
    else:
        outcome = Settled(media_id, found.kind, duplicate=False)
    return _announce(queue, files, media_id, outcome)


def take_in(
    sessions: Sessions, files: Files, viewer: UUID, expected: Expected, chunks: Iterable[bytes]
) -> Settled:
    """Begin, put and check in one go, for who has the file at hand. Nothing is announced yet."""
    begun = begin(sessions, files, viewer, expected)
    try:
        files.storage.put(begun.storage_path, chunks, expected.content_type)
    except (StorageError, OSError) as error:
        forget(sessions, begun.media_id)
        files.remove(begun.storage_path)
        if isinstance(error, StorageError):
            raise refusal(error) from error
        raise NotReady("The file can't be read to its end. Check it, then try again.") from error
    with sessions.read() as session:
        found = find(session, viewer, begun.media_id)
    settled = check(sessions, files, viewer, found)
    if settled.duplicate:
        files.remove(begun.storage_path)
    return settled


def _announce(queue: Queue, files: Files, media_id: UUID, outcome: Settled) -> Confirmed:
    """After the commit: the loser's bytes go, and a worker is told."""
    if outcome.duplicate:
        files.remove(files.path(media_id, outcome.kind))
    enqueued = maybe_enqueue_extraction(queue, outcome.kind, outcome.media_id)
    return Confirmed(outcome.media_id, outcome.duplicate, enqueued)


def _require_expected(found: Upload, viewer: UUID) -> None:
    if found.created_by_user_id != viewer:
        raise Forbidden("Only the uploader can confirm this file.")
    if found.kind not in CONTENT_TYPES:
        raise InvalidKind("Only an uploaded file is confirmed.")
    waiting = found.processing_status is Status.PENDING and found.filename is not None
    if found.file_sha256 is None and not waiting:
        raise InvalidState("This upload has failed. Retry it to get a new place to upload to.")


def _checked(files: Files, expected: Expected) -> Kind:
    if expected.kind not in CONTENT_TYPES:
        raise InvalidKind("Only a pdf or an epub is uploaded.")
    kind = Kind(expected.kind)
    if expected.content_type != CONTENT_TYPES[kind]:
        raise InvalidFileType(f"A file of kind {kind} has the type {CONTENT_TYPES[kind]}.")
    if expected.size_bytes < 1:
        raise InvalidRequest("An empty file can't be taken in.")
    if expected.size_bytes > files.most_bytes[kind]:
        raise FileTooLarge(f"A file of kind {kind} may have at most {files.most_bytes[kind] // 2**20} MiB.")
    return kind


def safe_name(filename: str) -> str:
    """The name alone, without folders and without what a header or a database can't hold."""
    name = UNSAFE.sub("", filename.replace("\\", "/").rpartition("/")[2]).strip()
    if not name or len(name) > NAME_LENGTH:
        raise InvalidRequest(f"A file needs a name of 1 to {NAME_LENGTH} characters.")
    return name


def _sign(files: Files, media_id: UUID, kind: Kind, size: int) -> UploadTarget:
    try:
        return files.storage.sign_upload(
            files.path(media_id, kind), CONTENT_TYPES[kind], size, files.link_life
        )
    except StorageError as error:
        log.warning("sign_upload_failed", reason=str(error))
        raise SignUploadFailed from error


def _create(session: Session, viewer: UUID, media_id: UUID, kind: Kind, title: str) -> None:
    now = session.now
    session.run(
        _CREATE,
        id=media_id,
        kind=kind.value,
        title=title,
        run_after=now,
        created_by_user_id=viewer,
        created_at=now,
        updated_at=now,
    )
    log_created(session, MEDIA_ROWS, media_id, actor=str(viewer))


def _expect(session: Session, media_id: UUID, kind: Kind, name: str, size: int, expires_at: datetime) -> None:
    session.run(
        _EXPECT_UPLOAD,
        media_id=media_id,
        filename=name,
        content_type=CONTENT_TYPES[kind],
        size_bytes=size,
        begun_at=session.now,
        expires_at=expires_at,
    )
