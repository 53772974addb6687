"""What one pass over a file tells of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: Enough of the beginning to know a file by.
HEAD = 4096


@dataclass(frozen=True)
class Digest:
    size: int
    sha256: str
    head: bytes


class Digester:
    """Makes the pass: takes the pieces as they come."""

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
        """The pieces as they are, for somebody else."""
        for piece in pieces:
            self.update(piece)
            yield piece

    def result(self) -> Digest:
        return Digest(self.size, self._sha256.hexdigest(), self._head)
