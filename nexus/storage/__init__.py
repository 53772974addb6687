"""Where bytes live: what a store must do. Clients reach files only over signed links that soon expire."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from nexus.storage.digest import Digest

#: The path below which Nexus serves the links of a store that has no server of its own.
ROUTE = "/storage"

#: How much of a file is in memory at a time.
CHUNK = 1024 * 1024

Clock = Callable[[], datetime]


class StorageError(Exception):
    """The store could not do what it was asked to."""


class NoRoom(StorageError):
    """The store is full."""


class ObjectMissing(StorageError):
    """There is no file at this path."""


class ObjectExists(StorageError):
    """There is already a file at this path. It is never replaced."""


class Trouble(NamedTuple):
    """Why a store does not work, and what to do about it: sentences for an operator."""

    says: str
    advice: str


@contextmanager
def explained() -> Iterator[None]:
    """Turn an OSError into a StorageError that names its code only, because its message may hold a path."""
    try:
        yield
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise (NoRoom if error.errno in _FULL else StorageError)(code) from error


_FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class UploadTarget:
    """Where a client may upload one file, once, with exactly these headers. Nexus serves a url without a host."""

    url: str
    headers: Mapping[str, str]
    expires_at: datetime


@dataclass(frozen=True)
class Link:
    """Where a client may download one file."""

    url: str
    expires_at: datetime


@dataclass(frozen=True)
class Stored:
    """A file in the store."""

    path: str
    size: int
    modified_at: datetime


@dataclass(frozen=True)
class Grant:
    """What a link that Nexus serves allows."""

    method: str
    path: str
    expires: int
    content_type: str
    size: int = 0
    filename: str = ""


class Arriving(Protocol):
    """A file that is being uploaded. Nobody sees it before it is published."""

    written: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def write_all(self, pieces: deque[bytes]) -> None:
        """Write until no piece is left; more may be added meanwhile."""
        ...

    def publish(self) -> Digest:
        """Make the file visible and durable; return its digest. Raises ObjectExists."""
        ...


class LinkServer(Protocol):
    """What Nexus needs to serve a store's links itself."""

    def allows(self, grant: Grant, signature: str) -> bool:
        """Whether exactly this grant was signed here and has not expired."""
        ...

    def receive(self, path: str) -> Arriving:
        """Return a file to write to; it appears at the path when it is published."""
        ...

    def locate(self, path: str) -> Path:
        """Return where a file lies. Raises StorageError for a path that Nexus does not make."""
        ...

    def head(self, path: str) -> Stored | None: ...


class Storage(Protocol):
    """Every method raises StorageError, or a kind of it, if the store fails."""

    def sign_upload(self, path: str, content_type: str, size: int, life: timedelta) -> UploadTarget:
        """Return where to upload a file that can then be read at the path. Once it was read, no upload replaces it."""
        ...

    @property
    def link_server(self) -> LinkServer | None:
        """Return what serves this store's links if Nexus has to; None if the store serves them itself."""
        ...

    def sign_download(self, path: str, filename: str, content_type: str, life: timedelta) -> Link: ...

    def head(self, path: str) -> Stored | None: ...

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield the bytes in chunks. Raises ObjectMissing."""
        ...

    def digest(self, path: str) -> Digest | None:
        """Return the digest if it is known from writing the file; otherwise the caller has to read the file."""
        ...

    def put(self, path: str, chunks: Iterable[bytes], content_type: str) -> Digest:
        """Store a file whole or not at all; return its digest. Afterwards it survives a power cut.

        Raises ObjectExists, NoRoom, and whatever the chunks raise.
        """
        ...

    def delete(self, path: str) -> None:
        """Remove a file. Does nothing if there is none."""
        ...

    def objects(self, prefix: str) -> Iterator[Stored]:
        """Yield every file whose path starts with the prefix."""
        ...

    def partial_files(self) -> Iterator[Stored]:
        """Yield uploads that are arriving or have broken off. Empty if the store hides and removes them itself."""
        ...

    def delete_partial(self, part: Stored) -> None:
        """Remove one of `partial_files`."""
        ...

    def trouble(self) -> Trouble | None:
        """Ask the store whether it answers and accepts the credentials; return what is wrong. Changes nothing."""
        ...
