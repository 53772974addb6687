"""The index of words in SQLite: an FTS5 table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    Column,
    Float,
    Integer,
    LargeBinary,
    Select,
    Text,
    bindparam,
    column,
    func,
    select,
    table,
    text,
)
from sqlalchemy import literal_column as written

from nexus.db.chunks import chunks
from nexus.db.session import Query, Session, Statement
from nexus.db.word_index import INDEX
from nexus.search.bm25 import HEAD_WEIGHT, IndexFigures
from nexus.search.candidates import CANDIDATE, MOST_TOKENS, RANKED, SCORED, CandidateRow
from nexus.search.scope import SearchScope, Shape, is_readable, per_shape
from nexus.search.terms import Term

#: Where FTS5 keeps the number of rows, and of the tokens in each column.
_AVERAGES = 1

_index = table(INDEX, column("rowid", Integer))
_pages = table(f"{INDEX}_data", Column("id", Integer), Column("block", LargeBinary))
_KEY: Any = _index.c.rowid
_RANK: Any = func.bm25(written(INDEX), written(f"{HEAD_WEIGHT}.0"), written("1.0"), type_=Float)


class _TermCount(NamedTuple):
    number: int


class _IndexedWord(NamedTuple):
    term: str


class _Block(NamedTuple):
    block: bytes | None


def _matches(name: str) -> Any:
    return written(INDEX).op("MATCH")(bindparam(name))


_COUNT = Query(select(func.count().label("number")).select_from(_index).where(_matches("match")), _TermCount)
#: A view of the index, which belongs to the connection and is never written.
_OPEN_VOCABULARY = Statement(
    text(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, {INDEX}, row)")
)
_words = table("vocabulary", column("term", Text))
_VOCABULARY = Query(
    select(_words.c.term)
    .where(_words.c.term >= bindparam("first"), _words.c.term < bindparam("last"))
    .order_by(_words.c.term)
    .limit(MOST_TOKENS),
    _IndexedWord,
)
_TOTALS = Query(select(_pages.c.block).where(_pages.c.id == _AVERAGES), _Block)


def _materialized(statement: Select[Any], name: str) -> CTE:
    return statement.cte(name).prefix_with("MATERIALIZED")


def _candidates(best: CTE) -> Select[Any]:
    return select(*CANDIDATE).select_from(best).join(chunks, best.c.key == chunks.c.key)


@per_shape
def _newest_best(shape: Shape) -> Query[CandidateRow]:
    newest = (
        select(_KEY.label("key"), _RANK.label("rank"))
        .where(_matches("match"))
        .order_by(_KEY.desc())
        .limit(written(str(RANKED)))
    )
    ranked = _materialized(newest, "ranked")
    best = select(ranked.c.key).order_by(ranked.c.rank).limit(written(str(SCORED)))
    kept = _materialized(_candidates(_materialized(best, "best")), "kept")
    return Query(select(*kept.c).where(is_readable(shape, select(kept.c.media_id), kept)), CandidateRow)


@per_shape
def _best(shape: Shape) -> Query[CandidateRow]:
    """The plus keeps SQLite from asking the index again for each chunk, instead of once."""
    theirs = select(chunks.c.key).where(is_readable(shape))
    best = (
        select(_KEY.label("key"))
        .where(_matches("match"), written(f"+{INDEX}.rowid").in_(theirs))
        .order_by(_RANK)
        .limit(written(str(SCORED)))
    )
    return Query(_candidates(_materialized(best, "best")), CandidateRow)


@cache
def _texts_with(name: str) -> Select[tuple[object, int]]:
    keys = select(_KEY).where(_matches(name))
    return select(chunks.c.media_id, chunks.c.revision).where(chunks.c.key.in_(keys))


class SqliteWords:
    """Conditions are expressions of FTS5. Tokens are letters and digits, so nothing needs escaping."""

    def any_of(self, terms: Sequence[Term]) -> str:
        return " OR ".join(f'"{" ".join(form)}"' for term in terms for form in term.forms)

    def all_of(self, conditions: Sequence[str]) -> str:
        return " AND ".join(f"({condition})" for condition in conditions)

    def figures(self, session: Session, terms: Sequence[Term]) -> IndexFigures:
        found = [one.number for term in terms for one in session.all(_COUNT, match=self.any_of([term]))]
        row = session.first(_TOTALS)
        # The block of an index that never had a row is empty.
        rows, *tokens = (_numbers(row.block) if row and row.block else []) or [0]
        return IndexFigures(rows, sum(tokens) / max(rows, 1), tuple(found))

    def newest_best(self, session: Session, scope: SearchScope, condition: str) -> list[CandidateRow]:
        return session.all(_newest_best(scope.shape), match=condition, **scope.values)

    def best(self, session: Session, scope: SearchScope, condition: str) -> list[CandidateRow]:
        return session.all(_best(scope.shape), match=condition, **scope.values)

    def tokens_from(self, session: Session, first: str, last: str) -> list[str]:
        session.run(_OPEN_VOCABULARY)
        return [row.term for row in session.all(_VOCABULARY, first=first, last=last)]

    def texts_with(self, name: str) -> Select[tuple[object, int]]:
        return _texts_with(name)


def _numbers(block: bytes) -> list[int]:
    """Read SQLite's variable-length integers: seven bits in a byte, the highest first."""
    numbers, number = [], 0
    for byte in block:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    return numbers
