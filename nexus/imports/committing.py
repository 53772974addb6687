"""All or nothing: files go into storage first, then all rows in one transaction; a failure removes the files again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePath
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, insert, select, update

from nexus import logging
from nexus.db.drivers import is_away
from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import library_media, media
from nexus.errors import FileChanged, FileUnreachable, PdfNoText, WorkError
from nexus.extract import Extraction
from nexus.imports.checking import CHANGED, Candidate, Standing, find_candidate, read_pieces
from nexus.imports.staging import Batch, StagedSource
from nexus.libraries import access, audit, catalog
from nexus.libraries.audit import AuditEvent
from nexus.libraries.catalog import hold_media
from nexus.media import revisions
from nexus.media.files import CONTENT_TYPES, Files
from nexus.media.lifecycle import mark_all_ready_for_reading, mark_failed, reset_failed, start_all
from nexus.media.storage_shares import require_room, stand_in_line
from nexus.media.texts import Cut, Found, Kept, Readable
from nexus.states.media import Kind, Stage
from nexus.storage import StorageError

log = logging.get_logger(__name__)

#: How many files are stored at once: most of the time each waits for the disk or the network.
AT_ONCE = 4
#: Texts are written in groups: at most this many, or until they reach this size together.
MOST_IN_A_GROUP = 50
ENOUGH_BYTES = 4 * 1024 * 1024
TICK = timedelta(microseconds=1)
TEXT_TYPE = "text/plain; charset=utf-8"
_COLUMNS = (
    "id",
    "kind",
    "title",
    "file_sha256",
    "run_after",
    "created_by_user_id",
    "created_at",
    "updated_at",
)


class _HeldMedia(NamedTuple):
    media_id: UUID


_HELD = Query(
    select(library_media.c.media_id).where(library_media.c.library_id == bindparam("library_id")), _HeldMedia
)
_PLACE = Statement(
    update(library_media)
    .where(
        library_media.c.library_id == bindparam("library"),
        library_media.c.media_id == bindparam("media"),
        library_media.c.added_at == bindparam("now", type_=library_media.c.added_at.type),
    )
    .values(added_at=bindparam("at", type_=library_media.c.added_at.type))
)
_NEW = Statement(insert(media).values({media.c[name]: bindparam(name) for name in _COLUMNS}))


class Overtaken(Exception):
    """What the user has of a file has changed since preflight: the import must check again."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A file with its text and chunks, ready for the library."""

    candidate: Candidate
    extraction: Extraction
    cut: Cut
    extractor: str

    @property
    def media_id(self) -> UUID:
        return self.candidate.media_id

    @property
    def is_scan(self) -> bool:
        """Whether it is kept as a file because there is no text in it."""
        return not self.extraction.fragments

    @property
    def size(self) -> int:
        """Roughly how much memory its text takes."""
        texts = sum(len(one.text) + len(one.html or "") for one in self.extraction.fragments)
        return texts + sum(len(asset.data) for asset in self.extraction.assets)


