"""Everything at once: files into the store first, then one transaction; what goes wrong takes the files back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from uuid import UUID, uuid4

from sqlalchemy import bindparam, insert

from nexus.db.moves import MEDIA_ROWS, log_created
from nexus.db.session import Session, Statement
from nexus.db.tables import media
from nexus.errors import FileChanged, FileUnreachable
from nexus.extract import Extraction
from nexus.ingest import access, documents, libraries
from nexus.ingest.add import hold
from nexus.ingest.documents import Kept, Origin
from nexus.ingest.files import CONTENT_TYPES, Files
from nexus.ingest.imports.checking import Checked, pieces
from nexus.ingest.imports.staging import Batch
from nexus.ingest.media import mark_ready_for_reading, worker_start_attempt
from nexus.states.media import Kind
from nexus.storage import StorageError

#: How many files go into the store at once: most of the time each waits for the disk or the network.
AT_ONCE = 4
TEXT_TYPE = "text/plain; charset=utf-8"
_NEW = Statement(
    insert(media).values(
        {
            media.c[name]: bindparam(name)
            for name in (
                "id",
                "kind",
                "title",
                "file_sha256",
                "run_after",
                "created_by_user_id",
                "created_at",
                "updated_at",
            )
        }
    )
)


@dataclass(frozen=True)
class Prepared:
    """A file with its text and its chunks, on its way into the library."""

    checked: Checked
    extraction: Extraction
    chunks: Sequence[tuple[int, int, int]]
    extractor: str


@contextmanager
def stored(files: Files, checked: Sequence[Checked], look: Callable[[], None]) -> Iterator[dict[UUID, UUID]]:
    """The files in the store, each under the id that its media will have; gone again if the block raises.

    `look` is called before each of them, and raises where nobody wants them any more.
    """
    ids = {one.source.id: uuid4() for one in checked}
    begun: list[str] = []

    def put(one: Checked) -> None:
        look()
        path = files.path(ids[one.source.id], one.source.kind)
        begun.append(path)
        _put(files, path, one)

    try:
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nexus-import-store") as threads:
            _all_of([threads.submit(put, one) for one in checked])
        yield ids
    except BaseException:
        for path in begun:
            files.remove(path)
        raise


def _all_of(puts: Sequence[Future[None]]) -> None:
    """Raises what the first of them raises; those that have not begun then never do."""
    try:
        for put in puts:
            put.result()
    except BaseException:
        for put in puts:
            put.cancel()
        raise


def _put(files: Files, path: str, checked: Checked) -> None:
    """Raises FileChanged where it is not the file that was checked."""
    digest = hashlib.sha256()

    def seen() -> Iterator[bytes]:
        for piece in pieces(checked.source.path):
            digest.update(piece)
            yield piece

    try:
        files.storage.put(path, seen(), content_type(checked.source.kind))
    except (StorageError, OSError) as error:
        raise FileUnreachable from error
    if digest.hexdigest() != checked.sha256:
        raise FileChanged


def write(
    session: Session,
    files: Files,
    viewer: UUID,
    batch: Batch,
    ready: Iterable[Prepared],
    ids: dict[UUID, UUID],
) -> UUID:
    """All rows of a batch, in the caller's transaction, one text in memory at a time; the library that they are in."""
    library_id = _library(session, viewer, batch)
    for one in ready:
        _write(session, files, viewer, library_id, ids[one.checked.source.id], one)
    return library_id


def _library(session: Session, viewer: UUID, batch: Batch) -> UUID:
    """Raises NotFound or Forbidden where it is no longer there, or no longer the viewer's to add to."""
    if batch.library_id is None:
        return libraries.create(session, viewer, batch.name or "")
    access.require_admin(session, access.keep_library(session, batch.library_id), viewer)
    return batch.library_id


def _write(
    session: Session, files: Files, viewer: UUID, library_id: UUID, media_id: UUID, one: Prepared
) -> None:
    """From the beginning through its edges, as every media goes."""
    source = one.checked.source
    now = session.now
    session.run(
        _NEW,
        id=media_id,
        kind=source.kind.value,
        title=PurePath(source.name).stem or source.name,
        file_sha256=one.checked.sha256,
        run_after=now,
        created_by_user_id=viewer,
        created_at=now,
        updated_at=now,
    )
    log_created(session, MEDIA_ROWS, media_id, actor=str(viewer))
    hold(session, library_id, media_id)
    kept = Kept(files.path(media_id, source.kind), content_type(source.kind), one.checked.size, source.name)
    claim = worker_start_attempt(session, media_id)
    attempt = claim.processing_attempts if claim is not None else 0
    mark_ready_for_reading(session, media_id, attempt, one.extraction, Origin(one.extractor, kept=kept))
    documents.write_chunks(session, media_id, one.chunks)


def put_twins(session: Session, library_id: UUID, twins: Sequence[UUID]) -> None:
    """What the user has already and what belongs into this library, too."""
    for media_id in twins:
        hold(session, library_id, media_id)


def content_type(kind: Kind) -> str:
    return CONTENT_TYPES.get(kind, TEXT_TYPE)
