"""Finds chunks by their words.

The rarest words of a question bring the candidates: scoring every chunk with a common word would take most of the time
and change little. Candidates are scored with all words, in Python, so every database ranks alike.
"""

from __future__ import annotations

from typing import NamedTuple

from nexus.db.session import Session
from nexus.search.bm25 import Indexes, Scorer
from nexus.search.candidates import RANKED, SCORED, CandidateRow, WordIndex
from nexus.search.scope import ChunkPlace, SearchScope
from nexus.search.terms import Term, Terms
from nexus.search.words_postgres import PostgresWords
from nexus.search.words_sqlite import SqliteWords

#: How many chunks a search by words returns.
WANTED = 200
#: More phrases than this are looked for, but need not occur.
MOST_REQUIRED = 4


class WordHit(NamedTuple):
    passage: ChunkPlace
    score: float


def word_index(session: Session) -> WordIndex:
    """Return the index of the session's database."""
    return SqliteWords() if session.is_sqlite else PostgresWords()


def narrow(session: Session, scope: SearchScope, terms: Terms) -> SearchScope:
    """Leave only the items that have every required phrase and no excluded one, anywhere in them."""
    index = word_index(session)
    required = terms.required[:MOST_REQUIRED]
    if not required and not terms.excluded:
        return scope
    holding = {f"required_{number}": index.any_of([term]) for number, term in enumerate(required)}
    lacking = {"excluded": index.any_of(terms.excluded)} if terms.excluded else {}
    return scope.narrowed(
        tuple(map(index.texts_with, holding)), tuple(map(index.texts_with, lacking)), {**holding, **lacking}
    )


def find_words(session: Session, scope: SearchScope, terms: Terms) -> list[WordHit]:
    """Return the chunks in scope that match a question's words best, best first."""
    index = word_index(session)
    figures = index.figures(session, terms.wanted)
    scorer = Scorer(terms.wanted, figures)
    counted = zip(figures.found_in, terms.wanted, strict=True)
    rarest_first = sorted(((count, term) for count, term in counted if count), key=lambda pair: pair[0])
    candidates = _candidates(session, index, scope, rarest_first)
    scored = [(scorer.score(Indexes(row.head, row.words, row.length)), row) for row in candidates]
    scored.sort(key=lambda pair: (-pair[0], pair[1].media_id, pair[1].position))
    return [WordHit(row.passage, score) for score, row in scored[:WANTED]]


def _candidates(
    session: Session, index: WordIndex, scope: SearchScope, found: list[tuple[int, Term]]
) -> list[CandidateRow]:
    if not found:
        return []
    rows: dict[int, CandidateRow] = {}
    for condition in _conditions(index, found):
        rows.update((row.key, row) for row in index.newest_best(session, scope, condition))
        if len(rows) >= SCORED:
            break
    was_all = sum(count for count, _ in found) <= SCORED
    if len(rows) < WANTED and not was_all:
        every = index.any_of([term for _, term in found])
        rows.update((row.key, row) for row in index.best(session, scope, every))
    return list(rows.values())


def _conditions(index: WordIndex, found: list[tuple[int, Term]]) -> list[str]:
    """The conditions that candidates have to meet, tried in turn until there are enough.

    First any of the rare terms. Then, of the common ones: all of them, the rarest and another, any.
    """
    total = 0
    rare: list[Term] = []
    common: list[Term] = []
    for count, term in found:
        total += count
        (rare if total <= RANKED else common).append(term)
    conditions = [index.any_of(rare)] if rare else []
    if len(common) > 1:
        conditions.append(index.all_of([index.any_of([term]) for term in common]))
    if len(common) > 2:
        conditions.append(index.all_of([index.any_of(common[:1]), index.any_of(common[1:])]))
    return [*conditions, index.any_of(common)] if common else conditions
