"""Search: what a viewer may read, found by its words and by what it means, an item at a time, best passages first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, literal_column, select

from nexus.db.chunks import ABOUT, chunks
from nexus.db.session import Query, Session
from nexus.db.tables import library_media, memberships
from nexus.media.items import HELD_BY_VIEWER
from nexus.media.list_filters import Wanted
from nexus.media.queries import View, views_of
from nexus.media.searching.asking import embed_question
from nexus.media.searching.excerpts import Excerpt, mark_title, read_excerpts
from nexus.media.searching.found_order import MOST_FOUND, FoundOrder, Ranked, asked_digest, resume_order
from nexus.media.searching.narrowing import ALL_HELD, search_scope
from nexus.media.searching.own_titles import find_own_titles
from nexus.media.workbench import Tools
from nexus.search.finding import AskedMeaning, Findings, find_items
from nexus.search.fusing import TITLE_SHARE, FoundItem
from nexus.search.marks import Span
from nexus.search.questions import Filters, Question, parse_question
from nexus.search.scope import ChunkPlace, SearchScope, Shape, is_readable, per_shape
from nexus.search.suggestions import suggest_words
from nexus.search.terms import Terms, terms_of
from nexus.search.words import narrow

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
class SearchHit:
    """An item that was found."""

    view: View
    #: How well it matches, from 0 to 1. Comparable within one search only.
    score: float
    #: The best first; none if only its title, byline or site matches.
    passages: list[Excerpt]
    title_marks: list[Span]


@dataclass(frozen=True)
class SearchPage:
    """A page of what was found."""

    items: list[SearchHit] = field(default_factory=list)
    next_cursor: str | None = None
    #: How many items were found by the search that began with this page or an earlier one, at most MOST_FOUND.
    total: int = 0
    #: False if it was words alone.
    by_meaning: bool = False
    #: What the user may have meant, if no word was found.
    suggestions: list[str] = field(default_factory=list)


class _Addition(NamedTuple):
    media_id: UUID
    added_at: datetime


@dataclass(frozen=True)
class _Search:
    """One search: who asks for what, in which texts."""

    session: Session
    viewer: UUID
    asked: Asked
    question: Question
    scope: SearchScope
    terms: Terms
    meaning: AskedMeaning | None


def search_items(
    tools: Tools, viewer: UUID, asked: Asked, cursor: str | None = None, most: int = FOUND_PAGE
) -> SearchPage:
    """Find items that the viewer may read, in the revision that they see, a page at a time.

    Nothing that is typed is an error. Raises NotFound for a wanted library that the viewer doesn't belong to, and
    InvalidRequest for a cursor of another search.
    """
    question = parse_question(asked.text)
    order = None if cursor is None else resume_order(cursor, asked.digest)
    meaning = embed_question(tools, question.meaning)
    with tools.sessions.read() as session:
        shown = [one.media_id for one in order.ranked[:most]] if order else []
        scope = search_scope(session, viewer, asked.wanted, (asked.filters, question.filters), shown)
        if scope is None:
            return SearchPage()
        terms = terms_of(session, question)
        search = _Search(session, viewer, asked, question, scope, terms, meaning)
        return _listed(search, order, most) if question.is_empty else _found(search, order, most)


def _found(search: _Search, order: FoundOrder | None, most: int) -> SearchPage:
    found = _find(search)
    suggestions: list[str] = []
    if order is None:
        items = [Ranked(one.media_id, one.score / (1 + TITLE_SHARE)) for one in found.items[:MOST_FOUND]]
        order = FoundOrder(items, len(items), search.meaning is not None)
        suggestions = [] if found.has_words else _suggested(search)
    # If the model answered at the first page only, what it found stays, without passages.
    keeps_all = order.by_meaning and search.meaning is None
    by_id = {one.media_id: one for one in found.items}
    chosen = [(one, by_id.get(one.media_id)) for one in order.ranked[:most]]
    hits = show_hits(
        search.session,
        search.viewer,
        [(one, item) for one, item in chosen if item or keeps_all],
        search.terms,
    )
    return replace(_page(search, order, hits, most), suggestions=suggestions)


def _find(search: _Search) -> Findings:
    session, scope = search.session, search.scope
    own = find_own_titles(session, scope, narrow(session, scope, search.terms), search.terms)
    found = find_items(session, scope, search.question, search.meaning, own.hits)
    if not own.excluded:
        return found
    return found._replace(items=[one for one in found.items if one.media_id not in own.excluded])


def _suggested(search: _Search) -> list[str]:
    """The question with words that are spelled much the same instead of its own."""
    text = search.asked.text
    for typed, instead in suggest_words(search.session, search.scope, search.question):
        word = re.compile(rf"(?<!\w){re.escape(typed)}(?!\w)", re.IGNORECASE)
        text = word.sub(instead.replace("\\", ""), text)
    return [] if text == search.asked.text else [text]


def _listed(search: _Search, order: FoundOrder | None, most: int) -> SearchPage:
    """What passes the filters, the latest addition first, if there are only filters. Nothing without any."""
    if order is None:
        order = _newest(search)
    hits = show_hits(
        search.session, search.viewer, [(one, None) for one in order.ranked[:most]], search.terms
    )
    return _page(search, order, hits, most)


def _newest(search: _Search) -> FoundOrder:
    asked, question = search.asked, search.question
    has_filters = question.filters != NO_FILTERS or asked.filters != NO_FILTERS or asked.wanted != ALL_HELD
    if not has_filters and not question.excluded:
        return FoundOrder([], 0)
    narrowed = narrow(search.session, search.scope, search.terms)
    rows = search.session.all(_newest_of(narrowed.shape), **narrowed.values)
    return FoundOrder([Ranked(row.media_id, 1.0) for row in rows], len(rows))


@per_shape
def _newest_of(shape: Shape) -> Query[_Addition]:
    latest = func.max(library_media.c.added_at).label("added_at")
    return Query(
        select(chunks.c.media_id, latest)
        .join_from(chunks, library_media, library_media.c.media_id == chunks.c.media_id)
        .join(memberships, memberships.c.library_id == library_media.c.library_id)
        .where(HELD_BY_VIEWER, chunks.c.position == literal_column(str(ABOUT)), is_readable(shape))
        .group_by(chunks.c.media_id)
        .order_by(latest.desc(), chunks.c.media_id)
        .limit(literal_column(str(MOST_FOUND))),
        _Addition,
    )


def _page(search: _Search, order: FoundOrder, hits: list[SearchHit], most: int) -> SearchPage:
    return SearchPage(hits, order.cursor(search.asked.digest, most), order.total, order.by_meaning)


def show_hits(
    session: Session, viewer: UUID, found: Sequence[tuple[Ranked, FoundItem | None]], terms: Terms
) -> list[SearchHit]:
    """Return items with their best passages.

    Those that the viewer may not read, or holds in another revision by now, are left out: each read sees what is
    committed at that moment.
    """
    views = views_of(session, viewer, [one.media_id for one, _ in found])
    kept: list[tuple[View, float, list[ChunkPlace]]] = []
    for (media_id, score), item in found:
        view = views.get(media_id)
        if view is not None and (item is None or item.revision == view.row.revision):
            best = item.passages[:PASSAGES] if item else ()
            kept.append((view, score, [one.passage for one in best]))
    texts = read_excerpts(session, [place for _, _, places in kept for place in places], terms)
    return [
        SearchHit(
            view,
            score,
            [texts[place.key] for place in places if place.key in texts],
            mark_title(view.row.title, terms),
        )
        for view, score, places in kept
    ]
