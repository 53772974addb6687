"""Files under the data folder. Nexus itself serves the links, which carry a signature over everything they allow."""

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
from typing import TypeVar
from urllib.parse import quote, urlencode

from nexus.storage import (
    CHUNK,
    Clock,
    Link,
    ObjectExists,
    ObjectMissing,
    StorageError,
    Stored,
    Trouble,
    UploadTarget,
    explained,
)
from nexus.storage.digest import Digest, Digester

#: A path is names joined by slashes; no name begins with a dot, so none leads out of the folder or to a draft.
PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
ROUTE = "/storage"
DRAFTS = ".drafts"
#: How much of a draft is passed over at a time. Then the disk is told to begin with it.
WINDOW = 8 * CHUNK
#: Of so many files that were written last, the digests are known.
REMEMBERED = 1000
#: How often a folder is made again that others remove.
FOLDER_TRIES = 20

Identity = tuple[int, int, int, int]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Grant:
    """What one link allows."""

    method: str
    path: str
    expires: int
    content_type: str
    size: int = 0
    filename: str = ""

    def signed(self, secret: str) -> str:
        """Each part goes in with its length, so that no two grants read the same."""
        parts = (self.method, self.path, str(self.expires), self.content_type, str(self.size), self.filename)
        message = "".join(f"{len(part.encode())}:{part}" for part in parts)
        return hmac.new(secret.encode(), message.encode(), hashlib.sha256).hexdigest()


