"""What every index of words can do, one file for each database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from sqlalchemy import Select

from nexus.db.chunks import chunks
from nexus.db.session import Session
from nexus.search.bm25 import IndexFigures
from nexus.search.scope import CHUNK_PLACE, ChunkPlace, SearchScope
from nexus.search.terms import Term

#: How many candidates are scored with all words.
SCORED = 300
#: How many chunks the database ranks to find these.
RANKED = 3000
#: How many tokens are compared with one that was not found.
MOST_TOKENS = 20_000

CANDIDATE = (*CHUNK_PLACE, *(chunks.c[name] for name in ("head", "words", "length")))


class CandidateRow(NamedTuple):
    """A row of CANDIDATE. Most are left out again, so only those that stay become passages."""

    key: int
    media_id: Any
    revision: int
    position: int
    fragment: int
    start: int
    end: int
    head: str
    words: str
    length: int

    @property
    def passage(self) -> ChunkPlace:
        return ChunkPlace(self.key, as_uuid(self.media_id), *self[2:7])


def as_uuid(stored: UUID | str) -> UUID:
    """Return an id as PostgreSQL or SQLite gives it."""
    return stored if isinstance(stored, UUID) else UUID(stored)


class WordIndex(Protocol):
    """The index of words of one database."""

    def any_of(self, terms: Sequence[Term]) -> str:
        """Return a condition: the chunk has one of the terms."""

    def all_of(self, conditions: Sequence[str]) -> str:
        """Return a condition: the chunk meets all of these."""

    def figures(self, session: Session, terms: Sequence[Term]) -> IndexFigures: ...

    def newest_best(self, session: Session, scope: SearchScope, condition: str) -> list[CandidateRow]:
        """Of the newest chunks anywhere that meet the condition, return the best in scope."""

    def best(self, session: Session, scope: SearchScope, condition: str) -> list[CandidateRow]:
        """Return the best chunks in scope that meet the condition. Looks at all of them."""

    def texts_with(self, name: str) -> Select[tuple[object, int]]:
        """Return a statement for the texts with a chunk that meets the condition in the parameter of this name."""

    def tokens_from(self, session: Session, first: str, last: str) -> list[str]:
        """Return the tokens of the index between two others, in order. Slow: only for questions that found nothing."""
