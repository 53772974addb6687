"""What is about to be imported: for each library, a list of files in the user's order.

Kept in memory, like the attempt. A list is replaced and never changed, so that nobody reads half a change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from uuid import UUID, uuid4

from nexus.errors import InvalidFileType, InvalidRequest, InvalidState, NotFound, StorageFull
from nexus.imports.attempts import Registry
from nexus.media.inspect import A_KIND, looks_like
from nexus.states.attempt import AttemptStatus
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
BUSY = "The import is running. Pause it first."
MOST_SOURCES = 10_000
GIB = 1024**3


@dataclass(frozen=True)
class StagedSource:
    """A file that waits to be imported. Only the runner needs its path: don't show or log it."""

    id: UUID
    name: str
    kind: Kind
    size: int
    path: Path = field(repr=False)
    #: Whether Nexus made this copy, and removes it when it is no longer needed.
    ours: bool = False


@dataclass(frozen=True)
class Batch:
    """The files for one library. If `library_id` is None, the import creates the library."""

    id: UUID
    library_id: UUID | None
    name: str | None
    sources: tuple[StagedSource, ...] = ()

    @property
    def is_draft(self) -> bool:
        return self.library_id is None

    def source(self, source_id: UUID) -> StagedSource:
        """Raises NotFound."""
        found = next((source for source in self.sources if source.id == source_id), None)
        if found is None:
            raise NotFound("This file is not in the import.")
        return found


@dataclass(frozen=True)
class StagedShares:
    """How many bytes of copies each user may have. The owner, whose machine it is, may have any number."""

    most_bytes: int
    owner: UUID | None = None


class CopiedBytes:
    """How much of the disk the copies of one user take: those that are staged, and those that are still arriving."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._taken = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Raises StorageFull if that is too much, and then nothing is taken."""
        with self._lock:
            if self._most is not None and self._taken + size > self._most:
                raise StorageFull(
                    f"The files of your imports would take up more than {self._most / GIB:g} GiB. Start the "
                    "import or remove some of them, then send the rest."
                )
            self._taken += size

    def give_back(self, size: int) -> None:
        with self._lock:
            self._taken -= size

    @contextmanager
    def arriving(self) -> Iterator[Callable[[int], None]]:
        """What to call with the size of each piece that arrives, which raises StorageFull. At the end of the block all
        of them are given back."""
        arrived = 0

        def count(size: int) -> None:
            nonlocal arrived
            self.take(size)
            arrived += size

        try:
            yield count
        finally:
            self.give_back(arrived)


