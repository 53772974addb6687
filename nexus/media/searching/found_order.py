"""The cursor of a search. It carries the order of what is still to be shown, so later pages continue with exactly
that."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from nexus.errors import InvalidRequest
from nexus.media.queries import NOT_OURS

#: How many items a search finds at most.
MOST_FOUND = 200
#: The longest cursor.
LONGEST_CURSOR = 5000
_FINEST = 0xFFFF
_HEAD = struct.Struct(">8s?H")
_ENTRY = struct.Struct(">16sH")


class Ranked(NamedTuple):
    """A found item, and how well it matches, from 0 to 1."""

    media_id: UUID
    score: float


@dataclass(frozen=True)
class FoundOrder:
    """Items in the order in which they are shown, the best first."""

    ranked: Sequence[Ranked]
    #: How many there were at the first page.
    total: int
    #: Whether meaning was looked for as well.
    by_meaning: bool = False

    def cursor(self, asked: bytes, shown: int) -> str | None:
        """Return what continues after so many of them; None at the end."""
        rest = self.ranked[shown:]
        if not rest:
            return None
        entries = (_ENTRY.pack(one.media_id.bytes, round(one.score * _FINEST)) for one in rest)
        whole = _HEAD.pack(asked, self.by_meaning, self.total) + b"".join(entries)
        return base64.urlsafe_b64encode(whole).decode().rstrip("=")


def resume_order(cursor: str, asked: bytes) -> FoundOrder:
    """Return the order that a cursor carries. Raises InvalidRequest for one of another search, or one that Nexus did
    not make."""
    try:
        whole = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        own, by_meaning, total = _HEAD.unpack_from(whole)
        entries = list(_ENTRY.iter_unpack(whole[_HEAD.size :]))
    except (binascii.Error, ValueError, struct.error) as error:
        raise InvalidRequest(NOT_OURS) from error
    if own != asked or not 0 < len(entries) <= MOST_FOUND:
        raise InvalidRequest(NOT_OURS)
    ranked = [Ranked(UUID(bytes=media_id), score / _FINEST) for media_id, score in entries]
    return FoundOrder(ranked, total, by_meaning)


def asked_digest(*parts: object) -> bytes:
    """Return what a cursor remembers of its question."""
    return hashlib.blake2b(repr(parts).encode(errors="replace"), digest_size=8).digest()
