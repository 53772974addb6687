"""Promises about recordings: the times of a transcript belong to words that are there, and what is kept while one is
transcribed goes with the text."""

from __future__ import annotations

from sqlalchemy import Uuid, exists, or_, select, text
from sqlalchemy.sql.expression import TextualSelect

from nexus.db.recordings import recordings, speech_pieces
from nexus.db.tables import media, one_of, refreshes
from nexus.states.media import PUBLISHED
from nexus.upkeep.promises.promise import REPORT, Promise, offenders

_MISPLACED = """
SELECT DISTINCT timings.media_id AS id FROM timings
LEFT JOIN fragments ON fragments.media_id = timings.media_id
    AND fragments.revision = timings.revision AND fragments.position = timings.position
WHERE fragments.id IS NULL OR EXISTS (SELECT 1 FROM {spans} WHERE
    {start} < 0 OR {start} >= {end} OR {end} > length(fragments.text) OR {starts} < 0 OR {starts} > {ends})
"""
_SQLITE = {
    name: f"json_extract(span.value, '$[{n}]')" for n, name in enumerate(("start", "end", "starts", "ends"))
}
_POSTGRES = {
    name: f"(span.value ->> {n})::bigint" for n, name in enumerate(("start", "end", "starts", "ends"))
}
_HAS_PIECES = exists(
    select(speech_pieces.c.media_id).where(speech_pieces.c.media_id == media.c.id).correlate(media)
)
_HAS_SOUND = exists(
    select(recordings.c.media_id)
    .where(recordings.c.media_id == media.c.id, recordings.c.audio_path.is_not(None))
    .correlate(media)
)
#: A refresh transcribes an item that is readable; what one has left behind that failed, upkeep removes.
_IS_REFRESHED = exists(select(refreshes.c.id).where(refreshes.c.media_id == media.c.id).correlate(media))


def _ids(spans: str, places: dict[str, str]) -> TextualSelect:
    return text(_MISPLACED.format(spans=spans, **places)).columns(id=Uuid())


PROMISES = (
    Promise(
        "recordings.times",
        "Every time of a transcript belongs to words of a text that is there.",
        "Items with times of words that are not there.",
        REPORT,
        offenders(
            _ids("json_each(timings.spans) AS span", _SQLITE),
            on_postgres=_ids("jsonb_array_elements(timings.spans::jsonb) AS span(value)", _POSTGRES),
        ),
    ),
    Promise(
        "recordings.sound",
        "Sound is kept only for as long as it may be transcribed.",
        "Items that are readable, but whose sound is kept.",
        "Remove it with: nexus clean --remove",
        offenders(
            select(media.c.id).where(
                one_of(media.c.processing_status, PUBLISHED), or_(_HAS_PIECES, _HAS_SOUND), ~_IS_REFRESHED
            )
        ),
    ),
)
