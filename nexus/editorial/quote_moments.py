"""When the quotes of a story are spoken, if its text is the transcript of a recording."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import and_, bindparam, exists, select

from nexus.db.editorial import jobs
from nexus.db.recordings import timings
from nexus.db.rows import StoryRow
from nexus.db.session import Query, Session
from nexus.db.tables import fragments, media
from nexus.extract import TimeSpan
from nexus.libraries.access import READABLE
from nexus.media.recordings.spoken import read_spans, spoken_at

#: What `reader.beginning` puts between fragments.
GAP = "\n\n"


class _SpokenFragment(NamedTuple):
    media_id: UUID
    text: str
    spans: str | None


_HAS_TIMES = exists(
    select(timings.c.media_id)
    .where(timings.c.media_id == jobs.c.media_id, timings.c.revision == jobs.c.media_revision)
    .correlate(jobs)
)
_FRAGMENTS = Query(
    select(fragments.c.media_id, fragments.c.text, timings.c.spans)
    .join_from(jobs, media, media.c.id == jobs.c.media_id)
    .join(fragments, and_(fragments.c.media_id == media.c.id, fragments.c.revision == jobs.c.media_revision))
    .outerjoin(
        timings,
        and_(
            timings.c.media_id == fragments.c.media_id,
            timings.c.revision == fragments.c.revision,
            timings.c.position == fragments.c.position,
        ),
    )
    .where(jobs.c.id == bindparam("job_id"), _HAS_TIMES, READABLE)
    .order_by(fragments.c.position),
    _SpokenFragment,
)


@dataclass(frozen=True)
class QuoteMoments:
    """The times of a story's text, whose places are those of its evidence."""

    media_id: UUID
    #: Where each fragment begins in the text, and the times of its sentences, which count from there.
    starts: tuple[int, ...]
    spans: tuple[tuple[TimeSpan, ...], ...]

    def moment_at(self, start: int | None) -> int | None:
        """Return when what begins at a place in the text is spoken, in milliseconds; None if nobody knows."""
        place = -1 if start is None else bisect_right(self.starts, start) - 1
        if start is None or place < 0:
            return None
        return spoken_at(self.spans[place], start - self.starts[place])


def quote_moments(session: Session, story: StoryRow, viewer: UUID) -> QuoteMoments | None:
    """Return when the text of a story is spoken.

    None if it is not a transcript with times, if it is no longer the item's text, or if the viewer may not read the
    item.
    """
    rows = session.all(_FRAGMENTS, job_id=story.job_id, viewer=viewer)
    starts, spans, at = list[int](), list[tuple[TimeSpan, ...]](), 0
    for row in rows:
        body = row.text.strip()
        if not body:
            continue
        if at >= len(story.article_text):
            break
        if not body.startswith(story.article_text[at : at + len(body)]):
            return None
        lead = len(row.text) - len(row.text.lstrip())
        moved = (one._replace(start=one.start - lead, end=one.end - lead) for one in read_spans(row.spans))
        starts.append(at)
        spans.append(tuple(moved))
        at += len(body) + len(GAP)
    return QuoteMoments(rows[0].media_id, tuple(starts), tuple(spans)) if starts else None
