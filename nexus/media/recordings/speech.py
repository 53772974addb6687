"""What is kept of a transcription that is under way: the sound, the pieces that have been heard, and how far it is.

Rows are written by the attempt that holds the item, and by nobody who has lost it. They go in the transaction that
writes the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, delete, func, literal_column, null, or_, select, update

from nexus.db.recordings import recordings, speech_pieces, speech_progress
from nexus.db.rows import IdRow
from nexus.db.session import Query, Session, Statement
from nexus.db.tables import media
from nexus.db.upserts import upsert
from nexus.errors import TranscriptionStopped
from nexus.libraries import quota
from nexus.states.media import MediaStatus
from nexus.transcribe import Cue

#: Sounds are large, and somebody may add any number of recordings. Without a copy each attempt fetches its sound.
MOST_KEPT_SOUNDS = 10


class Attempt(NamedTuple):
    """Who listens to an item. A refresh has no number here: it changes nothing but what is kept of its own work."""

    media_id: UUID
    number: int | None


class HeardPiece(NamedTuple):
    """A piece of a recording that a model has heard."""

    number: int
    starts_ms: int
    ends_ms: int
    audio_sha256: str
    model: str
    #: As JSON: a list of [starts_ms, ends_ms, text], counted from the beginning of the recording.
    cues: str

    @classmethod
    def of(
        cls, number: int, span: tuple[int, int], made_of: tuple[str, str], cues: Iterable[Cue]
    ) -> HeardPiece:
        spoken = json.dumps([cue[:3] for cue in cues])
        return cls(number, *span, *made_of, spoken)

    @property
    def spoken(self) -> list[Cue]:
        return [Cue(*cue) for cue in json.loads(self.cues)]

    @property
    def whole_seconds(self) -> int:
        """Counted so that the seconds of all pieces add up to those of the recording."""
        return ceil(self.ends_ms / 1000) - ceil(self.starts_ms / 1000)


class SoundCopy(NamedTuple):
    """Where in the store the sound is, and what it was when it came."""

    path: str
    sha256: str


class _KeptSounds(NamedTuple):
    sounds: int


class _SoundRow(NamedTuple):
    audio_path: str | None
    audio_sha256: str | None


_IS_MINE = (
    media.c.id == bindparam("media_id"),
    or_(
        bindparam("attempt", type_=media.c.processing_attempts.type).is_(None),
        (media.c.processing_attempts == bindparam("attempt", type_=media.c.processing_attempts.type))
        & (media.c.processing_status == literal_column(f"'{MediaStatus.EXTRACTING.value}'")),
    ),
)
_HELD = Query(select(media.c.id).where(*_IS_MINE), IdRow)
_HOLD = Query(select(media.c.id).where(*_IS_MINE).with_for_update(key_share=True), IdRow)
_PIECES = Query(
    select(*(speech_pieces.c[name] for name in HeardPiece._fields))
    .where(speech_pieces.c.media_id == bindparam("media_id"))
    .order_by(speech_pieces.c.number),
    HeardPiece,
)
_ADD = upsert(
    speech_pieces,
    {column: bindparam(column.name) for column in speech_pieces.c},
    lambda new: new.on_conflict_do_nothing(),
)
_DROP_PIECES = Statement(delete(speech_pieces).where(speech_pieces.c.media_id == bindparam("media_id")))
_TELL = upsert(
    speech_progress,
    {column: bindparam(column.name) for column in speech_progress.c},
    lambda new: new.on_conflict_do_update(
        index_elements=[speech_progress.c.media_id],
        set_={name: new.excluded[name] for name in ("attempt", "done_ms", "total_ms")},
    ),
)
_DROP_PROGRESS = Statement(delete(speech_progress).where(speech_progress.c.media_id == bindparam("media_id")))
_SOUND = Query(
    select(recordings.c.audio_path, recordings.c.audio_sha256).where(
        recordings.c.media_id == bindparam("media_id")
    ),
    _SoundRow,
)
_ITEM = media.alias("item")
_KEPT_SOUNDS = Query(
    select(func.count().label("sounds"))
    .select_from(recordings)
    .join(media, media.c.id == recordings.c.media_id)
    .join(_ITEM, _ITEM.c.created_by_user_id == media.c.created_by_user_id)
    .where(recordings.c.audio_path.is_not(None), _ITEM.c.id == bindparam("media_id")),
    _KeptSounds,
)
_KEEP_SOUND = Statement(
    update(recordings)
    .where(recordings.c.media_id == bindparam("media_id"))
    .values(
        audio_path=bindparam("path", type_=recordings.c.audio_path.type),
        audio_sha256=bindparam("sha256", type_=recordings.c.audio_sha256.type),
    )
)
_NO_SOUND = Statement(
    update(recordings)
    .where(recordings.c.media_id == bindparam("media_id"), recordings.c.audio_path.is_not(None))
    .values(audio_path=null(), audio_sha256=null())
)
_MEASURE = Statement(
    update(recordings)
    .where(recordings.c.media_id == bindparam("media_id"), recordings.c.seconds.is_(None))
    .values(seconds=bindparam("length"))
)


def is_held(session: Session, attempt: Attempt) -> bool:
    """Whether the item is there, and still this attempt's."""
    return session.first(_HELD, media_id=attempt.media_id, attempt=attempt.number) is not None


