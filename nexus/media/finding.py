"""Search: what a viewer may read, found by its words and by what it means, an item at a time, best passages first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import func, literal_column, select

from nexus.db.chunks import ABOUT, chunks
from nexus.db.session import Query, Session
from nexus.db.tables import library_media, memberships
from nexus.media.asking import embed_question
from nexus.media.excerpts import FoundPassage, Span, mark_title, read_passages
from nexus.media.found_order import MOST_FOUND, FoundOrder, Ranked, asked_digest, resume_order
from nexus.media.items import HELD_BY_VIEWER
from nexus.media.narrowing import ALL_HELD, search_scope
from nexus.media.own_titles import find_own_titles
from nexus.media.queries import View, views_of
from nexus.media.wanted import Wanted
from nexus.media.workbench import Tools
from nexus.search.questions import Filters, Question, parse_question
from nexus.search.scope import Passage, Scope, Shape, is_readable, per_shape
from nexus.search.terms import Terms, terms_of
from nexus.search.words import WordHit, find_words, narrow

#: How many items a page has by default, and how many passages of an item are shown.
FOUND_PAGE = 20
PASSAGES = 3
NO_FILTERS = Filters()


@dataclass(frozen=True)
class Asked:
    """What somebody looks for: what they typed, and what they chose besides."""

    text: str
    filters: Filters = NO_FILTERS
    wanted: Wanted = ALL_HELD

    @property
    def digest(self) -> bytes:
        """What a cursor remembers of it."""
        return asked_digest(self.text, self.filters, self.wanted)


@dataclass(frozen=True)
class FoundItem:
    view: View
    #: How well it matches, from 0 to 1. Comparable within one search only.
    score: float
    #: The best first; none if only its title, byline or site matches.
    passages: list[FoundPassage]
    title_marks: list[Span]


@dataclass(frozen=True)
class Findings:
    """A page of what was found."""

    items: list[FoundItem] = field(default_factory=list)
    next_cursor: str | None = None
    #: How many items the search found that this page belongs to, at most MOST_FOUND.
    total: int = 0
    #: False if it was words alone.
    by_meaning: bool = False
    #: What may have been meant, if nothing was found.
    suggestions: list[str] = field(default_factory=list)


class _Newest(NamedTuple):
    media_id: UUID
    added_at: Any


@dataclass(frozen=True)
class _Hits:
    """The passages that were found, the best first."""

    hits: Sequence[WordHit]
    by_meaning: bool

    def by_item(self) -> dict[UUID, list[WordHit]]:
        return group_hits(self.hits)


def group_hits(hits: Iterable[WordHit]) -> dict[UUID, list[WordHit]]:
    """Return items in the order of their best passages."""
    found: dict[UUID, list[WordHit]] = {}
    for hit in hits:
        found.setdefault(hit.passage.media_id, []).append(hit)
    return found


def search_items(
    tools: Tools, viewer: UUID, asked: Asked, cursor: str | None = None, most: int = FOUND_PAGE
) -> Findings:
    """Find items that the viewer may read, in the revision that they see, a page at a time.

    Nothing that is typed is an error. Raises NotFound for a wanted library that the viewer doesn't belong to, and
    InvalidRequest for a cursor of another search.
    """
    question = parse_question(asked.text)
    order = None if cursor is None else resume_order(cursor, asked.digest)
    vector = embed_question(tools.embedder, question.meaning)
    with tools.sessions.read() as session:
        chosen = [one.media_id for one in order.ranked[:most]] if order else []
        scope = search_scope(session, viewer, asked.wanted, (asked.filters, question.filters), chosen)
        if scope is None:
            return Findings()
        terms = terms_of(session, question)
        if question.is_empty:
            order = order or _newest(session, scope, terms, asked, question)
            return _shown(session, viewer, asked, order, None, terms, most)
        found = _hits(session, scope, terms, vector)
        order = order or _ranked(found)
        return _shown(session, viewer, asked, order, found, terms, most)


def _hits(session: Session, scope: Scope, terms: Terms, vector: bytes | None) -> _Hits:
    narrowed = narrow(session, scope, terms)
    hits = find_words(session, narrowed, terms)
    own = find_own_titles(session, scope, narrowed, terms)
    best = max((hit.score for hit in (*hits, *own.hits)), default=0.0) or 1.0
    scored = {hit.passage: hit.score / best for hit in sorted((*hits, *own.hits), key=lambda hit: hit.score)}
    kept = [WordHit(place, score) for place, score in scored.items() if place.media_id not in own.excluded]
    kept.sort(key=lambda hit: (-hit.score, hit.passage.media_id, hit.passage.position))
    return _Hits(kept, vector is not None)


def _ranked(found: _Hits) -> FoundOrder:
    items = [Ranked(media_id, hits[0].score) for media_id, hits in found.by_item().items()][:MOST_FOUND]
    return FoundOrder(items, len(items), found.by_meaning)


def _newest(session: Session, scope: Scope, terms: Terms, asked: Asked, question: Question) -> FoundOrder:
    """What passes the filters, the latest addition first, if there are only filters. Nothing without any."""
    has_filters = question.filters != NO_FILTERS or asked.filters != NO_FILTERS or asked.wanted != ALL_HELD
    if not has_filters and not question.excluded:
        return FoundOrder([], 0)
    narrowed = narrow(session, scope, terms)
    rows = session.all(_newest_of(narrowed.shape), **narrowed.values)
    return FoundOrder([Ranked(row.media_id, 1.0) for row in rows], len(rows))


@per_shape
def _newest_of(shape: Shape) -> Query[_Newest]:
    latest = func.max(library_media.c.added_at).label("added_at")
    return Query(
        select(chunks.c.media_id, latest)
        .join_from(chunks, library_media, library_media.c.media_id == chunks.c.media_id)
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .where(HELD_BY_VIEWER, chunks.c.position == literal_column(str(ABOUT)), is_readable(shape))
        .group_by(chunks.c.media_id)
        .order_by(latest.desc(), chunks.c.media_id)
        .limit(literal_column(str(MOST_FOUND))),
        _Newest,
    )


def _shown(
    session: Session,
    viewer: UUID,
    asked: Asked,
    order: FoundOrder,
    found: _Hits | None,
    terms: Terms,
    most: int,
) -> Findings:
    """The first items of an order, with their passages. What the viewer can't read any more is left out."""
    # If the model answered at the first page only, what it found stays, without passages.
    keeps_all = found is None or (order.by_meaning and not found.by_meaning)
    hits = {} if found is None else found.by_item()
    items = show_found(session, viewer, order.ranked[:most], hits, terms, keeps_all=keeps_all)
    return Findings(items, order.cursor(asked.digest, most), order.total, order.by_meaning)


def show_found(
    session: Session,
    viewer: UUID,
    ranked: Sequence[Ranked],
    hits: Mapping[UUID, Sequence[WordHit]],
    terms: Terms,
    *,
    keeps_all: bool = False,
) -> list[FoundItem]:
    """Return items with their best passages. Those that the viewer may not read, or holds in another revision by now,
    are left out: each read sees what is committed at that moment."""
    views = views_of(session, viewer, [one.media_id for one in ranked])
    kept: list[tuple[View, float, list[Passage]]] = []
    for media_id, score in ranked:
        view = views.get(media_id)
        if view is None:
            continue
        places = [hit.passage for hit in hits.get(media_id, ()) if hit.passage.revision == view.row.revision]
        if places or keeps_all:
            kept.append((view, score, [place for place in places if place.position != ABOUT][:PASSAGES]))
    texts = read_passages(session, [place for _, _, places in kept for place in places], terms)
    return [
        FoundItem(
            view,
            score,
            [texts[place.key] for place in places if place.key in texts],
            mark_title(view.row.title, terms),
        )
        for view, score, places in kept
    ]
