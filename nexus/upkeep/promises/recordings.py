"""Promises about recordings: what is kept while one is transcribed goes with the text."""

from __future__ import annotations

from sqlalchemy import exists, or_, select

from nexus.db.recordings import recordings, speech_pieces
from nexus.db.tables import media, one_of, refreshes
from nexus.states.media import PUBLISHED
from nexus.upkeep.promises.promise import Promise, offenders

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

PROMISES = (
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
