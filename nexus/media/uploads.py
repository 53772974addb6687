"""Files: a signed place to put one, then the check that makes it an item's file. Each user has each file once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, delete, insert, select, update

from nexus import logging
from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import duplicates, history, insert_all, media, media_file, uploads
from nexus.db.upserts import every_column, upsert
from nexus.errors import (
    FileTooLarge,
    Forbidden,
    InfectedFile,
    InvalidFileType,
    InvalidKind,
    InvalidRequest,
    InvalidState,
    NotFound,
    NotReady,
    SignUploadFailed,
    StorageMissing,
    UploadExpired,
)
from nexus.libraries import access
from nexus.libraries.catalog import hold_media
from nexus.media.enqueue import maybe_enqueue_extraction
from nexus.media.files import CONTENT_TYPES, Files, discard_object, locked, refusal
from nexus.media.inspect import inspect_stored, safe_name
from nexus.media.lifecycle import mark_failed, reset_failed, retry_media
from nexus.media.storage_shares import require_place, stand_in_line
from nexus.queue import Queue
from nexus.states.media import Kind, MediaStatus, Stage
from nexus.storage import ObjectMissing, StorageError, UploadTarget
from nexus.storage.digest import Digest

log = logging.get_logger(__name__)


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
    """What the check made of an upload: the item that has the file now."""

    media_id: UUID
    kind: Kind
    duplicate: bool
    enqueued: bool = False


class Upload(NamedTuple):
    """An item, and what is expected of its file until it arrives."""

    id: UUID
    kind: Kind
    processing_status: MediaStatus
    failure_stage: Stage | None
    created_by_user_id: UUID
    file_sha256: str | None
    filename: str | None
    size_bytes: int | None
    begun_at: datetime | None
    expires_at: datetime | None
    readable: bool


class _Earlier(NamedTuple):
    winner_id: UUID
    kind: Kind


class _Twin(NamedTuple):
    id: UUID
    processing_status: MediaStatus


_NEW = ("id", "kind", "title", "run_after", "created_by_user_id", "created_at", "updated_at")
_CREATE = Statement(insert(media).values({media.c[name]: bindparam(name) for name in _NEW}))
_EXPECT_UPLOAD = upsert(
    uploads,
    every_column(uploads),
    lambda new: new.on_conflict_do_update(
        index_elements=[uploads.c.media_id],
        set_={c.name: new.excluded[c.name] for c in uploads.c if c.name != "media_id"},
    ),
)
_FOUND = Query(
    select(
        *(media.c[name] for name in Upload._fields if name in media.c),
        *(uploads.c[name] for name in Upload._fields if name in uploads.c),
        access.READABLE.label("readable"),
    )
    .outerjoin_from(media, uploads, uploads.c.media_id == media.c.id)
    .where(media.c.id == bindparam("media_id")),
    Upload,
)
#: What an earlier confirmation made of an upload that is gone.
_EARLIER = Query(
    select(duplicates.c.winner_id, media.c.kind)
    .join(media, media.c.id == duplicates.c.winner_id)
    .where(duplicates.c.media_id == bindparam("media_id"), duplicates.c.user_id == bindparam("viewer")),
    _Earlier,
)
_TWIN = Query(
    select(media.c.id, media.c.processing_status)
    .where(
        media.c.created_by_user_id == bindparam("user_id"),
        media.c.kind == bindparam("kind"),
        media.c.file_sha256 == bindparam("sha256"),
    )
    .with_for_update(),
    _Twin,
)
_SET_HASH = Statement(
    update(media)
    .where(
        media.c.id == bindparam("media_id"),
        media.c.processing_status == "pending",
        media.c.file_sha256.is_(None),
    )
    .values(
        file_sha256=bindparam("sha256"),
        run_after=bindparam("now"),
        updated_at=bindparam("now"),
        request_id=bindparam("request_id"),
    )
)
_WRITE_FILE = Statement(insert_all(media_file))
_UNEXPECT = Statement(delete(uploads).where(uploads.c.media_id == bindparam("media_id")))
_DELETE = Statement(delete(media).where(media.c.id == bindparam("media_id")))
_FORGET = Statement(delete(history).where(history.c.subject_id == bindparam("media_id")))
_REMEMBER = Statement(insert_all(duplicates))


def begin_upload(sessions: Sessions, files: Files, viewer: UUID, expected: Expected) -> Begun:
    """Begin an upload: return a signed place for it, and create an item that waits for it.

    The place is signed before anything is written, so that a store that can't sign leaves nothing behind. Raises
    RateLimited and StorageFull if the user has begun or stored too much.
    """
    kind, name = _checked(files, expected), safe_name(expected.filename)
    media_id = uuid4()
    target = _sign(files, media_id, kind, expected.size_bytes)
    with sessions.begin() as session:
        library = access.ensure_user(session, viewer)
        stand_in_line(session, viewer)
        require_place(session, files.shares, viewer, expected.size_bytes)
        now = session.now
        times = {"run_after": now, "created_at": now, "updated_at": now}
        title = name.rpartition(".")[0] or name
        session.run(_CREATE, id=media_id, kind=kind.value, title=title, created_by_user_id=viewer, **times)
        log_created(session, MEDIA_ROWS, media_id, actor=str(viewer))
        hold_media(session, library, media_id)
        _expect(session, media_id, kind, name, expected.size_bytes, target.expires_at)
    return Begun(media_id, files.path(media_id, kind), target)


def upload_failed(session: Session, viewer: UUID, media_id: UUID) -> bool:
    """Whether an item failed because of its upload. Raises NotFound if the viewer may not read it."""
    return _find(session, viewer, media_id).failure_stage is Stage.UPLOAD


def begin_again(
    sessions: Sessions, files: Files, viewer: UUID, media_id: UUID, expected: Expected | None
) -> Begun:
    """Return a new place for an upload that failed, under the same id, and remove what the failed one left.

    Without `expected`, the same file is expected again. Raises NotFound, Forbidden for everyone but the uploader,
    InvalidState if no upload has failed.
    """
    with sessions.read() as session:
        access.require_manager(session, media_id, viewer)
        found = _find(session, viewer, media_id)
    if found.failure_stage is not Stage.UPLOAD:
        raise InvalidState("The upload of this item did not fail. Check its state.")
    if found.created_by_user_id != viewer:
        raise Forbidden("Only the uploader can send this file again.")
    kind = found.kind
    again = expected or Expected(kind.value, found.filename or "", CONTENT_TYPES[kind], found.size_bytes or 0)
    if _checked(files, again) is not kind:
        raise InvalidKind("This upload was for another kind of file. Start a new one.")
    with sessions.read() as session:  # not in line: a holder of the item's row must not wait for the user's
        require_place(session, files.shares, viewer, again.size_bytes)
    target = _sign(files, media_id, kind, again.size_bytes)
    with locked(sessions, media_id) as session:
        retry_media(session, media_id, viewer)
        _expect(session, media_id, kind, safe_name(again.filename), again.size_bytes, target.expires_at)
        if not files.remove(files.path(media_id, kind)):
            raise SignUploadFailed
    return Begun(media_id, files.path(media_id, kind), target)


def confirm_upload(
    sessions: Sessions,
    files: Files,
    queue: Queue,
    viewer: UUID,
    media_id: UUID,
    request_id: str | None = None,
) -> Confirmed:
    """Check what was uploaded and make it the item's file, or return the item of that file which the user already has.

    Asking twice is the same as asking once. Raises what is wrong with the file, after the item has failed with it;
    StorageMissing while it may still arrive, and IngestTimeout, change nothing.
    """
    with sessions.read() as session:
        try:
            found = _find(session, viewer, media_id)
        except NotFound:
            earlier = session.first(_EARLIER, media_id=media_id, viewer=viewer)
            if earlier is None:
                raise
            # The link outlives the row: the file may have been sent again.
            files.remove(files.path(media_id, earlier.kind))
            return Confirmed(earlier.winner_id, earlier.kind, duplicate=True)
    if found.created_by_user_id != viewer:
        raise Forbidden("Only the uploader can confirm this file.")
    if found.kind not in CONTENT_TYPES:
        raise InvalidKind("Only an uploaded file can be confirmed.")
    settled = Confirmed(media_id, found.kind, duplicate=False)
    if found.file_sha256 is None:
        if found.processing_status is not MediaStatus.PENDING or found.filename is None:
            raise InvalidState("This upload has failed. Retry it to get a new link.")
        settled = _check(sessions, files, viewer, found, request_id)
    if settled.duplicate:
        files.remove(files.path(media_id, settled.kind))
    enqueued = maybe_enqueue_extraction(queue, settled.kind, settled.media_id)
    return replace(settled, enqueued=enqueued)


def take_in(
    sessions: Sessions, files: Files, viewer: UUID, expected: Expected, chunks: Iterable[bytes]
) -> Confirmed:
    """Begin, store and check a file in one go, for a caller who has it at hand. Nothing is announced yet."""
    begun = begin_upload(sessions, files, viewer, expected)
    try:
        files.storage.put(begun.storage_path, chunks, expected.content_type)
    except (StorageError, OSError) as error:
        with sessions.begin() as session:
            _delete(session, begun.media_id)
        files.remove(begun.storage_path)
        if isinstance(error, StorageError):
            raise refusal(error) from error
        raise NotReady("The file could not be read to the end. Check it, then try again.") from error
    with sessions.read() as session:
        found = _find(session, viewer, begun.media_id)
    settled = _check(sessions, files, viewer, found)
    if settled.duplicate:
        files.remove(begun.storage_path)
    return settled


def _find(session: Session, viewer: UUID, media_id: UUID) -> Upload:
    found = session.first(_FOUND, media_id=media_id, viewer=viewer)
    if found is None or not found.readable:
        raise NotFound
    return found


def _checked(files: Files, expected: Expected) -> Kind:
    if expected.kind not in CONTENT_TYPES:
        raise InvalidKind("Only a pdf, an epub or a text can be uploaded.")
    kind = Kind(expected.kind)
    if expected.content_type != CONTENT_TYPES[kind]:
        raise InvalidFileType(f"A file of kind {kind} has the type {CONTENT_TYPES[kind]}.")
    if expected.size_bytes < 1:
        raise InvalidRequest("An empty file can't be added.")
    if expected.size_bytes > files.most_bytes[kind]:
        raise FileTooLarge(f"A file of kind {kind} may have at most {files.most_bytes[kind] // 2**20} MiB.")
    return kind


def _sign(files: Files, media_id: UUID, kind: Kind, size: int) -> UploadTarget:
    try:
        return files.storage.sign_upload(
            files.path(media_id, kind), CONTENT_TYPES[kind], size, files.link_life
        )
    except StorageError as error:
        log.warning("sign_upload_failed", reason=str(error))
        raise SignUploadFailed from error


def _expect(session: Session, media_id: UUID, kind: Kind, name: str, size: int, expires_at: datetime) -> None:
    coming = {"filename": name, "content_type": CONTENT_TYPES[kind], "size_bytes": size}
    session.run(_EXPECT_UPLOAD, media_id=media_id, begun_at=session.now, expires_at=expires_at, **coming)


def _check(
    sessions: Sessions, files: Files, viewer: UUID, found: Upload, request_id: str | None = None
) -> Confirmed:
    """Read what is in the store and write down what it is. Raises what is wrong with it."""
    try:
        checked = _inspected(sessions, files, found)
    except (FileTooLarge, InfectedFile, InvalidFileType, StorageMissing, UploadExpired) as error:
        with sessions.begin() as session:
            settled = _overtaken(session, viewer, found)
            if settled is not None:
                return settled
            if isinstance(error, StorageMissing):
                raise
            mark_failed(session, found.id, Stage.UPLOAD, error.code, error.message, actor=str(viewer))
        discard_object(sessions, files, found.id, files.path(found.id, found.kind))
        raise
    with sessions.begin() as session:
        return _overtaken(session, viewer, found) or _settle(
            session, files, viewer, found, checked, request_id
        )


def _inspected(sessions: Sessions, files: Files, found: Upload) -> Digest:
    kind, now = found.kind, sessions.clock()
    if found.begun_at is None or found.expires_at is None:
        raise InvalidState
    if now > found.begun_at + files.upload_life:
        raise UploadExpired
    try:
        return inspect_stored(files, files.path(found.id, kind), kind)
    except ObjectMissing as error:
        raise (StorageMissing if now <= found.expires_at else UploadExpired) from error
    except StorageError as error:
        raise refusal(error) from error


def _overtaken(session: Session, viewer: UUID, found: Upload) -> Confirmed | None:
    """Return what another confirmation made of this upload while it was being read, if one did."""
    stand_in_line(session, viewer)
    earlier = session.first(_EARLIER, media_id=found.id, viewer=viewer)
    if earlier is not None:
        return Confirmed(earlier.winner_id, earlier.kind, duplicate=True)
    present = _find(session, viewer, found.id)
    if present.file_sha256 is not None:
        return Confirmed(found.id, found.kind, duplicate=False)
    if present.processing_status is not MediaStatus.PENDING or present.begun_at != found.begun_at:
        raise InvalidState
    return None


def _settle(
    session: Session, files: Files, viewer: UUID, found: Upload, checked: Digest, request_id: str | None
) -> Confirmed:
    """Give the item its file. If the user already has the file, that item stays, and this one goes.

    Raises NotFound if it was deleted at this very moment.
    """
    media_id, kind = found.id, found.kind
    twin = session.first(_TWIN, user_id=viewer, kind=kind.value, sha256=checked.sha256)
    if twin is not None:
        hold_media(session, access.default_library(session, viewer), twin.id)
        if twin.processing_status is MediaStatus.FAILED:
            reset_failed(session, twin.id, viewer, request_id)
        session.run(_REMEMBER, media_id=media_id, winner_id=twin.id, user_id=viewer, at=session.now)
        _delete(session, media_id)
        return Confirmed(twin.id, kind, duplicate=True)
    values = {"sha256": checked.sha256, "now": session.now, "request_id": request_id}
    if session.run(_SET_HASH, media_id=media_id, **values) == 0:
        raise NotFound
    session.run(
        _WRITE_FILE,
        media_id=media_id,
        revision=0,
        storage_path=files.path(media_id, kind),
        content_type=CONTENT_TYPES[kind],
        size_bytes=checked.size,
        filename=found.filename,
    )
    session.run(_UNEXPECT, media_id=media_id)
    return Confirmed(media_id, kind, duplicate=False)


def _delete(session: Session, media_id: UUID) -> None:
    session.run(_DELETE, media_id=media_id)
    session.run(_FORGET, media_id=media_id)
