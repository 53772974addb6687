"""Promises about search: what can be read can be found, and nothing is indexed that does not exist."""

from __future__ import annotations

from sqlalchemy import and_, exists, literal_column, select

from nexus.db.chunks import ABOUT, chunks, indexing, vector_sets, vectors
from nexus.db.tables import media, revisions
from nexus.states.media import MediaStatus
from nexus.upkeep.promises.promise import REPORT, Promise, offenders

_AGAIN = "Refresh these items: their texts are then indexed again."
_HAS_CHUNKS = exists(
    select(chunks.c.key)
    .where(
        chunks.c.media_id == revisions.c.media_id,
        chunks.c.revision == revisions.c.number,
        chunks.c.position == literal_column(str(ABOUT)),
    )
    .correlate(revisions)
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
    )
    .correlate(chunks, vector_sets)
)
_LACKS = exists(
    select(chunks.c.key)
    .where(
        chunks.c.media_id == media.c.id,
        chunks.c.revision == media.c.revision,
        chunks.c.length > literal_column("0"),
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

PROMISES = (
    Promise(
        "search.words",
        "Every text can be found by its words, or waits to be indexed.",
        "Items with a text that can't be found by its words.",
        _AGAIN,
        offenders(
            select(revisions.c.media_id.label("id")).where(~_HAS_CHUNKS, ~_TEXT_IS_ASKED_FOR).distinct()
        ),
    ),
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
        "Every vector belongs to a chunk.",
        "Items with vectors of text that is gone.",
        REPORT,
        offenders(select(vectors.c.media_id.label("id")).where(~_HAS_CHUNK).distinct()),
    ),
)
