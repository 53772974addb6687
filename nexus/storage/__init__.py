"""Where bytes live: what a store is. Clients reach it only over links that it signs and that soon end."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from nexus.storage.digest import Digest

#: How much of a file is in memory at a time.
CHUNK = 1024 * 1024


Clock = Callable[[], datetime]


class StorageError(Exception):
    """The store did not do what was asked of it."""


class NoRoom(StorageError):
    """There is no room left for what was to be stored."""


class ObjectMissing(StorageError):
    """There is no object at this path."""


class ObjectExists(StorageError):
    """There is an object at this path, and it stays as it is."""


class Trouble(NamedTuple):
    """What keeps a store from working, and what to set or do about it. Both are sentences for an operator."""

    says: str
    advice: str


@contextmanager
def explained() -> Iterator[None]:
    """What the system refuses becomes an error of the store, named by the system's code: its message has a path."""
    try:
        yield
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise (NoRoom if error.errno in _FULL else StorageError)(code) from error


_FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True)
class UploadTarget:
    """Where a client may put one file, once, with exactly these headers. A url without a host is served by Nexus."""

    url: str
    headers: Mapping[str, str]
    expires_at: datetime


@dataclass(frozen=True)
class Link:
    """Where a client may get one file."""

    url: str
    expires_at: datetime


@dataclass(frozen=True)
class Stored:
    path: str
    size: int
    modified_at: datetime


class Storage(Protocol):
    """Whatever goes wrong in a store is a StorageError: nobody has to know what it is made of."""

    @property
    def create_only(self) -> bool:
        """Whether the store itself keeps a link that is used again from replacing what is there."""
        ...

    def sign_upload(self, path: str, content_type: str, size: int, life: timedelta) -> UploadTarget: ...

    def sign_download(self, path: str, filename: str, content_type: str, life: timedelta) -> Link: ...

    def head(self, path: str) -> Stored | None: ...

    def stream(self, path: str) -> Iterator[bytes]:
        """The bytes in chunks. Raises ObjectMissing."""
        ...

    def digest(self, path: str) -> Digest | None:
        """Of what is stored, where Nexus itself wrote it and worked it out meanwhile. Else it is to be read."""
        ...

    def put(self, path: str, chunks: Iterable[bytes], content_type: str) -> Digest:
        """Whole or not at all; what was written. On its return it outlasts a power cut. Raises ObjectExists, NoRoom,
        and whatever the chunks raise."""
        ...

    def delete(self, path: str) -> None:
        """Nothing happens if there is none."""
        ...

    def objects(self, prefix: str) -> Iterator[Stored]: ...

    def trouble(self) -> Trouble | None:
        """None when the store answers and takes the credentials. Asks the store; changes nothing."""
        ...
