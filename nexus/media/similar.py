"""More like this: items whose texts are nearest to that of another."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, literal_column, select

from nexus.db.chunks import chunks
from nexus.db.session import Query, Session
from nexus.media.finding import FoundItem, group_hits, show_found
from nexus.media.found_order import Ranked
from nexus.media.narrowing import ALL_HELD, search_scope
from nexus.media.queries import View, get_media
from nexus.media.workbench import Tools
from nexus.search.scope import Scope
from nexus.search.terms import Term, Terms
from nexus.search.words import WordHit, find_words, word_index

#: How many are shown by default.
SIMILAR = 5
#: Of the words of a text so many of the most frequent are weighed, and the most telling of these looked for.
WEIGHED = 48
TELLING = 12
#: Shorter ones say little.
SHORTEST = 2
#: So many chunks say what a text is about.
MOST_CHUNKS = 60


@dataclass(frozen=True)
class Similar:
    like: View
    items: list[FoundItem]
    by_meaning: bool


class _Words(NamedTuple):
    head: str
    words: str


_WORDS = Query(
    select(chunks.c.head, chunks.c.words)
    .where(chunks.c.media_id == bindparam("media_id"), chunks.c.revision == bindparam("number"))
    .order_by(chunks.c.position)
    .limit(literal_column(str(MOST_CHUNKS))),
    _Words,
)


def more_like(tools: Tools, viewer: UUID, media_id: UUID, most: int = SIMILAR) -> Similar:
    """Find what is nearest in meaning to an item or, if it has no vectors, shares its most telling words.

    Raises NotFound if the viewer may not read the item.
    """
    with tools.sessions.read() as session:
        like = get_media(session, media_id, viewer)
        scope = search_scope(session, viewer, ALL_HELD, ())
        assert scope is not None, "there are no filters"  # noqa: S101
        hits = _by_words(session, scope, like)
        others = group_hits(hit for hit in hits if hit.passage.media_id != media_id)
        best = max((each[0].score for each in others.values()), default=1.0)
        ranked = [Ranked(other, each[0].score / best) for other, each in others.items()]
        items = show_found(session, viewer, ranked[:most], others, Terms(()))
        return Similar(like, items, by_meaning=False)


def _by_words(session: Session, scope: Scope, like: View) -> list[WordHit]:
    terms = _telling(session, like)
    return find_words(session, scope, terms) if terms.wanted else []


def _telling(session: Session, like: View) -> Terms:
    """The words that a text has often, and others have but rarely."""
    rows = session.all(_WORDS, media_id=like.row.id, number=like.row.revision)
    texts = [[*row.head.split(), *row.words.split()] for row in rows]
    times = Counter(token for tokens in texts for token in tokens if len(token) > SHORTEST)
    inside = Counter(token for tokens in texts for token in {*tokens})
    terms = [Term(((token,),)) for token, _ in times.most_common(WEIGHED)]
    figures = word_index(session).figures(session, terms)
    telling = []
    for term, found in zip(terms, figures.found_in, strict=True):
        token = term.forms[0][0]
        if found > inside[token]:
            telling.append((times[token] * math.log(1 + figures.chunks / found), term))
    telling.sort(key=lambda pair: -pair[0])
    return Terms(tuple(term for _, term in telling[:TELLING]))
