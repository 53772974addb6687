"""Everything at once: files into the store first, then one transaction; what goes wrong takes the files back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from uuid import UUID

from sqlalchemy import bindparam, insert, select

from nexus import logging
from nexus.db.drivers import is_away
from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.session import Session, Sessions, Statement
from nexus.db.tables import library_media, media
from nexus.errors import FileChanged, FileUnreachable, WorkError
from nexus.extract import Extraction
from nexus.imports.checking import CHANGED, Candidate, Standing, candidate, pieces
from nexus.imports.staging import Batch, Source
from nexus.libraries import access, catalog
from nexus.libraries.catalog import hold
from nexus.media import documents
from nexus.media.documents import Cut, Kept, Origin, Readable
from nexus.media.files import CONTENT_TYPES, Files
from nexus.media.lifecycle import mark_all_ready_for_reading, reset_failed, start_all
from nexus.media.settle import stand_in_line
from nexus.states.media import Kind
from nexus.storage import StorageError

log = logging.get(__name__)

#: How many files go into the store at once: most of the time each waits for the disk or the network.
AT_ONCE = 4
#: Texts are written in groups of at most so many, and end a group when they are so large together.
MOST_IN_A_GROUP = 50
ENOUGH_BYTES = 4 * 1024 * 1024
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
_HELD = Statement(
    select(library_media.c.media_id).where(library_media.c.library_id == bindparam("library_id"))
)
_NEW = Statement(insert(media).values({media.c[name]: bindparam(name) for name in _COLUMNS}))


class Overtaken(Exception):
    """What the user has of a file is not what he had when it was checked."""


@dataclass(frozen=True)
class Prepared:
    """A file with its text and its chunks, on its way into the library."""

    candidate: Candidate
    extraction: Extraction
    cut: Cut
    extractor: str

    @property
    def media_id(self) -> UUID:
        return self.candidate.media_id

    @property
    def size(self) -> int:
        texts = sum(len(one.text) + len(one.html or "") for one in self.extraction.fragments)
        return texts + sum(len(asset.data) for asset in self.extraction.assets)


class Storing:
    """Files on their way into the store, each under the id that its media will have."""

    def __init__(self, files: Files, candidates: Sequence[Candidate], look: Callable[[], None]) -> None:
        self._files = files
        self._look = look
        #: Of media that are new with this import. A row that is there already names its file: one that was missing
        #: and is back stays.
        self._begun: list[str] = []
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nexus-import-store")
        self._puts = {self._threads.submit(self._put, one): one.source for one in candidates}
        self._is_kept = False

    def failures(self) -> Iterator[tuple[Source, WorkError]]:
        """What could not be stored, and why, once all have ended; those that have not begun by then never do."""
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
        """The commit is on its way. While its outcome is not known, a file too many is better than one that is missing:
        `nexus clean` finds what nobody needs."""
        self._is_kept = True

    def take_back(self) -> None:
        """It is known that nothing was committed."""
        self._is_kept = False

    def require_stored(self) -> None:
        """Raises Overtaken if a file is gone again: upkeep takes what is an hour old and no row knows."""
        if any(self._files.storage.head(path) is None for path in self._begun):
            raise Overtaken

    def undo(self) -> None:
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
        for piece in pieces(path):
            self._look()
            yield piece

    def _cancel(self) -> None:
        for put in self._puts:
            put.cancel()


@contextmanager
def storing(files: Files, candidates: Sequence[Candidate], look: Callable[[], None]) -> Iterator[Storing]:
    """The files go into the store while the block runs, and out of it again if it raises.

    `look` is called again and again, and raises where nobody wants them any more.
    """
    begun = Storing(files, candidates, look)
    try:
        yield begun
    except BaseException:
        begun.undo()
        raise
    begun.close()


def write(
    session: Session,
    files: Files,
    viewer: UUID,
    batch: Batch,
    candidates: Sequence[Candidate],
    ready: Iterable[Prepared],
) -> UUID:
    """All rows of a batch, in the caller's transaction, a few texts in memory at a time; the library they are in.

    Raises Overtaken where the candidates have to be looked at again, and what is wrong with the library.
    """
    access.ensure_user(session, viewer)
    stand_in_line(session, viewer)
    library_id = _library(session, viewer, batch)
    _require_unchanged(session, viewer, candidates)
    hold(session, library_id, *(one.media_id for one in candidates if one.standing is not Standing.NEW))
    for group in _groups(ready):
        _write(session, files, viewer, library_id, group)
    return library_id


def look_up(
    sessions: Sessions, viewer: UUID, library_id: UUID, candidates: Sequence[Candidate]
) -> bool | None:
    """Whether a transaction of `write` was committed, when nobody heard its end; None if the database can't say.

    What it says counts even if the end of the look itself is not heard.
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
    """The server may still be at it, so this stands in line behind it and looks when it has ended.

    The ids of new media are its own; without any, it has done its work if the library holds everything and everything
    has been read.
    """
    access.ensure_user(session, viewer)
    stand_in_line(session, viewer)
    held = {row.media_id for row in session.all(_HELD, library_id=library_id)}
    new = {one.media_id for one in candidates if one.standing is Standing.NEW}
    if new:
        return not new.isdisjoint(held)
    return all(
        one.media_id in held and candidate(session, viewer, one.checked).standing is Standing.KNOWN
        for one in candidates
    )


