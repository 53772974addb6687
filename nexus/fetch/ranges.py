"""Parts of a file, as HTTP names them: what a request asks for, and what an answer says that it holds."""

from __future__ import annotations

import re
from typing import NamedTuple

_ASKED = re.compile(r"\s*bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*", re.ASCII | re.IGNORECASE)
_SAID = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15}|\*)", re.ASCII | re.IGNORECASE)


class ByteRange(NamedTuple):
    """The bytes that somebody asks for: from `first` to `last`, both included.

    Without `last`, all up to the end. Without `first`, as many from the end as `last` says.
    """

    first: int | None
    last: int | None

    @property
    def header(self) -> str:
        first = "" if self.first is None else self.first
        last = "" if self.last is None else self.last
        return f"bytes={first}-{last}"

    def within(self, size: int) -> Part | None:
        """Return which part of a file of this size that is; None if it has no such bytes."""
        if self.first is None:
            wanted = min(self.last or 0, size)
            return Part(size - wanted, size - 1, size) if wanted else None
        if self.first >= size:
            return None
        last = size - 1 if self.last is None else min(self.last, size - 1)
        return Part(self.first, last, size)


class Part(NamedTuple):
    """The bytes that an answer holds, from `first` to `last`, and the size of the whole, if that is known."""

    first: int
    last: int
    size: int | None

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    @property
    def header(self) -> str:
        return f"bytes {self.first}-{self.last}/{'*' if self.size is None else self.size}"

    def answers(self, asked: ByteRange) -> bool:
        """Whether these are bytes that were asked for. An answer may hold fewer, but has to begin with the first."""
        if asked.first is None:
            return self.size is None or self.first == self.size - min(asked.last or 0, self.size)
        return self.first == asked.first and (asked.last is None or self.last <= asked.last)


def parse_range(header: str | None) -> ByteRange | None:
    """Return the one range that a header asks for. None for no range, several or nonsense: all is answered then."""
    found = _ASKED.fullmatch(header or "")
    if found is None or not (found[1] or found[2]):
        return None
    asked = ByteRange(int(found[1]) if found[1] else None, int(found[2]) if found[2] else None)
    is_backward = asked.first is not None and asked.last is not None and asked.last < asked.first
    return None if is_backward else asked


def parse_part(header: str) -> Part | None:
    """Return what a Content-Range header says; None if it says nothing that can be true."""
    found = _SAID.fullmatch(header)
    if found is None or found[1] is None:
        return None
    part = Part(int(found[1]), int(found[2]), None if found[3] == "*" else int(found[3]))
    is_possible = part.first <= part.last and (part.size is None or part.last < part.size)
    return part if is_possible else None


def size_said(header: str) -> int | None:
    """Return the size of the whole that a Content-Range header states, also one that refuses a range."""
    found = _SAID.fullmatch(header)
    return None if found is None or found[3] == "*" else int(found[3])
