"""What is known about videos and episodes: kept as soon as it is found out, so that no retry asks for it again."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import bindparam, exists, literal_column, select, update

from nexus import urls
from nexus.db.drivers import is_taken
from nexus.db.recordings import recordings
from nexus.db.rows import IdRow
from nexus.db.session import Query, Session, Sessions, Statement
from nexus.db.tables import UNSTORABLE, library_media, media, memberships
from nexus.db.upserts import upsert
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.extract.safe_html import is_safe
from nexus.libraries.access import Role
from nexus.states.media import Kind

#: How much anybody may claim about a recording. The rest is cut off.
LONGEST_LINE = 1000
LONGEST_NOTES = 200_000
MOST_CHAPTERS = 1000
MOST_TRANSCRIPTS = 200
#: A hundred days. Whatever claims to be longer has no known length.
LONGEST_SECONDS = 8_640_000
MOST_BYTES = 2**50


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
    chapters_url: str | None
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


#: What people read of a recording.
_WORDS = ("title", "author", "site", "published", "language", "notes", "chapters")
_OTHERS = Query(
    select(library_media.c.library_id.label("id"))
    .where(
        library_media.c.media_id == bindparam("media_id"),
        library_media.c.library_id.not_in(
            select(memberships.c.library_id).where(
                memberships.c.user_id == bindparam("viewer"), memberships.c.role == Role.ADMIN.value
            )
        ),
    )
    .limit(literal_column("1")),
    IdRow,
)
_NAME = Statement(
    update(media)
    .where(media.c.id == bindparam("media_id"), media.c.title.is_(None))
    .values(title=bindparam("name"))
)
_other = media.alias("other")
_KNOW_AS = Statement(
    update(media)
    .where(
        media.c.id == bindparam("media_id"),
        media.c.provider_id.is_(None),
        ~exists(
            select(_other.c.id).where(
                _other.c.kind == bindparam("media_kind"),
                _other.c.provider == bindparam("new_provider"),
                _other.c.provider_id == bindparam("new_provider_id"),
            )
        ),
    )
    .values(provider=bindparam("new_provider"), provider_id=bindparam("new_provider_id"))
)


def find_recording(session: Session, media_id: UUID) -> RecordingRow | None:
    """Return what is known about a recording; None if nobody has looked yet."""
    return session.first(_ONE, media_id=media_id)


def keep_recording(session: Session, media_id: UUID, found: Recording) -> None:
    """Write what was found out about a recording, in place of what was known before. The copy of its sound stays."""
    stored = _storable(found)
    values: dict[str, Any] = {name: getattr(stored, name) for name in _FIELDS}
    values["chapters"] = json.dumps(stored.chapters)
    values["transcripts"] = json.dumps([one._asdict() for one in stored.transcripts])
    session.run(_KEEP, media_id=media_id, looked_at=session.now, **values)


def renew_recording(session: Session, media_id: UUID, found: Recording, viewer: UUID) -> None:
    """Write what a refresh has found out for a viewer, in place of what was known before.

    If libraries hold the item that the viewer does not administer, the words that are known stay: what somebody saved
    does not change because somebody else asked. Addresses are those of now for all.
    """
    known = find_recording(session, media_id)
    if known is not None and session.first(_OTHERS, media_id=media_id, viewer=viewer) is not None:
        found = with_saved_words(found, known.recording)
    keep_recording(session, media_id, found)


def with_saved_words(found: Recording, saved: Recording) -> Recording:
    """Return what was found out, but with the words that people have saved: only what these lack is new."""
    words = {name: getattr(saved, name) or getattr(found, name) for name in _WORDS}
    return msgspec.structs.replace(found, **words)


def name_item(session: Session, media_id: UUID, found: Recording) -> None:
    """Give an item that has no title yet the one of its recording: it may never get a text."""
    title = _storable(found).title
    if title is not None:
        session.run(_NAME, media_id=media_id, name=title)


def know_as(sessions: Sessions, media_id: UUID, kind: Kind, provider: str, provider_id: str) -> None:
    """Write which video of a provider an item is, if it has no such id yet and no other item has this one."""
    if len(provider_id) > media.c.provider_id.type.length:  # type: ignore[attr-defined]
        return
    names = {"new_provider": provider, "new_provider_id": provider_id}
    try:
        with sessions.begin() as session:
            session.run(_KNOW_AS, media_id=media_id, media_kind=kind.value, **names)
    except Exception as error:
        # Another item got the id between the look and the write.
        if not is_taken(error):
            raise


def _storable(found: Recording) -> Recording:
    """Remove what no database can hold and no page should show."""
    notes = None if found.notes is None else UNSTORABLE.sub("", found.notes)
    is_kept = notes is not None and len(notes) <= LONGEST_NOTES and is_safe(notes)
    chapters = (TimedChapter(one.seconds, _line(one.title) or "") for one in found.chapters)
    size = found.audio_bytes
    return Recording(
        title=_line(found.title),
        author=_line(found.author),
        site=_line(found.site),
        published=_line(found.published),
        language=_line(found.language),
        seconds=found.seconds if _is_moment(found.seconds) else None,
        picture_url=_address(found.picture_url),
        embed_url=_address(found.embed_url),
        notes=notes if is_kept else None,
        chapters_url=_address(found.chapters_url),
        chapters=tuple(one for one in chapters if one.title and _is_moment(one.seconds))[:MOST_CHAPTERS],
        transcripts=tuple(named for one in found.transcripts[:MOST_TRANSCRIPTS] if (named := _named(one))),
        audio_url=_address(found.audio_url),
        audio_type=_line(found.audio_type),
        audio_bytes=size if size is not None and 0 <= size <= MOST_BYTES else None,
    )


def _named(one: NamedTranscript) -> NamedTranscript | None:
    url = _address(one.url)
    return (
        None if url is None else NamedTranscript(url, _line(one.type), _line(one.language), _line(one.kind))
    )


def _is_moment(seconds: float | None) -> bool:
    return seconds is not None and math.isfinite(seconds) and 0 <= seconds <= LONGEST_SECONDS


def _line(text: str | None) -> str | None:
    return None if text is None else " ".join(UNSTORABLE.sub("", text).split())[:LONGEST_LINE] or None


def _address(url: str | None) -> str | None:
    """Only what a browser may be sent to is kept."""
    found = UNSTORABLE.sub("", url or "").strip()
    is_web = found.startswith(("https://", "http://")) and not any(map(str.isspace, found))
    return found if is_web and len(found) <= urls.MAX_LENGTH else None
