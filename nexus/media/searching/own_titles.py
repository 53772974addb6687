"""Titles that a viewer gave to items. The viewer finds the items by these as well; nobody else does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, literal_column, select

from nexus.db.chunks import ABOUT, chunks
from nexus.db.session import Query, Session
from nexus.db.shelves import shelf
from nexus.search.analysis import analyse
from nexus.search.bm25 import Indexes, Scorer
from nexus.search.scope import CHUNK_PLACE, ChunkPlace, SearchScope, Shape, is_readable, per_shape
from nexus.search.terms import Term, Terms
from nexus.search.words import WordHit, word_index

#: How many titles are looked at, the latest first.
MOST_TITLES = 2000


class _OwnTitle(NamedTuple):
    passage: ChunkPlace
    title: str


class TitleHits(NamedTuple):
    hits: list[WordHit]
    #: Items whose own titles have a word that is excluded.
    excluded: set[UUID]


def find_own_titles(
    session: Session, everywhere: SearchScope, narrowed: SearchScope, terms: Terms
) -> TitleHits:
    """Return the items whose own titles have some of the words.

    A phrase that has to occur may be in the title or in the text, so both scopes are needed: with and without it.
    """
    titles = {
        row.passage: analyse(row.title)
        for row in session.all(_own_titles(everywhere.shape), **everywhere.values)
    }
    if not titles:
        return TitleHits([], set())
    excluded = {place.media_id for place, tokens in titles.items() if _has_any(tokens, terms.excluded)}
    found = {place: tokens for place, tokens in titles.items() if _has_any(tokens, terms.wanted)}
    if found and terms.required:
        inside = {row.passage for row in session.all(_own_titles(narrowed.shape), **narrowed.values)}
        found = {
            place: tokens
            for place, tokens in found.items()
            if place in inside or all(_has_any(tokens, [term]) for term in terms.required)
        }
    if not found:
        return TitleHits([], excluded)
    scorer = Scorer(terms.wanted, word_index(session).figures(session, terms.wanted))
    asked = {place: Indexes(" ".join(tokens), "", len(tokens)) for place, tokens in found.items()}
    return TitleHits([WordHit(place, scorer.score(title)) for place, title in asked.items()], excluded)


@per_shape
def _own_titles(shape: Shape) -> Query[_OwnTitle]:
    mine = shelf.c.user_id == bindparam("viewer"), shelf.c.title.is_not(None)
    return Query(
        select(*CHUNK_PLACE, shelf.c.title)
        .join_from(shelf, chunks, chunks.c.media_id == shelf.c.media_id)
        .where(
            *mine,
            chunks.c.position == literal_column(str(ABOUT)),
            is_readable(shape, select(shelf.c.media_id).where(*mine)),
        )
        .order_by(shelf.c.changed_at.desc())
        .limit(literal_column(str(MOST_TITLES))),
        _OwnTitle,
    )


def _has_any(tokens: list[str], terms: Iterable[Term]) -> bool:
    whole = f" {' '.join(tokens)} "
    return any(f" {' '.join(form)} " in whole for term in terms for form in term.forms)