class Storing:
    """Files that are being stored, each under the id of the media that it will belong to."""

    def __init__(self, files: Files, candidates: Sequence[Candidate], look: Callable[[], None]) -> None:
        self._files = files
        self._look = look
        #: Paths of new media. The file of an existing row stays: if it was missing, it is back now.
        self._begun: list[str] = []
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nexus-import-store")
        self._puts = {self._threads.submit(self._put, one): one.source for one in candidates}
        self._is_kept = False

    def failures(self) -> Iterator[tuple[StagedSource, WorkError]]:
        """Wait for all; yield the files that could not be stored, and why. After the first, no other file is begun."""
        for put in as_completed(self._puts):
            try:
                put.result()
            except CancelledError:
                continue
            except WorkError as error:
                self._cancel()
                yield self._puts[put], error

    def close(self) -> None:
        self._cancel()
        self._threads.shutdown()

    def keep(self) -> None:
        """Keep the files even if the block raises: the commit was sent, and its outcome may stay unknown.

        A file too many is better than a missing one; `nexus clean` finds it.
        """
        self._is_kept = True

    def take_back(self) -> None:
        """Undo `keep`: nothing was committed."""
        self._is_kept = False

    def require_stored(self) -> None:
        """Raises Overtaken if a file is gone: `nexus clean` removes those that are an hour old and belong to no row."""
        if any(self._files.storage.head(path) is None for path in self._begun):
            raise Overtaken

    def undo(self) -> None:
        """Remove what was stored, unless it has to be kept."""
        self.close()
        if not self._is_kept:
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nexus-import-store") as threads:
                list(threads.map(self._files.remove, self._begun))

    def _put(self, one: Candidate) -> None:
        self._look()
        path = self._files.path(one.media_id, one.source.kind)
        try:
            if one.standing is Standing.NEW:
                self._begun.append(path)
            elif self._files.storage.head(path) is not None:
                return
            kind = content_type(one.source.kind)
            stored = self._files.storage.put(path, self._pieces(one.source.path), kind)
        except (StorageError, OSError) as error:
            raise FileUnreachable from error
        if stored.sha256 != one.checked.sha256:
            self._files.remove(path)
            raise FileChanged(CHANGED)

    def _pieces(self, path: Path) -> Iterator[bytes]:
        for piece in read_pieces(path):
            self._look()
            yield piece

    def _cancel(self) -> None:
        for put in self._puts:
            put.cancel()


@contextmanager
def storing(files: Files, candidates: Sequence[Candidate], look: Callable[[], None]) -> Iterator[Storing]:
    """Store the files while the block runs; remove them again if it raises.

    `look` is called between pieces, and raises to stop.
    """
    begun = Storing(files, candidates, look)
    try:
        yield begun
    except BaseException:
        begun.undo()
        raise
    begun.close()


def write_batch(
    session: Session,
    files: Files,
    viewer: UUID,
    batch: Batch,
    candidates: Sequence[Candidate],
    ready: Iterable[Prepared],
) -> UUID:
    """Write all rows of a batch in the caller's transaction, with a few texts in memory at a time; return the library.

    Raises Overtaken if the files have to be checked again; NotFound or Forbidden if the library is gone or the viewer
    may no longer change it; StorageFull if the viewer may not store so much.
    """
    access.ensure_user(session, viewer)
    stand_in_line(session, viewer)
    library_id = _library(session, viewer, batch)
    _require_unchanged(session, viewer, candidates)
    new_bytes = sum(one.checked.size for one in candidates if one.standing is Standing.NEW)
    require_room(session, files.shares, viewer, new_bytes)
    hold_media(session, library_id, *(one.media_id for one in candidates if one.standing is not Standing.NEW))
    for group in _groups(ready):
        _write(session, files, viewer, library_id, group)
    _put_in_order(session, library_id, candidates)
    if library_id != access.default_library(session, viewer):
        imported = f"{len(candidates)} imported"
        audit.record(session, AuditEvent.ITEM_SHARED, viewer, library_id=library_id, about=imported)
    return library_id


def _put_in_order(session: Session, library_id: UUID, candidates: Sequence[Candidate]) -> None:
    """Let the library list what it got now in the order of the import: a microsecond apart, the first file first."""
    rows = [
        {"media": one.media_id, "library": library_id, "now": session.now, "at": session.now - place * TICK}
        for place, one in enumerate(candidates)
    ]
    session.run_many(_PLACE, rows)


def was_committed(
    sessions: Sessions, viewer: UUID, library_id: UUID, candidates: Sequence[Candidate]
) -> bool | None:
    """Whether `write_batch` was committed, if its COMMIT got no answer; None if the database can't say.

    The answer counts even if this transaction, too, ends without one.
    """
    found: bool | None = None
    try:
        with sessions.begin() as session:
            found = _is_written(session, viewer, library_id, candidates)
    except Exception as error:
        say = log.warning if is_away(error) else log.error
        say("import_look_up_failed", reason=type(error).__name__)
    return found


