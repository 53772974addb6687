"""What crashes leave behind: files in storage that no media has, abandoned uploads, old test runs.

Both `nexus clean` and the workers' upkeep use this. Any number of processes may run it at once, while others upload,
import and delete: every file is checked again under its media's lock before it is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    union,
    update,
)

from nexus import logging
from nexus.db.pictures import pictures
from nexus.db.rows import IdRow
from nexus.db.session import Query, Sessions, Statement
from nexus.db.tables import (
    duplicates,
    earlier_holdings,
    history,
    library_media,
    media,
    media_file,
    one_of,
    refreshes,
    revisions,
    uploads,
    users,
)
from nexus.libraries.access import HOLDS
from nexus.media.files import GRACE, IS_FILE, Files, locked, remove_unless
from nexus.states.media import Kind, MediaStatus
from nexus.storage import StorageError, Stored
from nexus.storage.names import media_of
from nexus.upkeep.sounds import discard_old_sounds

log = logging.get_logger(__name__)

DAY = timedelta(days=1)
TEST_RUNS = "test_runs/"
ORPHAN = "a file that belongs to no item"


class _Upload(NamedTuple):
    id: UUID
    kind: Kind


class _Born(NamedTuple):
    born: datetime | None


class _StoredPath(NamedTuple):
    media_id: UUID
    storage_path: str


class _MediaRevision(NamedTuple):
    media_id: UUID
    number: int


class _Granted(NamedTuple):
    granted: bool


# A stored file is needed if it is a media's file or picture, or if its media may still take it: one that waits for its
# upload or is being extracted, or one that is being refreshed or gets its pictures, which are stored just before a row
# names them.
_IS_FETCHED = or_(
    *(
        exists(
            select(table.c.media_id)
            .where(table.c.media_id == media.c.id, table.c.lease_expires_at.is_not(None))
            .correlate(media)
        )
        for table in (refreshes, pictures)
    )
)
_EXPECTED = Query(
    select(media.c.id).where(
        media.c.id == bindparam("media_id"),
        or_(
            IS_FILE,
            one_of(media.c.processing_status, {MediaStatus.PENDING, MediaStatus.EXTRACTING}),
            _IS_FETCHED,
        ),
    ),
    IdRow,
)
_ABANDONED = Query(
    select(media.c.id, media.c.kind)
    .join(uploads, uploads.c.media_id == media.c.id)
    .where(
        media.c.processing_status == "pending",
        media.c.file_sha256.is_(None),
        uploads.c.begun_at < bindparam("before", type_=uploads.c.begun_at.type),
    )
    .order_by(media.c.id)
    .with_for_update(of=media),
    _Upload,
)
_DELETE = Statement(delete(media).where(media.c.id == bindparam("media_id")))
_FORGET = Statement(delete(history).where(history.c.subject_id == bindparam("media_id")))
_FORGET_DUPLICATES = Statement(
    delete(duplicates).where(duplicates.c.at < bindparam("before", type_=duplicates.c.at.type))
)
_BORN = Query(select(func.min(users.c.created_at).label("born")), _Born)
_FILES = Query(
    union(
        select(media_file.c.media_id, media_file.c.storage_path),
        select(pictures.c.media_id, pictures.c.storage_path).where(pictures.c.storage_path.is_not(None)),
    ).order_by("media_id"),
    _StoredPath,
)

#: A revision that no library has held for long. The newest that everybody may read stays, for those who add the item
#: next.
_IS_UNHELD = and_(
    revisions.c.number != media.c.newest_revision,
    revisions.c.written_at < bindparam("before", type_=revisions.c.written_at.type),
    ~exists(
        select(library_media.c.media_id)
        .where(library_media.c.media_id == revisions.c.media_id, revisions.c.number == HOLDS)
        .correlate(revisions, media)
    ),
    ~exists(
        select(earlier_holdings.c.media_id)
        .where(
            earlier_holdings.c.media_id == revisions.c.media_id,
            earlier_holdings.c.revision == revisions.c.number,
            earlier_holdings.c.until >= bindparam("before", type_=earlier_holdings.c.until.type),
        )
        .correlate(revisions)
    ),
)
_UNHELD = Query(
    select(revisions.c.media_id, revisions.c.number)
    .join(media, media.c.id == revisions.c.media_id)
    .where(_IS_UNHELD)
    .order_by(revisions.c.media_id, revisions.c.number),
    _MediaRevision,
)
_STILL_UNHELD = Query(
    select(revisions.c.media_id, revisions.c.number)
    .join(media, media.c.id == revisions.c.media_id)
    .where(
        _IS_UNHELD, revisions.c.media_id == bindparam("media_id"), revisions.c.number == bindparam("number")
    ),
    _MediaRevision,
)
_DROP_REVISION = Statement(
    delete(revisions).where(
        revisions.c.media_id == bindparam("media_id"), revisions.c.number == bindparam("number")
    )
)
_PICTURES = Query(
    select(pictures.c.media_id, pictures.c.storage_path.label("storage_path"))
    .where(
        pictures.c.media_id == bindparam("media_id"),
        pictures.c.revision == bindparam("number"),
        pictures.c.storage_path.is_not(None),
    )
    .distinct(),
    _StoredPath,
)
_DROP_FILE = Query(
    delete(media_file)
    .where(
        media_file.c.media_id == bindparam("media_id"),
        media_file.c.revision == bindparam("number"),
        media_file.c.revision > literal_column("0"),
    )
    .returning(media_file.c.media_id, media_file.c.storage_path),
    _StoredPath,
)
#: If the base revision goes, no library holds it: the newest takes its place.
_MOVE_BASE = Statement(
    update(media)
    .where(media.c.id == bindparam("media_id"), media.c.revision == bindparam("number"))
    .values(revision=media.c.newest_revision)
)

#: An arbitrary number: nothing else in Nexus takes an advisory lock for a whole session.
_UPKEEP: ColumnElement[int] = literal_column("7237110")
_TRY_LOCK = Query(select(func.pg_try_advisory_lock(_UPKEEP, type_=Boolean).label("granted")), _Granted)
_UNLOCK = Statement(select(func.pg_advisory_unlock(_UPKEEP).label("released")))


@dataclass(frozen=True)
class Leftover:
    """Something that can be removed."""

    #: A word for logs.
    kind: str
    #: A phrase for people.
    what: str
    path: str


def find_leftovers(sessions: Sessions, files: Files, *, remove: bool) -> Generator[Leftover]:
    """Yield everything that crashes left behind, and with `remove` remove it too."""
    yield from _orphans(sessions, files, remove)
    yield from _abandoned(sessions, files, remove)
    yield from _old_test_runs(sessions, files, remove)
    yield from _broken_uploads(sessions, files, remove)
    yield from _unheld_revisions(sessions, files, remove)
    yield from _old_sounds(sessions, files, remove)
    if remove:
        _forget_duplicates(sessions)


def remove_safe_leftovers(
    sessions: Sessions, files: Files, stopped: Callable[[], bool]
) -> Generator[Leftover]:
    """Remove what nobody needs to look at first; yield each thing after it is gone.

    Files in storage are kept for a day, far longer than an import takes. Two kinds are never removed. A file older than
    this database's first user belongs to another database: somebody may have configured the wrong one, or be restoring
    theirs. And a file whose name this version of Nexus does not make is not ours to judge.
    """
    with sessions.read() as session:
        (database,) = session.all(_BORN)
    before = sessions.clock() - DAY
    for stored in files.storage.objects(f"{files.prefix}media/"):
        if stopped():
            return
        media_id = media_of(stored.path, files.prefix)
        is_ours = database.born is not None and database.born <= stored.modified_at
        if not is_ours or stored.modified_at >= before or media_id is None:
            continue
        if not _is_expected(sessions, media_id, stored.path) and _remove_orphan(sessions, files, stored.path):
            yield Leftover("orphans", ORPHAN, stored.path)
    for remove in (_abandoned, _old_test_runs, _broken_uploads, _unheld_revisions, _old_sounds):
        for each in remove(sessions, files, True):
            yield each
            if stopped():
                return
    _forget_duplicates(sessions)


@contextmanager
def only_cleaner(sessions: Sessions) -> Iterator[bool]:
    """Whether this is the only process that cleans up on this database, until the block ends.

    Listing a large store is slow, and once is enough. On SQLite several may do it, which is harmless. A pool of one
    connection has none to spare for the lock.
    """
    if sessions.engine.dialect.name == "sqlite" or sessions.pool.size < 2:
        yield True
        return
    with sessions.read() as session:
        (lock,) = session.all(_TRY_LOCK)
        try:
            yield lock.granted
        finally:
            if lock.granted:
                session.run(_UNLOCK)


def orphaned_objects(sessions: Sessions, files: Files) -> Iterator[Stored]:
    """Files in storage whose media is gone, or whose upload failed."""
    before = sessions.clock() - GRACE
    for stored in files.storage.objects(f"{files.prefix}media/"):
        media_id = media_of(stored.path, files.prefix)
        if stored.modified_at < before and not (media_id and _is_expected(sessions, media_id, stored.path)):
            yield stored


def missing_objects(sessions: Sessions, files: Files) -> list[UUID]:
    """Media with a file or a picture that is not in storage.

    Listing a store is much faster than asking it for each object. Those that are not listed are asked for: they may
    have arrived meanwhile.
    """
    with sessions.read() as session:
        rows = session.all(_FILES)
    listed = {stored.path for stored in files.storage.objects(f"{files.prefix}media/")}
    unlisted = [row for row in rows if row.storage_path not in listed]
    missing = (row.media_id for row in unlisted if files.storage.head(row.storage_path) is None)
    return list(dict.fromkeys(missing))


def _orphans(sessions: Sessions, files: Files, remove: bool) -> Iterator[Leftover]:
    for stored in orphaned_objects(sessions, files):
        if not remove or _remove_orphan(sessions, files, stored.path):
            yield Leftover("orphans", ORPHAN, stored.path)


def _remove_orphan(sessions: Sessions, files: Files, path: str) -> bool:
    """Remove it unless it has become needed since it was found; return whether it is gone."""
    media_id = media_of(path, files.prefix)
    if media_id is None:
        return files.remove(path)
    return remove_unless(sessions, files, media_id, path, _EXPECTED)


def _abandoned(sessions: Sessions, files: Files, remove: bool) -> Iterator[Leftover]:
    with sessions.begin() as session:
        rows = session.all(_ABANDONED, before=session.now - files.upload_life)
        if remove:
            for row in rows:
                session.run(_DELETE, media_id=row.id)
                session.run(_FORGET, media_id=row.id)
    for row in rows:
        path = files.path(row.id, row.kind)
        if remove:
            files.remove(path)
        yield Leftover("uploads", "an upload that was never confirmed", path)


def _old_test_runs(sessions: Sessions, files: Files, remove: bool) -> Iterator[Leftover]:
    """Those of other test runs: what is below our own prefix is known to our rows."""
    before = sessions.clock() - DAY
    for stored in files.storage.objects(TEST_RUNS):
        ours = files.prefix and stored.path.startswith(files.prefix)
        if stored.modified_at < before and not ours and (not remove or files.remove(stored.path)):
            yield Leftover("test_runs", "a file of an old test run", stored.path)


def _broken_uploads(sessions: Sessions, files: Files, remove: bool) -> Iterator[Leftover]:
    before = sessions.clock() - DAY
    for part in files.storage.partial_files():
        if part.modified_at >= before:
            continue
        try:
            if remove:
                files.storage.delete_partial(part)
        except StorageError as error:
            log.warning("draft_left_behind", reason=str(error))
        else:
            yield Leftover("drafts", "an upload that broke off", part.path)


def _unheld_revisions(sessions: Sessions, files: Files, remove: bool) -> Iterator[Leftover]:
    """Each is looked at again under its item's lock, so that nobody can take it up while it goes."""
    with sessions.read() as session:
        before = session.now - files.revision_life
        found = session.all(_UNHELD, before=before)
    for one in found:
        paths: list[str] = []
        if remove:
            with locked(sessions, one.media_id) as session:
                which = {"media_id": one.media_id, "number": one.number}
                if session.first(_STILL_UNHELD, before=before, **which) is None:
                    continue
                stored = session.all(_DROP_FILE, **which) + session.all(_PICTURES, **which)
                paths = [row.storage_path for row in stored]
                session.run(_DROP_REVISION, **which)
                session.run(_MOVE_BASE, **which)
        for path in paths:
            files.remove(path)
        yield Leftover("revisions", "a version that no library holds", f"media/{one.media_id}/r{one.number}")


def _old_sounds(sessions: Sessions, files: Files, remove: bool) -> Iterator[Leftover]:
    for path in discard_old_sounds(sessions, files, remove=remove):
        yield Leftover("sounds", "the sound of a recording that is not being transcribed", path)


def _forget_duplicates(sessions: Sessions) -> None:
    with sessions.begin() as session:
        session.run(_FORGET_DUPLICATES, before=session.now - 30 * DAY)


def _is_expected(sessions: Sessions, media_id: UUID, path: str) -> bool:
    with sessions.read() as session:
        return session.first(_EXPECTED, media_id=media_id, path=path) is not None
