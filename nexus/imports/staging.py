"""What is about to be imported: for each library, a list of files in the order that the user wants.

In memory, as the attempt is. The lists are replaced, never changed, so that whoever reads one has all of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from uuid import UUID, uuid4

from nexus.errors import InvalidFileType, InvalidRequest, InvalidState, NotFound
from nexus.imports.attempts import Registry
from nexus.media.inspect import looks_like
from nexus.states.attempt import Status
from nexus.states.media import Kind
from nexus.storage.digest import HEAD

KINDS = {
    ".pdf": Kind.PDF,
    ".epub": Kind.EPUB,
    ".txt": Kind.TEXT,
    ".text": Kind.TEXT,
    ".md": Kind.TEXT,
    ".markdown": Kind.TEXT,
}
#: Texts that begin so may hold zeros.
WIDE = (b"\xff\xfe", b"\xfe\xff")
BUSY = "The import is running. Pause it first."
MOST_SOURCES = 10_000


@dataclass(frozen=True)
class Source:
    """A file that waits to be imported. Its path is nobody's business but the runner's."""

    id: UUID
    name: str
    kind: Kind
    size: int
    path: Path = field(repr=False)
    #: Whether the file is a copy of ours, to be removed when it is not needed any more.
    ours: bool = False


@dataclass(frozen=True)
class Batch:
    """What goes into one library: one that is there, or a draft with a name."""

    id: UUID
    library_id: UUID | None
    name: str | None
    sources: tuple[Source, ...] = ()

    @property
    def is_draft(self) -> bool:
        return self.library_id is None

    def source(self, source_id: UUID) -> Source:
        """Raises NotFound."""
        found = next((source for source in self.sources if source.id == source_id), None)
        if found is None:
            raise NotFound("There is no such file in this import.")
        return found


class Staging:
    """The batches of one user."""

    def __init__(self, registry: Registry, tell: Callable[[], None] = lambda: None) -> None:
        self._registry = registry
        self._tell = tell
        #: Held by who must not have the lists change under him.
        self.still = threading.RLock()
        self._batches: dict[UUID, Batch] = {}
        #: The batch that the present attempt works on.
        self.active: UUID | None = None

    def open(self, library_id: UUID | None, name: str | None) -> Batch:
        """The batch of a library, or of a draft with this name: the same one however often it is asked for."""
        with self.still:
            for batch in self._batches.values():
                if (batch.library_id, batch.name) == (library_id, name):
                    return batch
            batch = Batch(uuid4(), library_id, name)
            self._batches[batch.id] = batch
            return batch

    def latest(self) -> Batch | None:
        with self.still:
            return next(reversed(self._batches.values()), None)

    def retarget(self, library_id: UUID | None, name: str | None) -> Batch:
        """The latest batch goes elsewhere, with its files. Raises InvalidState while it runs."""
        latest = self.latest()
        if latest is None:
            return self.open(library_id, name)
        with self.still:
            batch = replace(self._idle(latest.id), library_id=library_id, name=name)
            self._batches[batch.id] = batch
        self._tell()
        return batch

    def all(self) -> list[Batch]:
        with self.still:
            return list(self._batches.values())

    def get(self, batch_id: UUID) -> Batch:
        """Raises NotFound."""
        with self.still:
            if batch_id not in self._batches:
                raise NotFound("There is no such import.")
            return self._batches[batch_id]

    def add(self, batch_id: UUID, name: str, path: Path, *, ours: bool = False) -> Source:
        """Raises InvalidFileType for what is no PDF, EPUB or text, InvalidRequest for one file too many, InvalidState
        while the batch runs."""
        source = _source(name, path, ours=ours)
        with self.still:
            batch = self._idle(batch_id)
            if len(batch.sources) == MOST_SOURCES:
                raise InvalidRequest(f"An import takes at most {MOST_SOURCES:,} files. Start it, then go on.")
            self._batches[batch_id] = replace(batch, sources=(*batch.sources, source))
        self._tell()
        return source

    def replace(
        self, batch_id: UUID, source_id: UUID, name: str, path: Path, *, ours: bool = False
    ) -> Source:
        """Another file in the same place."""
        source = _source(name, path, ours=ours)
        with self.still:
            batch = self._idle(batch_id)
            old = batch.source(source_id)
            sources = tuple(source if one is old else one for one in batch.sources)
            self._batches[batch_id] = replace(batch, sources=sources)
        _let_go(old)
        self._tell()
        return source

    def remove(self, batch_id: UUID, source_id: UUID) -> None:
        """With the last file of a paused attempt the attempt is discarded."""
        with self.still:
            batch = self._idle(batch_id)
            old = batch.source(source_id)
            left = tuple(one for one in batch.sources if one is not old)
            self._batches[batch_id] = replace(batch, sources=left)
            if not left and self.active == batch_id:
                self._registry.discard()
                self.active = None
        _let_go(old)
        self._tell()

    def reorder(self, batch_id: UUID, order: Sequence[UUID]) -> Batch:
        """Exactly these, in this order. Raises InvalidRequest for anything but all of them, each once."""
        with self.still:
            batch = self._idle(batch_id)
            known = {source.id: source for source in batch.sources}
            if len(order) != len(known) or set(order) != set(known):
                raise InvalidRequest("Give the id of every file in this import once.")
            batch = self._batches[batch_id] = replace(
                batch, sources=tuple(known[source_id] for source_id in order)
            )
        self._tell()
        return batch

    def discard(self, batch_id: UUID) -> None:
        """The batch goes, and with it the attempt that is paused on it."""
        with self.still:
            batch = self._idle(batch_id)
            if self.active == batch_id:
                self._registry.discard()
            self._forget(batch)
        _let_go(*batch.sources)
        self._tell()

    def done(self, batch_id: UUID) -> None:
        """It is in the library. Nothing if that was said before."""
        with self.still:
            batch = self._batches.get(batch_id)
            if batch is None:
                return
            self._forget(batch)
        _let_go(*batch.sources)

    def is_busy(self, batch_id: UUID) -> bool:
        return self.active == batch_id and self._registry.state.status in {Status.RUNNING, Status.STOPPING}

    def require_open(self, batch_id: UUID) -> None:
        """Raises NotFound, and InvalidState while it runs."""
        self._idle(batch_id)

    def _idle(self, batch_id: UUID) -> Batch:
        batch = self.get(batch_id)
        if self.is_busy(batch_id):
            raise InvalidState(BUSY)
        return batch

    def _forget(self, batch: Batch) -> None:
        del self._batches[batch.id]
        if self.active == batch.id:
            self.active = None


def _source(name: str, path: Path, *, ours: bool) -> Source:
    kind = kind_of(name, path)
    return Source(uuid4(), name, kind, path.stat().st_size, path, ours)


def kind_of(name: str, path: Path) -> Kind:
    """By its name, and then by what is in it. Raises InvalidFileType."""
    kind = KINDS.get(PurePath(name).suffix.lower())
    if kind is None:
        raise InvalidFileType("Only PDFs, EPUBs and text files (.txt, .md) can be imported.")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise InvalidFileType(
            "This file can't be read. Check that it is there and that you may read it."
        ) from error
    if not head:
        raise InvalidFileType("This file is empty.")
    require_kind(kind, head)
    return kind


def require_kind(kind: Kind, head: bytes) -> None:
    """By how the file begins. Raises InvalidFileType."""
    if not _is(kind, head):
        raise InvalidFileType("What is in this file is not what its name says.")


def _is(kind: Kind, head: bytes) -> bool:
    if kind is not Kind.TEXT:
        return looks_like(kind, head)
    return b"\0" not in head or head.startswith(WIDE)


def _let_go(*sources: Source) -> None:
    """Copies of ours that can't be removed now go with their folder."""
    for source in sources:
        if source.ours:
            with suppress(OSError):
                source.path.unlink()
