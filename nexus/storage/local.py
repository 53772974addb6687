"""Files in the data folder. Nexus serves the links itself; each carries a signature over everything it allows."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import threading
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import quote, urlencode

from nexus.storage import (
    CHUNK,
    ROUTE,
    Clock,
    Grant,
    Link,
    LinkServer,
    ObjectExists,
    ObjectMissing,
    StorageError,
    Stored,
    Trouble,
    UploadTarget,
    explained,
)
from nexus.storage.digest import Digest, Digester

#: A path is names joined by slashes. No name begins with a dot, so none leads out of the folder or to a partial file.
PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
PARTS = ".drafts"
#: How much of an incoming file is digested at a time. Then the kernel is told to start writing it to disk.
WINDOW = 8 * CHUNK
#: How many digests of newly written files are kept.
REMEMBERED = 1000
#: How often to create a folder again that others keep removing as empty.
FOLDER_TRIES = 20

_FileStamp = tuple[int, int, int, int]
Made = TypeVar("Made")


class RecentDigests:
    """Digests of files that this process has just written, as long as nobody has changed the files."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, tuple[_FileStamp, Digest]] = OrderedDict()
        self._lock = threading.Lock()
        self.passes = ThreadPoolExecutor(2, "nexus-digest")

    def add(self, place: Path, stamp: _FileStamp, digest: Digest) -> None:
        with self._lock:
            self._known[place] = stamp, digest
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)

    def get(self, place: Path) -> Digest | None:
        with self._lock:
            known = self._known.get(place)
        with suppress(OSError):
            if known is not None and known[0] == _stamp(place.stat()):
                return known[1]
        return None


@dataclass(frozen=True)
class LocalStorage:
    folder: Path
    secret: str = field(repr=False)
    clock: Clock
    recent: RecentDigests = field(default_factory=RecentDigests, repr=False, compare=False)

    @property
    def link_server(self) -> LinkServer:
        return self

    def sign_upload(self, path: str, content_type: str, size: int, life: timedelta) -> UploadTarget:
        expires_at = self.clock() + life
        grant = Grant("PUT", path, _seconds(expires_at), content_type, size)
        query = {"expires": grant.expires, "size": size, "signature": _signature(grant, self.secret)}
        return UploadTarget(self._url(path, query), {"Content-Type": content_type}, expires_at)

    def sign_download(self, path: str, filename: str, content_type: str, life: timedelta) -> Link:
        expires_at = self.clock() + life
        grant = Grant("GET", path, _seconds(expires_at), content_type, filename=filename)
        query = {
            "expires": grant.expires,
            "type": content_type,
            "filename": filename,
            "signature": _signature(grant, self.secret),
        }
        return Link(self._url(path, query), expires_at)

    def allows(self, grant: Grant, signature: str) -> bool:
        """Whether exactly this grant was signed here and has not expired."""
        genuine = hmac.compare_digest(_signature(grant, self.secret).encode(), signature.encode())
        return genuine and grant.expires >= self.clock().timestamp()

    def head(self, path: str) -> Stored | None:
        with explained(), suppress(FileNotFoundError):
            return _stored(path, self.locate(path).stat())
        return None

    def stream(self, path: str) -> Iterator[bytes]:
        with explained():
            try:
                file = self.locate(path).open("rb", buffering=0)
            except FileNotFoundError as error:
                raise ObjectMissing from error
            with file:
                while chunk := file.read(CHUNK):
                    yield chunk

    def digest(self, path: str) -> Digest | None:
        return self.recent.get(self.locate(path))

    def put(self, path: str, chunks: Iterable[bytes], content_type: str) -> Digest:  # noqa: ARG002
        with self.receive(path) as incoming:
            for chunk in chunks:
                incoming.write(chunk)
            return incoming.publish()

    def delete(self, path: str) -> None:
        """Does not wait for the disk: if a power cut brings the file back, no row knows it, and upkeep removes it."""
        place = self.locate(path)
        with explained():
            place.unlink(missing_ok=True)
        _remove_empty(place.parent, self.folder)

    def objects(self, prefix: str) -> Iterator[Stored]:
        for found in _files(self.folder, self.folder / prefix.rpartition("/")[0]):
            if found.path.startswith(prefix) and not found.path.startswith(PARTS):
                yield found

    def trouble(self) -> Trouble | None:
        """The first file creates the folder, so until then check the nearest one above it."""
        nearest = next(place for place in (self.folder, *self.folder.parents) if place.exists())
        if nearest.is_dir() and os.access(nearest, os.R_OK | os.W_OK | os.X_OK):
            return None
        return Trouble(
            f"Files can't be stored in {nearest}.",
            "Change its permissions, or choose another folder with --data-dir.",
        )

    def partial_files(self) -> Iterator[Stored]:
        return _files(self.folder, self.folder / PARTS)

    def delete_partial(self, part: Stored) -> None:
        with explained():
            (self.folder / PARTS / Path(part.path).name).unlink(missing_ok=True)

    def locate(self, path: str) -> Path:
        """Return where a file lies. Raises StorageError for a path that Nexus does not make."""
        if not PATH.fullmatch(path):
            raise StorageError("not a path of this store")
        return self.folder / path

    def receive(self, path: str) -> IncomingFile:
        """Return a file to write to; it appears at the path when it is published."""
        return IncomingFile(self.folder, self.locate(path), self.recent)

    def _url(self, path: str, query: dict[str, object]) -> str:
        return f"{ROUTE}/{quote(path)}?{urlencode(query)}"