def kept_sound(session: Session, media_id: UUID) -> SoundCopy | None:
    """Return where an earlier attempt has kept the sound; None if none has."""
    row = session.first(_SOUND, media_id=media_id)
    if row is None or row.audio_path is None or row.audio_sha256 is None:
        return None
    return SoundCopy(row.audio_path, row.audio_sha256)


def may_keep_sound(session: Session, media_id: UUID) -> bool:
    """Whether the store has few enough sounds of recordings from the user who added this one."""
    (found,) = session.all(_KEPT_SOUNDS, media_id=media_id)
    return found.sounds < MOST_KEPT_SOUNDS


def keep_sound(session: Session, attempt: Attempt, copy: SoundCopy) -> None:
    """Write where the sound is kept. Raises TranscriptionStopped if the item is no longer this attempt's."""
    _require_held(session, attempt)
    session.run(_KEEP_SOUND, media_id=attempt.media_id, **copy._asdict())


def heard_pieces(session: Session, media_id: UUID, sha256: str, model: str) -> list[HeardPiece]:
    """Return what this model has heard of this sound so far, from the beginning on and without a gap."""
    pieces = session.all(_PIECES, media_id=media_id)
    fits = all((piece.audio_sha256, piece.model) == (sha256, model) for piece in pieces)
    follows = all(one.ends_ms == other.starts_ms for one, other in pairwise(pieces))
    return pieces if fits and follows and (not pieces or pieces[0].starts_ms == 0) else []


def forget_pieces(session: Session, attempt: Attempt) -> None:
    """Forget what was heard of other sound, or by another model. Raises TranscriptionStopped."""
    _require_held(session, attempt)
    session.run(_DROP_PIECES, media_id=attempt.media_id)


def add_piece(session: Session, attempt: Attempt, piece: HeardPiece, user_id: UUID, total_ms: int) -> None:
    """Write what was heard, how far that is, and what it cost: each piece costs once.

    Raises TranscriptionStopped if the item is no longer this attempt's, or somebody else has written this piece.
    """
    _require_held(session, attempt)
    if not session.run(_ADD, media_id=attempt.media_id, **piece._asdict()):
        raise TranscriptionStopped
    seconds = quota.Operation.TRANSCRIBE_SECONDS
    quota.record_usage(session, user_id, seconds, piece.whole_seconds, attempt.media_id)
    tell_speech_progress(session, attempt, piece.ends_ms, total_ms)


def keep_length(session: Session, attempt: Attempt, seconds: float) -> None:
    """Write how long a recording is that was heard to its end, unless somebody has said so. Raises
    TranscriptionStopped."""
    _require_held(session, attempt)
    session.run(_MEASURE, media_id=attempt.media_id, length=seconds)


def tell_speech_progress(session: Session, attempt: Attempt, done_ms: int, total_ms: int) -> None:
    session.run(
        _TELL,
        media_id=attempt.media_id,
        attempt=attempt.number or 0,
        done_ms=done_ms,
        total_ms=max(done_ms, total_ms),
    )


def end_speech(session: Session, media_ids: Sequence[UUID]) -> None:
    """Forget everything that was kept of these transcriptions. The sound itself stays in the store until its caller or
    upkeep removes it."""
    for statement in (_DROP_PIECES, _DROP_PROGRESS, _NO_SOUND):
        session.run_many(statement, [{"media_id": media_id} for media_id in media_ids])


def _require_held(session: Session, attempt: Attempt) -> None:
    if session.first(_HOLD, media_id=attempt.media_id, attempt=attempt.number) is None:
        raise TranscriptionStopped