class Fresh:
    """What this process wrote lately: its digests, for as long as the files are the ones that it wrote."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, tuple[Identity, Digest]] = OrderedDict()
        self._lock = threading.Lock()
        self.passes = ThreadPoolExecutor(2, "nexus-digest")

    def add(self, place: Path, identity: Identity, digest: Digest) -> None:
        with self._lock:
            self._known[place] = identity, digest
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)

    def get(self, place: Path) -> Digest | None:
        with self._lock:
            known = self._known.get(place)
        with suppress(OSError):
            if known is not None and known[0] == _identity(place.stat()):
                return known[1]
        return None


@dataclass(frozen=True)
class Local:
    folder: Path
    secret: str = field(repr=False)
    clock: Clock
    create_only: bool = True
    fresh: Fresh = field(default_factory=Fresh, repr=False, compare=False)

    def sign_upload(self, path: str, content_type: str, size: int, life: timedelta) -> UploadTarget:
        expires_at = self.clock() + life
        grant = Grant("PUT", path, _seconds(expires_at), content_type, size)
        query = {"expires": grant.expires, "size": size, "signature": grant.signed(self.secret)}
        return UploadTarget(self._url(path, query), {"Content-Type": content_type}, expires_at)

    def sign_download(self, path: str, filename: str, content_type: str, life: timedelta) -> Link:
        expires_at = self.clock() + life
        grant = Grant("GET", path, _seconds(expires_at), content_type, filename=filename)
        query = {
            "expires": grant.expires,
            "type": content_type,
            "filename": filename,
            "signature": grant.signed(self.secret),
        }
        return Link(self._url(path, query), expires_at)

    def allows(self, grant: Grant, signature: str) -> bool:
        """Whether this very grant was signed here and its time is not over."""
        genuine = hmac.compare_digest(grant.signed(self.secret).encode(), signature.encode())
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
        return self.fresh.get(self.locate(path))

    def put(self, path: str, chunks: Iterable[bytes], content_type: str) -> Digest:  # noqa: ARG002
        with self.draft(path) as draft:
            for chunk in chunks:
                draft.write(chunk)
            return draft.publish()

    def delete(self, path: str) -> None:
        """Nobody waits for the disk: a file that a power cut brings back is one that no row knows, and upkeep finds
        it."""
        place = self.locate(path)
        with explained():
            place.unlink(missing_ok=True)
        _remove_empty(place.parent, self.folder)

    def objects(self, prefix: str) -> Iterator[Stored]:
        for found in _files(self.folder, self.folder / prefix.rpartition("/")[0]):
            if found.path.startswith(prefix) and not found.path.startswith(DRAFTS):
                yield found

    def trouble(self) -> Trouble | None:
        """The folder is made with the first file, so until then the one above it counts."""
        nearest = next(place for place in (self.folder, *self.folder.parents) if place.exists())
        if nearest.is_dir() and os.access(nearest, os.R_OK | os.W_OK | os.X_OK):
            return None
        return Trouble(
            f"Files can't be kept in {nearest}.",
            "Change its permissions, or choose another folder with --data-dir.",
        )

    def drafts(self) -> Iterator[Stored]:
        """What is on its way in, or was when its process ended."""
        return _files(self.folder, self.folder / DRAFTS)

    def drop_draft(self, draft: Stored) -> None:
        with explained():
            (self.folder / DRAFTS / Path(draft.path).name).unlink(missing_ok=True)

    def locate(self, path: str) -> Path:
        if not PATH.fullmatch(path):
            raise StorageError("not a path of this store")
        return self.folder / path

    def draft(self, path: str) -> Draft:
        return Draft(self.folder, self.locate(path), self.fresh)

    def _url(self, path: str, query: dict[str, object]) -> str:
        return f"{ROUTE}/{quote(path)}?{urlencode(query)}"


class Draft:
    """A file on its way in: nobody sees it before it is whole, and it never replaces another.

    While it is written, a thread passes over what is stored already: at the end its digest is known.
    """

    def __init__(self, folder: Path, place: Path, fresh: Fresh) -> None:
        self._folder = folder
        self._place = place
        self._draft = folder / DRAFTS / uuid.uuid4().hex
        self._fresh = fresh

    def __enter__(self) -> Draft:
        with explained():
            self._file = _in_folder(self._draft, lambda: self._draft.open("x+b", buffering=0))
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
        with self._writing, suppress(OSError):  # what is published is on the disk, and upkeep finds the rest
            self._file.close()
            self._draft.unlink(missing_ok=True)

    def write_all(self, pieces: deque[bytes]) -> None:
        """Until none is left; others may come meanwhile."""
        with self._writing:
            while pieces and not self._ended:
                self.write(pieces.popleft())

    def write(self, piece: bytes) -> None:
        """All of it: one call to the system may take only a part."""
        rest = memoryview(piece)
        with explained():
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        self.written += len(piece)
        if self.written - self._digester.size >= WINDOW and (self._passing is None or self._passing.done()):
            self._passing = self._fresh.passes.submit(self._pass_on)

    def _pass_on(self) -> None:
        """Over what is stored, for as long as there is a window of it left."""
        while not self._ended and self.written - self._digester.size >= WINDOW:
            begun = self._digester.size
            self._pass(begun + WINDOW)
            self._begin_writing_out(begun, WINDOW)

    def _pass(self, end: int) -> None:
        room = memoryview(bytearray(min(CHUNK, end - self._digester.size)))
        while not self._ended and (done := self._digester.size) < end:
            length = os.preadv(self._file.fileno(), [room[: end - done]], done)
            if not length:
                raise StorageError("a file was cut while it came in")
            self._digester.update(room[:length])

    def _begin_writing_out(self, start: int, length: int) -> None:
        """So that `publish` has little left to wait for. What is on its way to the disk is not dropped from memory."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), start, length, os.POSIX_FADV_DONTNEED)

    def publish(self) -> Digest:
        """On the disk, then visible, in one step; what it is. Raises ObjectExists."""
        with explained():
            if self._passing is not None:
                self._passing.result()
            self._pass(self.written)
            os.fsync(self._file.fileno())
            identity = _identity(os.fstat(self._file.fileno()))
            try:
                _in_folder(self._place, lambda: self._place.hardlink_to(self._draft))
            except FileExistsError as error:
                raise ObjectExists from error
            _sync_folders(self._place.parent, self._folder.parent)
        digest = self._digester.result()
        self._fresh.add(self._place, identity, digest)
        return digest


def _in_folder(place: Path, make: Callable[[], Made]) -> Made:
    """Make something there. Its folder is made when it is needed; somebody may remove it again as an empty one."""
    for _ in range(FOLDER_TRIES):
        with suppress(FileNotFoundError):
            return make()
        with suppress(FileNotFoundError):
            place.parent.mkdir(parents=True, exist_ok=True)
    return make()


def _sync_folders(folder: Path, top: Path) -> None:
    """A file is on the disk once its name is, and the names of all folders above it: another thread may have made
    one of them just now and not have got as far as this. Those that have not changed cost nothing."""
    for each in (folder, *folder.parents):
        line = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(line)
        finally:
            os.close(line)
        if each == top:
            return


def _identity(stat: os.stat_result) -> Identity:
    """Another file has another, and so has this one once somebody wrote to it."""
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _stored(path: str, stat: os.stat_result) -> Stored:
    return Stored(path, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))


def _files(top: Path, folder: Path) -> Iterator[Stored]:
    """By path; what goes away meanwhile is passed over."""
    with explained():
        for place in sorted(folder.rglob("*")):
            with suppress(FileNotFoundError):
                if place.is_file():
                    yield _stored(place.relative_to(top).as_posix(), place.stat())


def _remove_empty(folder: Path, top: Path) -> None:
    """Up to the top; a folder that something else stands in stays."""
    while folder != top:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
