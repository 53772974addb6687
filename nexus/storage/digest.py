"""What one pass over a file finds out: its size, its hash and how it begins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: Enough of the beginning to tell what kind of file it is.
HEAD = 4096


@dataclass(frozen=True)
class Digest:
    size: int
    sha256: str
    head: bytes


class Digester:
    """Makes the pass, piece by piece."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._head = b""
        self.size = 0

    def update(self, piece: bytes | memoryview) -> None:
        self._sha256.update(piece)
        self.size += len(piece)
        if len(self._head) < HEAD:
            self._head += bytes(piece[: HEAD - len(self._head)])

    def passing(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces unchanged while digesting them."""
        for piece in pieces:
            self.update(piece)
            yield piece

    def result(self) -> Digest:
        return Digest(self.size, self._sha256.hexdigest(), self._head)