def _is_written(session: Session, viewer: UUID, library_id: UUID, candidates: Sequence[Candidate]) -> bool:
    """Waits for the lost transaction, which may still be running on the server, and then looks.

    Ids of new media can only come from it. Without any, it was committed if the library holds every file and each has
    been read.
    """
    access.ensure_user(session, viewer)
    stand_in_line(session, viewer)
    held = {row.media_id for row in session.all(_HELD, library_id=library_id)}
    new = {one.media_id for one in candidates if one.standing is Standing.NEW}
    if new:
        return not new.isdisjoint(held)
    return all(
        one.media_id in held and find_candidate(session, viewer, one.checked).standing is Standing.KNOWN
        for one in candidates
    )


def _library(session: Session, viewer: UUID, batch: Batch) -> UUID:
    """Return the batch's library, locked against deletion. Raises NotFound or Forbidden.

    A new one is created once: another import of the same name may have been faster, or the answer to an earlier commit
    may have been lost.
    """
    if batch.library_id is not None:
        access.require_admin(session, access.keep_library(session, batch.library_id), viewer)
        return batch.library_id
    found = catalog.find_own_library(session, viewer, batch.name or "")
    if found is not None:
        return access.keep_library(session, found)
    return catalog.create_library(session, viewer, batch.name or "")


def _require_unchanged(session: Session, viewer: UUID, candidates: Sequence[Candidate]) -> None:
    for media_id in sorted(one.media_id for one in candidates if one.standing is not Standing.NEW):
        catalog.lock_media(session, media_id)
    for one in candidates:
        now = find_candidate(session, viewer, one.checked)
        if now.standing is not one.standing or (now != one and one.standing is not Standing.NEW):
            raise Overtaken


def _groups(ready: Iterable[Prepared]) -> Iterator[list[Prepared]]:
    group: list[Prepared] = []
    size = 0
    for one in ready:
        group.append(one)
        size += one.size
        if len(group) == MOST_IN_A_GROUP or size >= ENOUGH_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _write(session: Session, files: Files, viewer: UUID, library_id: UUID, group: list[Prepared]) -> None:
    """Take each media through all of its states, like any other."""
    attempts = {one.media_id: _attempts(session, viewer, one) for one in group}
    new = [one for one in group if one.candidate.standing is Standing.NEW]
    session.run_many(_NEW, [_row(session, viewer, one.candidate) for one in new])
    log_created(session, MEDIA_ROWS, *(one.media_id for one in new), actor=str(viewer))
    hold_media(session, library_id, *(one.media_id for one in new))
    start_all(session, attempts)
    texts = [one for one in group if not one.is_scan]
    mark_all_ready_for_reading(
        session,
        [
            Readable.of(
                one.media_id,
                attempts[one.media_id] + 1,
                Found(one.extraction, one.extractor, kept=_kept(files, one)),
                one.cut,
            )
            for one in texts
        ],
    )
    _keep_scans(session, files, {one: attempts[one.media_id] + 1 for one in group if one.is_scan})


def _keep_scans(session: Session, files: Files, scans: Mapping[Prepared, int]) -> None:
    """Leave files without a text as an upload of them would: failed, with a file that can be read."""
    revisions.keep_files(session, {one.media_id: _kept(files, one) for one in scans})
    error = PdfNoText()
    for one, attempt in scans.items():
        mark_failed(session, one.media_id, Stage(error.stage), error.code, error.message, attempt)


def _attempts(session: Session, viewer: UUID, one: Prepared) -> int:
    """Return how many attempts it has had; reset one that had failed."""
    if one.candidate.standing is Standing.NEW:
        return 0
    return reset_failed(session, one.media_id, viewer).processing_attempts


def _row(session: Session, viewer: UUID, one: Candidate) -> dict[str, object]:
    return {
        "id": one.media_id,
        "kind": one.source.kind.value,
        "title": PurePath(one.source.name).stem or one.source.name,
        "file_sha256": one.checked.sha256,
        "run_after": session.now,
        "created_by_user_id": viewer,
        "created_at": session.now,
        "updated_at": session.now,
    }


def _kept(files: Files, one: Prepared) -> Kept:
    source = one.candidate.source
    path = files.path(one.media_id, source.kind)
    return Kept(0, path, content_type(source.kind), one.candidate.checked.size, source.name)


def content_type(kind: Kind) -> str:
    return TEXT_TYPE if kind is Kind.TEXT else CONTENT_TYPES[kind]
