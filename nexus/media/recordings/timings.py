"""When the words of a transcript are spoken, for those who read it while they listen."""

from __future__ import annotations

import json
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select

from nexus.db.recordings import speech_progress, timings
from nexus.db.rows import IdRow
from nexus.db.session import Query, Session
from nexus.db.tables import media
from nexus.states.media import MediaStatus

MINUTE_MS = 60_000


class _Timed(NamedTuple):
    position: int
    spans: str


class TranscribedSoFar(NamedTuple):
    """How far the transcription of a recording is, in milliseconds."""

    done_ms: int
    total_ms: int

    @property
    def minutes(self) -> int:
        return -(-self.total_ms // MINUTE_MS)

    @property
    def minute(self) -> int:
        """The one that is being heard, from 1 on."""
        return min(max(self.done_ms, 0) // MINUTE_MS + 1, self.minutes)


_OF_TEXT = (timings.c.media_id == bindparam("media_id"), timings.c.revision == bindparam("number"))
_SOME = Query(
    select(timings.c.position, timings.c.spans).where(
        *_OF_TEXT, timings.c.position >= bindparam("first"), timings.c.position <= bindparam("last")
    ),
    _Timed,
)
_ALL = Query(
    select(timings.c.position, timings.c.spans).where(*_OF_TEXT).order_by(timings.c.position), _Timed
)
_PROGRESS = Query(
    select(speech_progress.c.done_ms, speech_progress.c.total_ms)
    .join(media, media.c.id == speech_progress.c.media_id)
    .where(media.c.id == bindparam("media_id"), media.c.processing_status != MediaStatus.FAILED.value),
    TranscribedSoFar,
)
_HEARD_OUT = Query(
    select(speech_progress.c.media_id.label("id")).where(
        speech_progress.c.media_id == bindparam("media_id"),
        speech_progress.c.done_ms >= speech_progress.c.total_ms,
    ),
    IdRow,
)


def times_between(session: Session, media_id: UUID, number: int, first: int, last: int) -> dict[int, str]:
    """Return the times of fragments of a revision, by position, as JSON: [[start, end, starts_ms, ends_ms], …].

    The caller has checked that the viewer may read this revision.
    """
    rows = session.all(_SOME, media_id=media_id, number=number, first=first, last=last)
    return {row.position: row.spans for row in rows}


def fragment_at(session: Session, media_id: UUID, number: int, seconds: float) -> int | None:
    """Return the last fragment that begins to be spoken by then; None for a text without times."""
    found = None
    for row in session.all(_ALL, media_id=media_id, number=number):
        first = next(iter(json.loads(row.spans)), None)
        if first is None or (found is not None and first[2] > seconds * 1000):
            continue
        found = row.position
    return found


def transcribed_so_far(session: Session, media_id: UUID) -> TranscribedSoFar | None:
    """Return how far a transcription has come; None if none is under way."""
    return session.first(_PROGRESS, media_id=media_id)


def was_heard_out(session: Session, media_id: UUID) -> bool:
    """Whether a model has heard a recording that has no transcript to its end: then nobody speaks in it."""
    return session.first(_HEARD_OUT, media_id=media_id) is not None
