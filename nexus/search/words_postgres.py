"""The index of words in PostgreSQL: a tsvector beside each chunk, and counts of words that upkeep refreshes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Text,
    bindparam,
    cast,
    column,
    func,
    select,
    table,
    text,
)
from sqlalchemy import literal_column as written
from sqlalchemy.types import UserDefinedType

from nexus.db.chunks import chunks
from nexus.db.session import Query, Session, Statement
from nexus.search.bm25 import HEAD_WEIGHT, IndexFigures
from nexus.search.candidates import CANDIDATE, MOST_TOKENS, RANKED, CandidateRow
from nexus.search.scope import SearchScope, Shape, is_readable, per_shape
from nexus.search.terms import Form, Term

#: How many candidates are scored with all words. More than on SQLite, because `ts_rank` treats all words as equally
#: rare.
SCORED = 1000
#: Until a word has been counted, its chunks are counted when it is asked for, up to this many.
COUNTED = 10_000
#: The words of a larger library are counted in about so many of its chunks.
SAMPLED = 50_000


class _TsQuery(UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "tsquery"


class _Totals(NamedTuple):
    chunks: int
    length: int


class _WordCount(NamedTuple):
    word: str
    chunks: int


class _Counted(NamedTuple):
    number: int


_counts = table("word_counts", column("word", Text), column("chunks", BigInteger))
_totals = table("word_totals", column("chunks", BigInteger), column("length", BigInteger))


#: By its characters, in every locale.
_IN_ORDER = _counts.c.word.collate("C")


def _condition(name: str) -> Any:
    return cast(bindparam(name, type_=Text), _TsQuery)


def _matches(name: str) -> ColumnElement[bool]:
    matched: ColumnElement[bool] = written("chunks.tsv").op("@@")(_condition(name))
    return matched


_RANK: Any = func.ts_rank(
    written(f"'{{{1 / HEAD_WEIGHT}, 0, 0, 1}}'::float4[]"),
    written("chunks.tsv"),
    _condition("match"),
    written("1"),
).desc()
_TOTALS = Query(select(_totals.c.chunks, _totals.c.length), _Totals)
_LIVE_TOTALS = Query(
    select(
        func.count().label("chunks"),
        func.coalesce(func.sum(chunks.c.length), 0, type_=Integer).label("length"),
    ).select_from(chunks),
    _Totals,
)
_WORDS = Query(
    select(_counts.c.word, _counts.c.chunks).where(_counts.c.word == func.any(bindparam("words"))), _WordCount
)
_VOCABULARY = Query(
    select(_counts.c.word, _counts.c.chunks)
    .where(bindparam("first") <= _IN_ORDER, bindparam("last") > _IN_ORDER)
    .order_by(_IN_ORDER)
    .limit(MOST_TOKENS),
    _WordCount,
)
_LIVE = Query(
    select(func.count().label("number")).select_from(
        select(chunks.c.key).where(_matches("match")).limit(written(str(COUNTED))).subquery()
    ),
    _Counted,
)
_ESTIMATE = Query(
    text("SELECT reltuples::bigint AS number FROM pg_class WHERE oid = 'chunks'::regclass").columns(
        column("number", BigInteger)
    ),
    _Counted,
)
#: Readers use the earlier counts meanwhile.
_ALONE = Statement(text("LOCK TABLE word_totals IN EXCLUSIVE MODE"))
_FORGET = Statement(text("DELETE FROM word_counts"))
_FORGET_TOTALS = Statement(text("DELETE FROM word_totals"))
_SAMPLE = "chunks TABLESAMPLE SYSTEM ({percent}) REPEATABLE (1)"
_COUNT_WORDS = (
    "INSERT INTO word_counts SELECT word, ceil(ndoc * {scale}) FROM ts_stat('SELECT tsv FROM {sample}')"
)
_COUNT_TOTALS = (
    "INSERT INTO word_totals "
    "SELECT ceil(count(*) * {scale}), ceil(coalesce(sum(length), 0) * {scale}) FROM {sample}"
)


@per_shape
def _newest_best(shape: Shape) -> Query[CandidateRow]:
    newest = (
        select(chunks.c.key)
        .where(_matches("match"))
        .order_by(chunks.c.key.desc())
        .limit(written(str(RANKED)))
        .cte("newest")
        .prefix_with("MATERIALIZED")
    )
    best = (
        select(*CANDIDATE)
        .join(newest, newest.c.key == chunks.c.key)
        .order_by(_RANK)
        .limit(written(str(SCORED)))
        .cte("best")
        .prefix_with("MATERIALIZED")
    )
    return Query(select(*best.c).where(is_readable(shape, select(best.c.media_id), best)), CandidateRow)


@per_shape
def _best(shape: Shape) -> Query[CandidateRow]:
    best = (
        select(chunks.c.key)
        .where(_matches("match"), is_readable(shape))
        .order_by(_RANK)
        .limit(written(str(SCORED)))
        .cte("best")
    )
    return Query(select(*CANDIDATE).join(best, best.c.key == chunks.c.key), CandidateRow)


@cache
def _texts_with(name: str) -> Select[tuple[object, int]]:
    return select(chunks.c.media_id, chunks.c.revision).where(_matches(name))


class PostgresWords:
    """Conditions are tsqueries. Tokens are letters and digits, so nothing needs escaping."""

    def any_of(self, terms: Sequence[Term]) -> str:
        return " | ".join(_written(form) for term in terms for form in term.forms)

    def all_of(self, conditions: Sequence[str]) -> str:
        return " & ".join(f"({condition})" for condition in conditions)

    def figures(self, session: Session, terms: Sequence[Term]) -> IndexFigures:
        totals = session.first(_TOTALS) or session.first(_LIVE_TOTALS) or _Totals(0, 0)
        found = self._found_in(session, {token for term in terms for form in term.forms for token in form})
        return IndexFigures(
            totals.chunks,
            totals.length / max(totals.chunks, 1),
            tuple(sum(min(found[token] for token in form) for form in term.forms) for term in terms),
        )

    def _found_in(self, session: Session, tokens: set[str]) -> dict[str, int]:
        """In how many chunks each token is. A phrase is in at most as many as its rarest token."""
        found = {row.word: row.chunks for row in session.all(_WORDS, words=sorted(tokens))}
        for token in tokens - found.keys():
            row = session.first(_LIVE, match=token)
            found[token] = row.number if row else 0
        return found

    def newest_best(self, session: Session, scope: SearchScope, condition: str) -> list[CandidateRow]:
        return session.all(_newest_best(scope.shape), match=condition, **scope.values)

    def best(self, session: Session, scope: SearchScope, condition: str) -> list[CandidateRow]:
        return session.all(_best(scope.shape), match=condition, **scope.values)

    def tokens_from(self, session: Session, first: str, last: str) -> list[str]:
        return [row.word for row in session.all(_VOCABULARY, first=first, last=last)]

    def texts_with(self, name: str) -> Select[tuple[object, int]]:
        return _texts_with(name)


def _written(form: Form) -> str:
    """A phrase lies in the head or in the words, never across the two."""
    if len(form) == 1:
        return form[0]
    return "|".join(f"({'<->'.join(f'{token}:{place}' for token in form)})" for place in "AD")


def refresh_counts(session: Session) -> bool:
    """Count again in how many chunks each word is, if a tenth of the chunks has come or gone since. For upkeep.

    Old or missing counts only make the order of results a little worse.
    """
    if session.is_sqlite:  # which counts when it is asked
        return False
    estimate = session.first(_ESTIMATE)
    chunks_now = estimate.number if estimate else 0
    if chunks_now < SAMPLED:
        chunks_now = (session.first(_LIVE_TOTALS) or _Totals(0, 0)).chunks
    session.run(_ALONE)
    counted = session.first(_TOTALS)
    if counted is not None and abs(counted.chunks - chunks_now) * 10 <= counted.chunks:
        return False
    _count_again(session, min(SAMPLED / max(chunks_now, 1), 1.0))
    return True


def _count_again(session: Session, share: float) -> None:
    session.run(_FORGET)
    session.run(_FORGET_TOTALS)
    sample = _SAMPLE.format(percent=share * 100) if share < 1 else "chunks"
    for counting in (_COUNT_WORDS, _COUNT_TOTALS):
        session.run(Statement(text(counting.format(scale=1 / share, sample=sample))))
