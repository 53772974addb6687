"""Answers a question: the items in scope that match it by words and by meaning, with their best passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, Text, func, select
from sqlalchemy.engine import Dialect

from nexus.db.chunks import chunks
from nexus.db.session import Query, Session
from nexus.db.tables import fragments
from nexus.search.codes import SignCodes
from nexus.search.fusing import FoundItem, fuse, group_items
from nexus.search.meaning import MeaningHit, compare_passages, find_meaning, item_vector
from nexus.search.questions import Question
from nexus.search.scope import ChunkPlace, SearchScope, Shape, is_readable, listed, numbered, per_shape
from nexus.search.terms import Terms, terms_of
from nexus.search.words import WordHit, find_words, narrow


class AskedMeaning(NamedTuple):
    """What a question means to a model, and the codes of that model's vectors."""

    codes: SignCodes
    model: str
    vector: bytes


class Findings(NamedTuple):
    """All items that were found, best first, and the terms to mark in their passages."""

    items: list[FoundItem]
    terms: Terms
    #: Whether a word or phrase was found. If not, something may be misspelled.
    has_words: bool


class PassageText(NamedTuple):
    key: int
    text: str


def find_items(
    session: Session,
    scope: SearchScope,
    question: Question,
    meaning: AskedMeaning | None = None,
    titles: Sequence[WordHit] = (),
) -> Findings:
    """Return what a question finds in a scope; without `meaning`, by words alone.

    `titles` are items that the caller found by a title that the index does not know.
    """
    terms = terms_of(session, question)
    if question.is_empty:
        return Findings([], terms, has_words=False)
    scope = narrow(session, scope, terms)
    hits = sorted([*find_words(session, scope, terms), *titles], key=lambda hit: hit.score)
    words = list(
        {hit.passage.key: hit for hit in hits}.values()
    )  # each passage with the better of its scores
    near = _near(session, scope, meaning, words) if meaning else []
    return Findings(group_items(fuse(words, near)), terms, has_words=bool(words))


def find_similar(
    session: Session, scope: SearchScope, codes: SignCodes, model: str, media_id: UUID
) -> list[FoundItem]:
    """Return the items in scope that mean much the same as one of them, nearest first."""
    vector = item_vector(session, scope, model, media_id)
    if vector is None:
        return []
    near = find_meaning(session, scope, codes, model, vector) or []
    others = [hit for hit in near if hit.passage.media_id != media_id]
    return group_items(fuse([], others, share=1.0))


def passage_texts(session: Session, scope: SearchScope, passages: Iterable[ChunkPlace]) -> dict[int, str]:
    """Return the texts of passages by their keys; those that left the scope meanwhile are missing."""
    keys = listed(session, (passage.key for passage in passages))
    rows = session.all(_texts(scope.shape), numbers=keys, **scope.values)
    return {row.key: row.text for row in rows}


def _near(
    session: Session, scope: SearchScope, asked: AskedMeaning, words: list[WordHit]
) -> list[MeaningHit]:
    found = find_meaning(session, scope, asked.codes, asked.model, asked.vector)
    if found is not None:
        return found
    return compare_passages(session, scope, asked.model, asked.vector, [hit.passage for hit in words])


@per_shape
def _texts(shape: Shape) -> Query[PassageText]:
    def clause(dialect: Dialect) -> Select[Any]:
        part = func.substr(fragments.c.text, chunks.c.start + 1, chunks.c["end"] - chunks.c.start, type_=Text)
        named = chunks.alias("named")
        items = select(named.c.media_id).where(numbered(dialect, named.c.key))
        return (
            select(chunks.c.key, part.label("text"))
            .join(
                fragments,
                (fragments.c.media_id == chunks.c.media_id)
                & (fragments.c.revision == chunks.c.revision)
                & (fragments.c.position == chunks.c.fragment),
            )
            .where(numbered(dialect, chunks.c.key), is_readable(shape, items))
        )

    return Query(clause, PassageText)