class IncomingFile:
    """A file that is arriving. Nobody sees it before it is whole, and it never replaces another.

    While it is written, a thread digests what has already arrived.
    """

    def __init__(self, folder: Path, place: Path, recent: RecentDigests) -> None:
        self._folder = folder
        self._place = place
        self._part = folder / PARTS / uuid.uuid4().hex
        self._recent = recent

    def __enter__(self) -> Self:
        with explained():
            self._file = _in_folder(self._part, lambda: self._part.open("x+b", buffering=0))
        self._digester = Digester()
        self._passing: Future[None] | None = None
        self._ended = False
        self._writing = threading.Lock()
        self.written = 0
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        if self._passing is not None and not self._passing.cancel():
            wait([self._passing])
        with self._writing, suppress(OSError):  # a published file is safe, and upkeep removes the rest
            self._file.close()
            self._part.unlink(missing_ok=True)

    def write_all(self, pieces: deque[bytes]) -> None:
        """Write until no piece is left; more may be added meanwhile."""
        with self._writing:
            while pieces and not self._ended:
                self.write(pieces.popleft())

    def write(self, piece: bytes) -> None:
        """Write the whole piece: one system call may take only part of it."""
        rest = memoryview(piece)
        with explained():
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        self.written += len(piece)
        if self.written - self._digester.size >= WINDOW and (self._passing is None or self._passing.done()):
            self._passing = self._recent.passes.submit(self._pass_on)

    def _pass_on(self) -> None:
        """Digest what has arrived while there is a whole window of it."""
        while not self._ended and self.written - self._digester.size >= WINDOW:
            begun = self._digester.size
            self._pass(begun + WINDOW)
            self._begin_writing_out(begun, WINDOW)

    def _pass(self, end: int) -> None:
        room = memoryview(bytearray(min(CHUNK, end - self._digester.size)))
        while not self._ended and (done := self._digester.size) < end:
            length = os.preadv(self._file.fileno(), [room[: end - done]], done)
            if not length:
                raise StorageError("a file was truncated while it arrived")
            self._digester.update(room[:length])

    def _begin_writing_out(self, start: int, length: int) -> None:
        """Leaves `publish` little to wait for. Pages that are still being written stay in memory."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), start, length, os.POSIX_FADV_DONTNEED)

    def publish(self) -> Digest:
        """Sync the file to disk, make it visible in one step and return its digest. Raises ObjectExists."""
        with explained():
            if self._passing is not None:
                self._passing.result()
            self._pass(self.written)
            os.fsync(self._file.fileno())
            stamp = _stamp(os.fstat(self._file.fileno()))
            try:
                _in_folder(self._place, lambda: self._place.hardlink_to(self._part))
            except FileExistsError as error:
                raise ObjectExists from error
            _sync_folders(self._place.parent, self._folder.parent)
        digest = self._digester.result()
        self._recent.add(self._place, stamp, digest)
        return digest


def _in_folder(place: Path, make: Callable[[], Made]) -> Made:
    """Create something at a place, and its folder if needed, which others may be removing as empty."""
    for _ in range(FOLDER_TRIES):
        with suppress(FileNotFoundError):
            return make()
        # It says that the folder exists if that goes while pathlib looks whether it is one.
        with suppress(FileNotFoundError, FileExistsError):
            place.parent.mkdir(parents=True, exist_ok=True)
    return make()


def _sync_folders(folder: Path, top: Path) -> None:
    """Make a file's name durable, and the names of all folders above it.

    Another thread may have created one of the folders a moment ago and not have synced it yet. Syncing a folder that
    has not changed costs nothing.
    """
    for each in (folder, *folder.parents):
        line = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(line)
        finally:
            os.close(line)
        if each == top:
            return


def _stamp(stat: os.stat_result) -> _FileStamp:
    """Differs for another file, and for the same file after a write."""
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _signature(grant: Grant, secret: str) -> str:
    """Each part is prefixed with its length, so that no two grants sign the same message."""
    parts = (
        grant.method,
        grant.path,
        str(grant.expires),
        grant.content_type,
        str(grant.size),
        grant.filename,
    )
    message = "".join(f"{len(part.encode())}:{part}" for part in parts)
    return hmac.new(secret.encode(), message.encode(), hashlib.sha256).hexdigest()


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _stored(path: str, stat: os.stat_result) -> Stored:
    return Stored(path, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))


def _files(top: Path, folder: Path) -> Iterator[Stored]:
    """Yield files in the order of their paths, without files and folders that disappear meanwhile."""
    with explained():
        found = os.walk(folder, onerror=_unless_gone)
        for place in sorted(Path(parent, name) for parent, _, names in found for name in names):
            with suppress(FileNotFoundError):
                if place.is_file():
                    yield _stored(place.relative_to(top).as_posix(), place.stat())


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it, up to `top`, while they are empty."""
    while folder != top:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
