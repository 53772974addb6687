"""Promises about search: what can be read can be found, and nothing is indexed that does not exist."""

from __future__ import annotations

import sys

from sqlalchemy import ColumnElement, Integer, and_, exists, func, literal, literal_column, or_, select

from nexus.db.chunks import ABOUT, chunks, indexing, vector_sets, vectors
from nexus.db.tables import fragments, media, revisions
from nexus.media.searching.vectors import FLOAT_BYTES
from nexus.states.media import MediaStatus
from nexus.upkeep.promises.promise import Promise, offenders

_AGAIN = "Run: nexus embed --repair. These items are then indexed again."
#: What a chunk neither begins nor ends with. No database holds a NUL.
_BLANK = literal("".join(filter(str.isspace, map(chr, range(sys.maxunicode)))))
_NONE = literal_column("0", Integer)
_HAS_CHUNKS = exists(
    select(chunks.c.key)
    .where(
        chunks.c.media_id == revisions.c.media_id,
        chunks.c.revision == revisions.c.number,
        chunks.c.position == literal_column(str(ABOUT)),
    )
    .correlate(revisions)
)
#: Where the chunks of each fragment begin and end, and whether one between them is missing.
_PARTS = (
    select(
        chunks.c.media_id,
        chunks.c.revision,
        chunks.c.fragment,
        func.min(chunks.c.start).label("start"),
        func.max(chunks.c["end"]).label("end"),
        (func.max(chunks.c.position) - func.min(chunks.c.position) + literal_column("1")).label("places"),
        func.count().label("number"),
    )
    .where(chunks.c.position > literal_column(str(ABOUT)))
    .group_by(chunks.c.media_id, chunks.c.revision, chunks.c.fragment)
    .subquery("parts")
)
_SAME_FRAGMENT = and_(
    fragments.c.media_id == _PARTS.c.media_id,
    fragments.c.revision == _PARTS.c.revision,
    fragments.c.position == _PARTS.c.fragment,
)


def _says_something(*part: ColumnElement[int]) -> ColumnElement[bool]:
    text = func.substr(fragments.c.text, *part) if part else fragments.c.text
    return func.length(func.trim(text, _BLANK)) > _NONE


#: Looks at each text once, however many chunks it has.
_UNCOVERED = (
    select(fragments.c.media_id.label("id"))
    .outerjoin(_PARTS, _SAME_FRAGMENT)
    .where(
        or_(
            and_(_PARTS.c.number.is_(None), _says_something()),
            _PARTS.c.number != _PARTS.c.places,
            _says_something(literal_column("1"), _PARTS.c.start),
            _says_something(_PARTS.c.end + literal_column("1")),
        ),
        ~exists(
            select(indexing.c.id).where(indexing.c.media_id == fragments.c.media_id).correlate(fragments)
        ),
    )
)
_TEXT_IS_ASKED_FOR = exists(
    select(indexing.c.id).where(indexing.c.media_id == revisions.c.media_id).correlate(revisions)
)
_ITEM_IS_ASKED_FOR = exists(select(indexing.c.id).where(indexing.c.media_id == media.c.id).correlate(media))
_HAS_VECTOR = exists(
    select(vectors.c.seq)
    .where(
        vectors.c.media_id == chunks.c.media_id,
        vectors.c.chunk_id == chunks.c.id,
        vectors.c.model == vector_sets.c.model,
        func.length(vectors.c.vector) == vector_sets.c.dimension * literal_column(str(FLOAT_BYTES)),
    )
    .correlate(chunks, vector_sets)
)
_LACKS = exists(
    select(chunks.c.key)
    .where(
        chunks.c.media_id == media.c.id,
        chunks.c.revision == media.c.revision,
        chunks.c.length > _NONE,
        ~_HAS_VECTOR,
    )
    .correlate(media, vector_sets)
)
_HAS_SET = exists(select(vector_sets.c.model).where(~_LACKS).correlate(media))
_HAS_CHUNK = exists(
    select(chunks.c.key)
    .where(chunks.c.media_id == vectors.c.media_id, chunks.c.id == vectors.c.chunk_id)
    .correlate(vectors)
)
_OF_A_SET = exists(
    select(vector_sets.c.model).where(vector_sets.c.model == vectors.c.model).correlate(vectors)
)

WORDS = Promise(
    "search.words",
    "Every text can be found by its words, or waits to be indexed.",
    "Items with a text that can't be found by its words.",
    _AGAIN,
    offenders(
        select(revisions.c.media_id.label("id")).where(~_HAS_CHUNKS, ~_TEXT_IS_ASKED_FOR).union(_UNCOVERED)
    ),
)
PLACES = Promise(
    "search.places",
    "Everything that can be found is in a text.",
    "Items that are found at places which their texts do not have.",
    _AGAIN,
    offenders(
        select(_PARTS.c.media_id.label("id"))
        .outerjoin(fragments, _SAME_FRAGMENT)
        .where(
            or_(
                fragments.c.id.is_(None),
                _PARTS.c.start < _NONE,
                _PARTS.c.end > func.length(fragments.c.text),
            )
        )
        .distinct()
    ),
)

PROMISES = (
    WORDS,
    PLACES,
    Promise(
        "search.vectors",
        "Every item that is ready has the vectors of all its chunks, of one model.",
        "Items that are ready but lack vectors of one model.",
        _AGAIN,
        offenders(
            select(media.c.id).where(
                and_(
                    media.c.processing_status == literal_column(f"'{MediaStatus.READY.value}'"),
                    ~_HAS_SET,
                    ~_ITEM_IS_ASKED_FOR,
                )
            )
        ),
    ),
    Promise(
        "search.leftovers",
        "Every vector belongs to a chunk, and to a set of one model.",
        "Items with vectors of text that is gone, or of a model that nobody searches with.",
        _AGAIN,
        offenders(select(vectors.c.media_id.label("id")).where(or_(~_HAS_CHUNK, ~_OF_A_SET)).distinct()),
    ),
)
