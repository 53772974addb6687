"""What an upload turns out to be: a user's new file, one that they have already, or none at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, delete, select, update

from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import duplicates, history, insert_all, media, media_file, uploads, users
from nexus.errors import (
    FileTooLarge,
    InvalidFileType,
    InvalidRequest,
    InvalidState,
    NotFound,
    StorageMissing,
    UploadExpired,
)
from nexus.libraries import access
from nexus.libraries.catalog import hold_media
from nexus.media.files import CONTENT_TYPES, Files, discard, refusal
from nexus.media.inspect import inspect, recognise
from nexus.media.lifecycle import mark_failed, reset_failed
from nexus.states.media import Kind, Stage, Status
from nexus.storage import ObjectMissing, StorageError
from nexus.storage.digest import Digest


class Upload(NamedTuple):
    """An item and what is expected of its file, if it still is."""

    id: UUID
    kind: Kind
    processing_status: Status
    failure_stage: Stage | None
    created_by_user_id: UUID
    file_sha256: str | None
    filename: str | None
    size_bytes: int | None
    begun_at: datetime | None
    expires_at: datetime | None
    readable: bool


class Earlier(NamedTuple):
    winner_id: UUID
    kind: Kind


class _User(NamedTuple):
    id: UUID


class _Twin(NamedTuple):
    id: UUID
    processing_status: Status


_FOUND = Query(
    select(
        media.c.id,
        media.c.kind,
        media.c.processing_status,
        media.c.failure_stage,
        media.c.created_by_user_id,
        media.c.file_sha256,
        uploads.c.filename,
        uploads.c.size_bytes,
        uploads.c.begun_at,
        uploads.c.expires_at,
        access.READABLE.label("readable"),
    )
    .outerjoin_from(media, uploads, uploads.c.media_id == media.c.id)
    .where(media.c.id == bindparam("media_id")),
    Upload,
)
EARLIER = Query(
    select(duplicates.c.winner_id, media.c.kind)
    .join(media, media.c.id == duplicates.c.winner_id)
    .where(duplicates.c.media_id == bindparam("media_id"), duplicates.c.user_id == bindparam("viewer")),
    Earlier,
)
# Confirmations of one user stand in line, so that two of the same file can't both be the first.
_IN_LINE = Query(
    select(users.c.id).where(users.c.id == bindparam("user_id")).with_for_update(key_share=True), _User
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


@dataclass(frozen=True)
class Settled:
    """What the check made of an upload: the media that has the file now."""

    media_id: UUID
    kind: Kind
    duplicate: bool


def check(
    sessions: Sessions, files: Files, viewer: UUID, found: Upload, request_id: str | None = None
) -> Settled:
    """Read what is in the store and write down what it is. Raises what is wrong with it."""
    try:
        checked = _inspect(sessions, files, found)
    except (FileTooLarge, InvalidFileType, StorageMissing, UploadExpired) as error:
        return _refuse(sessions, files, viewer, found, error)
    with sessions.begin() as session:
        return _overtaken(session, viewer, found) or _settle(
            session, files, viewer, found, checked, request_id
        )


def _refuse(sessions: Sessions, files: Files, viewer: UUID, found: Upload, error: InvalidRequest) -> Settled:
    """The media fails with what is wrong and its bytes go; if they may still arrive, nothing changes."""
    with sessions.begin() as session:
        settled = _overtaken(session, viewer, found)
        if settled is not None:
            return settled
        if isinstance(error, StorageMissing):
            raise error
        mark_failed(session, found.id, Stage.UPLOAD, error.code, error.message, actor=str(viewer))
    discard(sessions, files, found.id, files.path(found.id, found.kind))
    raise error


def _inspect(sessions: Sessions, files: Files, found: Upload) -> Digest:
    kind, now = found.kind, sessions.clock()
    if found.begun_at is None or found.expires_at is None:
        raise InvalidState
    if now > found.begun_at + files.upload_life:
        raise UploadExpired
    try:
        path, most = files.path(found.id, kind), files.most_bytes[kind]
        if known := files.storage.digest(path):
            return recognise(known, kind, most)
        return inspect(files.storage.stream(path), kind, most, files.check_seconds)
    except ObjectMissing as error:
        raise (StorageMissing if now <= found.expires_at else UploadExpired) from error
    except StorageError as error:
        raise refusal(error) from error


def _overtaken(session: Session, viewer: UUID, found: Upload) -> Settled | None:
    """In line with the user's other confirmations: what one of them made of this upload while it was being read."""
    stand_in_line(session, viewer)
    earlier = session.first(EARLIER, media_id=found.id, viewer=viewer)
    if earlier is not None:
        return Settled(earlier.winner_id, earlier.kind, duplicate=True)
    present = find(session, viewer, found.id)
    if present.file_sha256 is not None:
        return Settled(found.id, found.kind, duplicate=False)
    if present.processing_status is not Status.PENDING or present.begun_at != found.begun_at:
        raise InvalidState
    return None


def _settle(
    session: Session, files: Files, viewer: UUID, found: Upload, checked: Digest, request_id: str | None
) -> Settled:
    """The first of two twins stays, the second goes."""
    kind = found.kind
    twin = session.first(_TWIN, user_id=viewer, kind=kind.value, sha256=checked.sha256)
    if twin is not None:
        return _give_way(session, viewer, found.id, kind, twin, request_id)
    _keep(session, files, found, checked, request_id)
    return Settled(found.id, kind, duplicate=False)


def _keep(session: Session, files: Files, found: Upload, checked: Digest, request_id: str | None) -> None:
    """Raises NotFound if it was deleted in this very moment."""
    kind = found.kind
    values = {"sha256": checked.sha256, "now": session.now, "request_id": request_id}
    if session.run(_SET_HASH, media_id=found.id, **values) == 0:
        raise NotFound
    session.run(
        _WRITE_FILE,
        media_id=found.id,
        storage_path=files.path(found.id, kind),
        content_type=CONTENT_TYPES[kind],
        size_bytes=checked.size,
        filename=found.filename,
    )
    session.run(_UNEXPECT, media_id=found.id)


def _give_way(
    session: Session, viewer: UUID, media_id: UUID, kind: Kind, twin: _Twin, request_id: str | None
) -> Settled:
    """The user has this file: that one goes back into their library, is retried if it failed, and this row goes."""
    hold_media(session, access.default_library(session, viewer), twin.id)
    if twin.processing_status is Status.FAILED:
        reset_failed(session, twin.id, viewer, request_id)
    session.run(_REMEMBER, media_id=media_id, winner_id=twin.id, user_id=viewer, at=session.now)
    session.run(_DELETE, media_id=media_id)
    session.run(_FORGET, media_id=media_id)
    return Settled(twin.id, kind, duplicate=True)


def stand_in_line(session: Session, viewer: UUID) -> None:
    """Until this transaction ends, no other one gives the user a new file."""
    session.first(_IN_LINE, user_id=viewer)


def forget(sessions: Sessions, media_id: UUID) -> None:
    with sessions.begin() as session:
        session.run(_DELETE, media_id=media_id)
        session.run(_FORGET, media_id=media_id)


def find(session: Session, viewer: UUID, media_id: UUID) -> Upload:
    found = session.first(_FOUND, media_id=media_id, viewer=viewer)
    if found is None or not found.readable:
        raise NotFound
    return found
