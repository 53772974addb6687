"""Promises about recordings: the times of a transcript belong to words that are there."""

from __future__ import annotations

from sqlalchemy import Uuid, text
from sqlalchemy.sql.expression import TextualSelect

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
)
