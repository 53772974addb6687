"""The signs of vectors, kept in memory: a bit for each of a vector's numbers.

Vectors that mean the same have mostly the same signs, so comparing bits finds a few hundred candidates among all
vectors within milliseconds, in a thirtieth of their memory. What is here is a filter and never an answer: candidates
are looked up in the database.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nexus.db.session import Session
from nexus.search.stored_vectors import StoredVector, VectorPlace, followed_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How many codes are compared at a time, so that they stay in the processor's cache.
BLOCK = 1 << 16


class SignCodes:
    """The codes of one process, for every model that somebody searched with. Safe to share between threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._models: dict[str, _Columns] = {}

    @property
    def memory(self) -> int:
        """How many bytes all codes take."""
        return sum(known.size for known in self._models.values())

    def refresh(self, session: Session, model: str, vector_bytes: int) -> bool:
        """Take in what was committed since the last question; the first one reads everything. False if it is too much.

        Vectors of another length can't be compared with the question, and are left out. Threads that ask meanwhile
        wait, so that nobody misses anything.
        """
        with self._lock:
            known = self._models.get(model)
            if known is None or known.vector_bytes != vector_bytes:
                known = self._models[model] = _Columns(vector_bytes)
            if known.is_too_large:
                return False
            for stored in followed_vectors(session, model, known.place):
                if fitting := [row for row in stored if len(row.vector) == vector_bytes]:
                    known.append(fitting)
                if self.memory > self._most_bytes:
                    known.give_up()
                    return False
            return True

    def nearest(self, model: str, vector: bytes, most: int, among: Sequence[int] | None = None) -> list[int]:
        """Return the numbers of the vectors with the most signs in common, of all or of some."""
        with self._lock:
            if model not in self._models:  # its set was removed since the refresh
                return []
            numbers, codes = self._models[model].view()
        return _nearest(numbers, codes, vector, most, among)

    def held(self, model: str) -> int:
        """Return how many vectors of a model are known."""
        with self._lock:
            return self._models[model].length if model in self._models else 0

    def forget(self, model: str, numbers: set[int]) -> None:
        """Drop the codes of vectors that are gone."""
        with self._lock:
            if model in self._models:
                self._models[model].drop(numbers)

    def keep_only(self, models: set[str]) -> None:
        """Drop the codes of models that nobody searches with any more. What was too large beside them may fit now."""
        with self._lock:
            if self._models.keys() <= models:
                return
            self._models = {
                model: known
                for model, known in self._models.items()
                if model in models and not known.is_too_large
            }


@dataclass
class _Columns:
    """Columns of numbers and codes, with room to grow: more of them do not disturb a reader of the first ones."""

    vector_bytes: int
    length: int = 0
    is_too_large: bool = False
    place: VectorPlace = field(default_factory=VectorPlace)
    numbers: NDArray[np.int64] | None = None
    #: A row for every 64 signs.
    codes: NDArray[np.uint64] | None = None

    @property
    def size(self) -> int:
        if self.numbers is None or self.codes is None:
            return 0
        return self.numbers.nbytes + self.codes.nbytes

    def view(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        import numpy as np  # noqa: PLC0415 slow to load, and not everybody searches by meaning

        if self.numbers is None or self.codes is None:
            return np.zeros(0, np.int64), np.zeros((0, 0), np.uint64)
        return self.numbers[: self.length], self.codes[:, : self.length]

    def append(self, stored: list[StoredVector]) -> None:
        made = sign_codes([row.vector for row in stored])
        numbers, codes = self._with_room(made.shape[0], len(stored))
        until = self.length + len(stored)
        numbers[self.length : until] = [row.seq for row in stored]
        codes[:, self.length : until] = made
        self.length = until

    def _with_room(self, rows: int, more: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        import numpy as np  # noqa: PLC0415

        if self.numbers is None or self.codes is None:
            self.numbers, self.codes = np.zeros(0, np.int64), np.zeros((rows, 0), np.uint64)
        missing = self.length + more - len(self.numbers)
        if missing > 0:
            room = max(missing, self.length // 8)
            self.numbers = np.concatenate([self.numbers, np.zeros(room, np.int64)])
            self.codes = np.concatenate([self.codes, np.zeros((len(self.codes), room), np.uint64)], axis=1)
        return self.numbers, self.codes

    def drop(self, gone: set[int]) -> None:
        import numpy as np  # noqa: PLC0415

        numbers, codes = self.view()
        kept = ~np.isin(numbers, np.fromiter(gone, np.int64))
        self.numbers, self.codes = numbers[kept], codes[:, kept]
        self.length = len(self.numbers)

    def give_up(self) -> None:
        self.is_too_large = True
        self.numbers = self.codes = None
        self.length = 0


def sign_codes(vectors: Sequence[bytes]) -> NDArray[np.uint64]:
    """Return the signs of vectors as columns of 64-bit words."""
    import numpy as np  # noqa: PLC0415

    floats = np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
    bits = np.packbits(floats > 0, axis=1)
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _nearest(
    numbers: NDArray[np.int64],
    codes: NDArray[np.uint64],
    vector: bytes,
    most: int,
    among: Sequence[int] | None,
) -> list[int]:
    import numpy as np  # noqa: PLC0415

    asked = sign_codes([vector])
    if among is not None:
        chosen = np.isin(numbers, np.asarray(among, np.int64))
        numbers, codes = numbers[chosen], codes[:, chosen]
    if len(asked) != len(codes):  # the model was replaced by one of another dimension and the same name
        return []
    differing = np.zeros(len(numbers), np.uint16)
    for start in range(0, len(numbers), BLOCK):
        block = slice(start, start + BLOCK)
        for row, sign in zip(codes, asked, strict=True):
            differing[block] += np.bitwise_count(row[block] ^ sign)
    if most < len(numbers):
        best = np.argpartition(differing, most)[:most]
        numbers, differing = numbers[best], differing[best]
    found: list[int] = numbers[np.lexsort((numbers, differing))].tolist()
    return found
