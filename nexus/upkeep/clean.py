"""What crashes leave behind: objects that no row knows, uploads that never came, old test runs.

`nexus clean` and the upkeep of the workers go through here. Any number of processes may do so at once, while others
upload, import and delete: each object is looked at again under its row's lock before it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, delete, exists, func, literal_column, or_, select

from nexus import logging
from nexus.db.session import Session, Sessions, Statement
from nexus.db.tables import duplicates, history, media, media_file, one_of, refreshes, uploads, users
from nexus.media.files import GRACE, IS_FILE, Files, locked
from nexus.states.media import Kind, Status
from nexus.storage import StorageError, Stored
from nexus.storage.local import Local
from nexus.storage.names import media_of

log = logging.get(__name__)

DAY = timedelta(days=1)
TEST_RUNS = "test_runs/"
ORPHAN = "an object that no media has"

# An object is a media's file, or a file that the media waits for; one whose upload failed does neither. What an
# address answered is in the store a moment before it becomes the file, also when it is refreshed.
_IS_REFRESHED = exists(
    select(refreshes.c.media_id)
    .where(refreshes.c.media_id == media.c.id, refreshes.c.lease_expires_at.is_not(None))
    .correlate(media)
)
_EXPECTED = Statement(
    select(media.c.id).where(
        media.c.id == bindparam("media_id"),
        or_(
            IS_FILE,
            one_of(media.c.processing_status, {Status.PENDING, Status.EXTRACTING}),
            _IS_REFRESHED,
        ),
    )
)
_ABANDONED = Statement(
    select(media.c.id, media.c.kind)
    .join(uploads, uploads.c.media_id == media.c.id)
    .where(
        media.c.processing_status == "pending",
        media.c.file_sha256.is_(None),
        uploads.c.begun_at < bindparam("before", type_=uploads.c.begun_at.type),
    )
    .order_by(media.c.id)
    .with_for_update(of=media)
)
_DELETE = Statement(delete(media).where(media.c.id == bindparam("media_id")))
_FORGET = Statement(delete(history).where(history.c.subject_id == bindparam("media_id")))
_FORGET_DUPLICATES = Statement(
    delete(duplicates).where(duplicates.c.at < bindparam("before", type_=duplicates.c.at.type))
)
_BORN = Statement(select(func.min(users.c.created_at).label("born")))
_FILES = Statement(select(media_file.c.media_id, media_file.c.storage_path).order_by(media_file.c.media_id))


#: Any number that nothing else in a database of Nexus locks.
_UPKEEP: ColumnElement[int] = literal_column("7237110")
_TRY_ALONE = Statement(select(func.pg_try_advisory_lock(_UPKEEP).label("granted")))
_NOT_ALONE = Statement(select(func.pg_advisory_unlock(_UPKEEP).label("released")))


@dataclass(frozen=True)
class Found:
    """One thing that can go: what it is, in a word and in words, and where."""

    kind: str
    what: str
    path: str


def clean(sessions: Sessions, files: Files, *, remove: bool) -> Generator[Found]:
    """Each thing as it is found; removed only when asked to."""
    yield from _orphans(sessions, files, remove)
    yield from _abandoned(sessions, files, remove)
    yield from _old_test_runs(sessions, files, remove)
    yield from _old_drafts(sessions, files, remove)
    if remove:
        _forget_duplicates(sessions)


@contextmanager
def alone(sessions: Sessions) -> Iterator[bool]:
    """Whether no other process on this database is at it: one listing of a store at a time is enough.

    SQLite has one process, and for the others it is harmless. A pool of one connection has none to hold the lock with.
    """
    if sessions.engine.dialect.name == "sqlite" or sessions.engine.pool.size() < 2:  # type: ignore[attr-defined]
        yield True
        return
    with sessions.read() as session:
        (found,) = session.all(_TRY_ALONE)
        granted = bool(found.granted)
        try:
            yield granted
        finally:
            if granted:
                session.first(_NOT_ALONE)


def clean_safely(sessions: Sessions, files: Files, stopped: Callable[[], bool]) -> Generator[Found]:
    """Remove what can go without anybody looking at it first.

    Objects stay for a day, however much longer than that an import may take. Those that are older than the first user
    of this database stay for good, because they are another database's: this one may have been named by mistake, or
    stand in for one that is being restored. So do objects whose names this version of Nexus does not give.
    """
    with sessions.read() as session:
        (database,) = session.all(_BORN)
    before = sessions.clock() - DAY
    for stored in files.storage.objects(f"{files.prefix}media/"):
        if stopped():
            return
        if database.born is not None and database.born <= stored.modified_at < before:
            yield from _removed_orphan(sessions, files, stored)
    for remove in (_abandoned, _old_test_runs, _old_drafts):
        for each in remove(sessions, files, True):
            yield each
            if stopped():
                return
    _forget_duplicates(sessions)


def _removed_orphan(sessions: Sessions, files: Files, stored: Stored) -> Iterator[Found]:
    media_id = media_of(stored.path, files.prefix)
    if media_id is None or _is_expected(sessions, media_id, stored.path):
        return
    if _remove_orphan(sessions, files, stored.path):
        yield Found("orphans", ORPHAN, stored.path)


def orphaned_objects(sessions: Sessions, files: Files) -> Iterator[Stored]:
    """Objects whose media is gone, or has failed to be uploaded."""
    before = sessions.clock() - GRACE
    for stored in files.storage.objects(f"{files.prefix}media/"):
        media_id = media_of(stored.path, files.prefix)
        if stored.modified_at < before and not (media_id and _is_expected(sessions, media_id, stored.path)):
            yield stored


def missing_objects(sessions: Sessions, files: Files) -> list[UUID]:
    """Media whose file is not in the store."""
    with sessions.read() as session:
        rows = session.all(_FILES)
    return [row.media_id for row in rows if files.storage.head(row.storage_path) is None]


def _orphans(sessions: Sessions, files: Files, remove: bool) -> Iterator[Found]:
    for stored in orphaned_objects(sessions, files):
        if not remove or _remove_orphan(sessions, files, stored.path):
            yield Found("orphans", ORPHAN, stored.path)


def _remove_orphan(sessions: Sessions, files: Files, path: str) -> bool:
    """Whether it is gone: somebody may have begun to need it since it was looked at."""
    media_id = media_of(path, files.prefix)
    if media_id is None:
        return files.remove(path)
    with locked(sessions, media_id) as session:
        if session.first(_EXPECTED, media_id=media_id, path=path) is not None:
            return False
        return files.remove(path)


def _abandoned(sessions: Sessions, files: Files, remove: bool) -> Iterator[Found]:
    with sessions.begin() as session:
        rows = session.all(_ABANDONED, before=session.now - files.upload_life)
        if remove:
            for row in rows:
                _delete(session, row.id)
    for row in rows:
        path = files.path(row.id, Kind(row.kind))
        if remove:
            files.remove(path)
        yield Found("uploads", "an upload that was never confirmed", path)


def _old_test_runs(sessions: Sessions, files: Files, remove: bool) -> Iterator[Found]:
    """Those of others: what stands below a prefix of our own has rows that know it."""
    before = sessions.clock() - DAY
    for stored in files.storage.objects(TEST_RUNS):
        ours = files.prefix and stored.path.startswith(files.prefix)
        if stored.modified_at < before and not ours and (not remove or files.remove(stored.path)):
            yield Found("test_runs", "a file of an old test run", stored.path)


def _old_drafts(sessions: Sessions, files: Files, remove: bool) -> Iterator[Found]:
    """Other stores keep what broke off to themselves."""
    if not isinstance(files.storage, Local):
        return
    before = sessions.clock() - DAY
    for draft in files.storage.drafts():
        if draft.modified_at < before and (not remove or _drop(files.storage, draft)):
            yield Found("drafts", "an upload that broke off", draft.path)


def _drop(storage: Local, draft: Stored) -> bool:
    try:
        storage.drop_draft(draft)
    except StorageError as error:
        log.warning("draft_left_behind", reason=str(error))
        return False
    return True


def _forget_duplicates(sessions: Sessions) -> None:
    with sessions.begin() as session:
        session.run(_FORGET_DUPLICATES, before=session.now - 30 * DAY)


def _is_expected(sessions: Sessions, media_id: UUID, path: str) -> bool:
    with sessions.read() as session:
        return session.first(_EXPECTED, media_id=media_id, path=path) is not None


def _delete(session: Session, media_id: UUID) -> None:
    session.run(_DELETE, media_id=media_id)
    session.run(_FORGET, media_id=media_id)
