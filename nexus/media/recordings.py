"""What is known about videos and episodes: kept as soon as it is found out, so that no retry asks for it again."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, select

from nexus.db.recordings import recordings
from nexus.db.session import Query, Session
from nexus.db.upserts import upsert
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.extract.safe_html import is_safe


class RecordingRow(NamedTuple):
    media_id: UUID
    title: str | None
    author: str | None
    site: str | None
    published: str | None
    language: str | None
    seconds: float | None
    picture_url: str | None
    embed_url: str | None
    notes: str | None
    chapters: str
    transcripts: str
    audio_url: str | None
    audio_type: str | None
    audio_bytes: int | None
    audio_path: str | None
    audio_sha256: str | None
    looked_at: datetime

    @property
    def recording(self) -> Recording:
        values = {name: value for name, value in self._asdict().items() if name in _FIELDS}
        chapters = tuple(TimedChapter(*one) for one in json.loads(self.chapters))
        transcripts = tuple(NamedTranscript(**one) for one in json.loads(self.transcripts))
        return Recording(**{**values, "chapters": chapters, "transcripts": transcripts})


_FIELDS = frozenset(Recording.__struct_fields__)
_ONE = Query(select(recordings).where(recordings.c.media_id == bindparam("media_id")), RecordingRow)
_KEEP = upsert(
    recordings,
    {recordings.c[name]: bindparam(name) for name in ("media_id", *_FIELDS, "looked_at")},
    lambda new: new.on_conflict_do_update(
        index_elements=[recordings.c.media_id],
        set_={name: new.excluded[name] for name in (*_FIELDS, "looked_at")},
    ),
)


def find_recording(session: Session, media_id: UUID) -> RecordingRow | None:
    """Return what is known about a recording; None if nobody has looked yet."""
    return session.first(_ONE, media_id=media_id)


def keep_recording(session: Session, media_id: UUID, found: Recording) -> None:
    """Write what was found out about a recording, in place of what was known before. The copy of its sound stays."""
    values: dict[str, Any] = {name: getattr(found, name) for name in _FIELDS}
    values["notes"] = found.notes if found.notes is not None and is_safe(found.notes) else None
    values["chapters"] = json.dumps(found.chapters)
    values["transcripts"] = json.dumps([one._asdict() for one in found.transcripts])
    session.run(_KEEP, media_id=media_id, looked_at=session.now, **values)
