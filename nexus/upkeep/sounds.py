"""The sound of recordings that nobody transcribes any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import and_, bindparam, exists, or_, select

from nexus.db.recordings import recordings
from nexus.db.session import Query, Sessions
from nexus.db.tables import media, one_of, refreshes
from nexus.media.files import Files, locked
from nexus.media.recordings.speech import end_speech
from nexus.states.media import PUBLISHED, MediaStatus

#: How long after a failure the sound stays, so that a retry need not fetch it again.
KEPT_FOR = timedelta(days=1)


class _Sound(NamedTuple):
    media_id: UUID
    storage_path: str


#: Sound that no attempt will ask for again: its item is readable, or failed a while ago, and nobody refreshes it.
_IS_OLD_SOUND = and_(
    recordings.c.audio_path.is_not(None),
    or_(
        one_of(media.c.processing_status, PUBLISHED),
        and_(
            one_of(media.c.processing_status, {MediaStatus.FAILED}),
            media.c.failed_at < bindparam("before", type_=media.c.failed_at.type),
        ),
    ),
    ~exists(
        select(refreshes.c.id)
        .where(refreshes.c.media_id == recordings.c.media_id, refreshes.c.error_code.is_(None))
        .correlate(recordings)
    ),
)
_SOUNDS = Query(
    select(recordings.c.media_id, recordings.c.audio_path.label("storage_path"))
    .join(media, media.c.id == recordings.c.media_id)
    .where(_IS_OLD_SOUND)
    .order_by(recordings.c.media_id),
    _Sound,
)
_STILL_A_SOUND = Query(
    select(recordings.c.media_id, recordings.c.audio_path.label("storage_path"))
    .join(media, media.c.id == recordings.c.media_id)
    .where(
        _IS_OLD_SOUND,
        recordings.c.media_id == bindparam("media_id"),
        recordings.c.audio_path == bindparam("storage_path"),
    ),
    _Sound,
)


def discard_old_sounds(sessions: Sessions, files: Files, *, remove: bool) -> Iterator[str]:
    """Yield the path of each, after it is gone if that was asked for."""
    with sessions.read() as session:
        before = session.now - KEPT_FOR
        found = session.all(_SOUNDS, before=before)
    for one in found:
        if remove:
            with locked(sessions, one.media_id) as session:
                if session.first(_STILL_A_SOUND, before=before, **one._asdict()) is None:
                    continue
                end_speech(session, [one.media_id])
            files.remove(one.storage_path)
        yield one.storage_path