class Staging:
    """The batches of one user."""

    def __init__(
        self, registry: Registry, tell: Callable[[], None] = lambda: None, most_copied: int | None = None
    ) -> None:
        self._registry = registry
        self._tell = tell
        self.copied = CopiedBytes(most_copied)
        #: Hold this lock while reading the lists, if they must not change meanwhile.
        self.still = threading.RLock()
        self._batches: dict[UUID, Batch] = {}
        #: The batch that the current attempt works on.
        self.active: UUID | None = None

    def open(self, library_id: UUID | None, name: str | None) -> Batch:
        """Return the batch for a library, or for a new one of this name; create it on the first call."""
        with self.still:
            for batch in self._batches.values():
                if (batch.library_id, batch.name) == (library_id, name):
                    return batch
            batch = Batch(uuid4(), library_id, name)
            self._batches[batch.id] = batch
            return batch

    def latest(self) -> Batch | None:
        """Return the batch that was opened last."""
        with self.still:
            return next(reversed(self._batches.values()), None)

    def retarget(self, library_id: UUID | None, name: str | None) -> Batch:
        """Send the latest batch and its files to another library. Raises InvalidState while it runs."""
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
                raise NotFound("There is no such import. Start a new one.")
            return self._batches[batch_id]

    def add(self, batch_id: UUID, name: str, path: Path, *, ours: bool = False) -> StagedSource:
        """Append a file to a batch.

        Raises InvalidFileType unless it is a PDF, EPUB or text, InvalidRequest if the batch is full, StorageFull if the
        user has too many copies, and InvalidState while it runs.
        """
        source = _staged(name, path, ours=ours)
        with self.still:
            batch = self._idle(batch_id)
            if len(batch.sources) == MOST_SOURCES:
                raise InvalidRequest(
                    f"An import takes at most {MOST_SOURCES:,} files. Start this one, then make another."
                )
            self._take_copy(source)
            self._batches[batch_id] = replace(batch, sources=(*batch.sources, source))
        self._tell()
        return source

    def replace(
        self, batch_id: UUID, source_id: UUID, name: str, path: Path, *, ours: bool = False
    ) -> StagedSource:
        """Put another file in the place of one."""
        source = _staged(name, path, ours=ours)
        with self.still:
            batch = self._idle(batch_id)
            old = batch.source(source_id)
            self._take_copy(source)
            sources = tuple(source if one is old else one for one in batch.sources)
            self._batches[batch_id] = replace(batch, sources=sources)
        self._delete_copies(old)
        self._tell()
        return source

    def remove(self, batch_id: UUID, source_id: UUID) -> None:
        """Take a file out. Taking out the last one discards an attempt that is paused on the batch."""
        with self.still:
            batch = self._idle(batch_id)
            old = batch.source(source_id)
            left = tuple(one for one in batch.sources if one is not old)
            self._batches[batch_id] = replace(batch, sources=left)
            if not left and self.active == batch_id:
                self._registry.discard()
                self.active = None
        self._delete_copies(old)
        self._tell()

    def reorder(self, batch_id: UUID, order: Sequence[UUID]) -> Batch:
        """Change the order of the files. Raises InvalidRequest unless every file is listed exactly once."""
        with self.still:
            batch = self._idle(batch_id)
            known = {source.id: source for source in batch.sources}
            if len(order) != len(known) or set(order) != set(known):
                raise InvalidRequest("List the id of every file in this import exactly once.")
            batch = self._batches[batch_id] = replace(
                batch, sources=tuple(known[source_id] for source_id in order)
            )
        self._tell()
        return batch

    def move(self, batch_id: UUID, source_id: UUID, places: int) -> None:
        """Move a file up in the order, or down. One that is first or last stays there."""
        with self.still:
            batch = self.get(batch_id)
            order = [source.id for source in batch.sources]
            place = order.index(batch.source(source_id).id)
            other = min(max(place + places, 0), len(order) - 1)
            order.insert(other, order.pop(place))
            self.reorder(batch_id, order)

    def discard(self, batch_id: UUID) -> None:
        """Forget a batch, and discard the attempt that is paused on it."""
        with self.still:
            batch = self._idle(batch_id)
            if self.active == batch_id:
                self._registry.discard()
            self._forget(batch)
        self._delete_copies(*batch.sources)
        self._tell()

    def finish(self, batch_id: UUID) -> None:
        """Forget a batch that is in its library. Does nothing the second time."""
        with self.still:
            batch = self._batches.get(batch_id)
            if batch is None:
                return
            self._forget(batch)
        self._delete_copies(*batch.sources)

    def is_busy(self, batch_id: UUID) -> bool:
        """Whether the runner is working on it."""
        return self.active == batch_id and self._registry.state.status in {
            AttemptStatus.RUNNING,
            AttemptStatus.STOPPING,
        }

    def require_open(self, batch_id: UUID) -> None:
        """Raises NotFound, or InvalidState while the batch runs."""
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

    def _take_copy(self, source: StagedSource) -> None:
        if source.ours:
            self.copied.take(source.size)

    def _delete_copies(self, *sources: StagedSource) -> None:
        """A copy that can't be removed now is removed with its folder."""
        for source in sources:
            if source.ours:
                self.copied.give_back(source.size)
                with suppress(OSError):
                    source.path.unlink()


def _staged(name: str, path: Path, *, ours: bool) -> StagedSource:
    kind = staged_kind(name, path)
    return StagedSource(uuid4(), name, kind, path.stat().st_size, path, ours)


def staged_kind(name: str, path: Path) -> Kind:
    """Tell a file's kind by its name, and check that against its content. Raises InvalidFileType."""
    kind = KINDS.get(PurePath(name).suffix.lower())
    if kind is None:
        raise InvalidFileType("Only PDFs, EPUBs and text files (.txt, .md) can be imported.")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise InvalidFileType(
            "This file can't be read. Check that it exists and that you have permission to read it."
        ) from error
    if not head:
        raise InvalidFileType("This file is empty.")
    require_kind(kind, head)
    return kind


def require_kind(kind: Kind, head: bytes) -> None:
    """Raises InvalidFileType unless a file that begins with `head` can be of this kind."""
    if not looks_like(kind, head):
        raise InvalidFileType(f"This isn't {A_KIND[kind]}, despite its name.")