def _library(session: Session, viewer: UUID, batch: Batch) -> UUID:
    """Raises NotFound or Forbidden where it is no longer there, or no longer the viewer's to add to."""
    if batch.library_id is None:
        return _draft(session, viewer, batch)
    access.require_admin(session, access.keep_library(session, batch.library_id), viewer)
    return batch.library_id


def _draft(session: Session, viewer: UUID, batch: Batch) -> UUID:
    """Once, also where another import of this name was quicker, or the answer to an earlier commit got lost."""
    found = catalog.named(session, viewer, batch.name or "")
    if found is not None:
        return access.keep_library(session, found)
    return catalog.create(session, viewer, batch.name or "")


def _require_unchanged(session: Session, viewer: UUID, candidates: Sequence[Candidate]) -> None:
    for media_id in sorted(one.media_id for one in candidates if one.standing is not Standing.NEW):
        catalog.lock_media(session, media_id)
    for one in candidates:
        now = candidate(session, viewer, one.checked)
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
    """From the beginning through their edges, as every media goes."""
    attempts = {one.media_id: _attempts(session, viewer, one) for one in group}
    new = [one for one in group if one.candidate.standing is Standing.NEW]
    session.run_many(_NEW, [_row(session, viewer, one.candidate) for one in new])
    log_created(session, MEDIA_ROWS, *(one.media_id for one in new), actor=str(viewer))
    hold(session, library_id, *(one.media_id for one in new))
    start_all(session, attempts)
    mark_all_ready_for_reading(
        session,
        [
            Readable.of(
                one.media_id, attempts[one.media_id] + 1, one.extraction, _origin(files, one), one.cut.words
            )
            for one in group
        ],
    )
    documents.write_chunks(session, {one.media_id: one.cut for one in group})


def _attempts(session: Session, viewer: UUID, one: Prepared) -> int:
    """How many it has had. One that had failed is put back to its beginning."""
    if one.candidate.standing is Standing.NEW:
        return 0
    return int(reset_failed(session, one.media_id, viewer).processing_attempts)


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


def _origin(files: Files, one: Prepared) -> Origin:
    source = one.candidate.source
    path = files.path(one.media_id, source.kind)
    kept = Kept(path, content_type(source.kind), one.candidate.checked.size, source.name)
    return Origin(one.extractor, kept=kept)


def content_type(kind: Kind) -> str:
    return CONTENT_TYPES.get(kind, TEXT_TYPE)
