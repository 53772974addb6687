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
from nexus.media.queries import View, get_media
from nexus.media.searching.asking import searched_model
from nexus.media.searching.finding import SearchHit, show_hits
from nexus.media.searching.found_order import Ranked
from nexus.media.searching.narrowing import ALL_HELD, search_scope
from nexus.media.workbench import Tools
from nexus.search.finding import find_similar
from nexus.search.fusing import TITLE_SHARE, fuse, group_items
from nexus.search.questions import STOP_WORDS
from nexus.search.terms import Term, Terms
from nexus.search.words import find_words, word_index

#: How many are shown by default.
SIMILAR = 5
#: How many of the most frequent words of a text are weighed, and how many of the most telling are looked for.
WEIGHED = 48
TELLING = 12
#: Shorter ones say little.
SHORTEST = 2
#: What is found scores at least this share of the best, which is the item itself if words were looked for.
LEAST = 0.2
#: How many chunks say what a text is about.
MOST_CHUNKS = 60


@dataclass(frozen=True)
class Similar:
    like: View
    items: list[SearchHit]
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
        model = searched_model(tools, session)
        near = [] if model is None else find_similar(session, scope, tools.codes, model, media_id)
        others = near or group_items(fuse(find_words(session, scope, _telling(session, like)), []))
        least = LEAST * max((one.score for one in others), default=0.0)
        ranked = [
            (Ranked(one.media_id, one.score / (1 + TITLE_SHARE)), one)
            for one in others
            if one.media_id != media_id and one.score >= least
        ]
        return Similar(like, show_hits(session, viewer, ranked[:most], Terms(())), bool(near))


def _telling(session: Session, like: View) -> Terms:
    """The words that are frequent in a text, and rare in others."""
    rows = session.all(_WORDS, media_id=like.row.id, number=like.row.revision)
    texts = [[*row.head.split(), *row.words.split()] for row in rows]
    times = Counter(
        token for tokens in texts for token in tokens if len(token) > SHORTEST and token not in STOP_WORDS
    )
    inside = Counter(token for tokens in texts for token in {*tokens})
    terms = [Term(((token,),)) for token, _ in times.most_common(WEIGHED)]
    figures = word_index(session).figures(session, terms)
    telling = []
    for term, found in zip(terms, figures.found_in, strict=True):
        token = term.forms[0][0]
        # A word that only this text has finds nothing else. A count below its own was made before it came.
        if found != inside[token]:
            telling.append((times[token] * math.log(1 + figures.chunks / max(found, 1)), term))
    telling.sort(key=lambda pair: -pair[0])
    return Terms(tuple(term for _, term in telling[:TELLING]))
