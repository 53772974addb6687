"""The passages of found items, cut out of their texts, with the words marked that were looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Integer, Text, func, literal_column, select

from nexus.db.chunks import chunks
from nexus.db.recordings import timings
from nexus.db.session import Query, Session
from nexus.db.tables import fragments, revisions
from nexus.db.value_lists import in_values, numbered_values, padded_values
from nexus.media.recordings.spoken import read_spans, spoken_at
from nexus.search.marks import Span, cut_snippet, mark_words
from nexus.search.scope import ChunkPlace
from nexus.search.terms import Terms


@dataclass(frozen=True)
class Excerpt:
    """Part of a fragment: `text` is exactly its characters from `start` to `end`, and marks are places in `text`."""

    fragment_id: UUID
    #: The position of the fragment.
    position: int
    start: int
    end: int
    text: str
    marks: list[Span]
    #: When what was looked for is spoken, in milliseconds; None in a text without times.
    starts_ms: int | None = None


class _ChunkRow(NamedTuple):
    key: int
    fragment_id: UUID
    text: str
    language: str | None
    spans: str | None


def read_excerpts(session: Session, places: Sequence[ChunkPlace], terms: Terms) -> dict[int, Excerpt]:
    """Return what to show of chunks, by their keys. Those that have gone meanwhile are left out."""
    if not places:
        return {}
    keys = padded_values([place.key for place in places])
    rows = {row.key: row for row in session.all(_texts_of(len(keys)), **numbered_values("chunk", keys))}
    return {place.key: _cut(place, rows[place.key], terms) for place in places if place.key in rows}


def mark_title(title: str | None, terms: Terms) -> list[Span]:
    """Return where a title has words that were looked for."""
    return mark_words(title or "", terms)


@lru_cache
def _texts_of(count: int) -> Query[_ChunkRow]:
    text = func.substr(
        fragments.c.text,
        chunks.c.start + literal_column("1", Integer),
        chunks.c.end - chunks.c.start,
        type_=Text,
    )
    return Query(
        select(
            chunks.c.key,
            fragments.c.id.label("fragment_id"),
            text.label("text"),
            revisions.c.language,
            timings.c.spans,
        )
        .join_from(
            chunks,
            fragments,
            (fragments.c.media_id == chunks.c.media_id)
            & (fragments.c.revision == chunks.c.revision)
            & (fragments.c.position == chunks.c.fragment),
        )
        .join(
            revisions,
            (revisions.c.media_id == chunks.c.media_id) & (revisions.c.number == chunks.c.revision),
        )
        .outerjoin(
            timings,
            (timings.c.media_id == chunks.c.media_id)
            & (timings.c.revision == chunks.c.revision)
            & (timings.c.position == chunks.c.fragment),
        )
        .where(in_values(chunks.c.key, "chunk", count)),
        _ChunkRow,
    )


def _cut(place: ChunkPlace, row: _ChunkRow, terms: Terms) -> Excerpt:
    start, end, marks = cut_snippet(row.text, mark_words(row.text, terms, row.language))
    first_mark = marks[0][0] if marks else start
    return Excerpt(
        row.fragment_id,
        place.fragment,
        place.start + start,
        place.start + end,
        row.text[start:end],
        [(first - start, last - start) for first, last in marks],
        spoken_at(read_spans(row.spans), place.start + first_mark),
    )
