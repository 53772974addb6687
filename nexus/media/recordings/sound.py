"""The sound of a recording, or its moving picture: passed on from where it is, or from the copy in the store.

Nothing is held but the piece that is on its way, and nothing is passed on that is not audio or video.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, func, select

from nexus import urls
from nexus.db.feeds import episodes
from nexus.db.recordings import recordings
from nexus.db.session import Query, Session
from nexus.db.tables import media
from nexus.errors import FetchFailed, NotFound, NotReady, SourceUnavailable
from nexus.fetch import ByteRange, Fetcher, Stream
from nexus.fetch.ranges import Part
from nexus.libraries import access
from nexus.media.files import Files
from nexus.storage import ObjectMissing, StorageError

#: More than any recording that people listen to, and an end for sites that have none.
MOST_BYTES = 8 * 1024**3
ACCEPT_SOUND = "audio/*, video/*;q=0.9, application/ogg;q=0.8, */*;q=0.1"
#: What ends with +xml is a document to browsers, whatever it begins with.
_SOUND = re.compile(r"(audio|video)/(?![^/]*\+xml$)[a-z0-9!#$&^_.+-]{1,60}", re.ASCII)
#: Other names of such types, and what sites say if they don't know: then the feed or the address decides.
_ALSO = {"application/ogg": "audio/ogg", "application/mp4": "video/mp4"}
_UNTOLD = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})
_ENDING = re.compile(r"(\.[a-z0-9]{2,4})(?:[?#]|$)", re.IGNORECASE)
GONE = "The recording can't be fetched at the moment. {} You can still open the original."


class SoundPlace(NamedTuple):
    """Where the sound of an item is: a copy in the store, or an address."""

    url: str | None
    type: str | None
    path: str | None


@dataclass(frozen=True)
class Sound:
    """What is answered to somebody who listens."""

    content_type: str
    part: Part | None
    length: int | None
    size: int | None
    is_out_of_range: bool
    takes_ranges: bool
    #: Raises FetchFailed or StorageError if the rest does not come.
    pieces: _OpenPieces


_PLACE = Query(
    select(
        func.coalesce(recordings.c.audio_url, episodes.c.enclosure_url).label("url"),
        recordings.c.audio_type.label("type"),
        recordings.c.audio_path.label("path"),
    )
    .select_from(media)
    .outerjoin(recordings, recordings.c.media_id == media.c.id)
    .outerjoin(episodes, episodes.c.media_id == media.c.id)
    .where(media.c.id == bindparam("media_id")),
    SoundPlace,
)


def sound_place(session: Session, media_id: UUID) -> SoundPlace | None:
    """Return where the sound is; None if Nexus can't play it. The caller has checked that the viewer may read it."""
    found = session.first(_PLACE, media_id=media_id)
    return found if found is not None and (found.url or found.path) else None


def find_sound(session: Session, media_id: UUID, viewer: UUID) -> SoundPlace:
    """Return where the sound is. Raises NotFound if the viewer can't read the item, or it has none."""
    access.require_readable(session, media_id, viewer)
    found = sound_place(session, media_id)
    if found is None:
        raise NotFound("This item has no recording that Nexus can play.")
    return found


def open_sound(fetcher: Fetcher, files: Files, place: SoundPlace, asked: ByteRange | None) -> Sound:
    """Begin to read it, or a part of it. Raises SourceUnavailable or NotReady if that is not possible.

    The caller closes `pieces`.
    """
    if place.path is not None:
        with suppress(ObjectMissing):  # the copy goes when it is not needed any more
            return _from_store(files, place, place.path, asked)
    if place.url is None:
        raise NotFound("The file of this recording is gone.")
    return _from_site(fetcher, place, place.url, asked)


def _from_site(fetcher: Fetcher, place: SoundPlace, url: str, asked: ByteRange | None) -> Sound:
    opened = ExitStack()
    try:
        stream = opened.enter_context(fetcher.stream(url, ACCEPT_SOUND, most_bytes=MOST_BYTES, part=asked))
        kind = place.type or "" if stream.is_out_of_range else _type_of(stream, place)
        # The first piece is read here, so that a site that sends nothing becomes an error instead of an empty answer.
        first = next(stream.chunks, b"")
    except FetchFailed as error:
        opened.close()
        raise SourceUnavailable(GONE.format(error.message)) from error
    except BaseException:
        opened.close()
        raise
    return Sound(
        content_type=kind,
        part=stream.part,
        length=stream.length,
        size=stream.size,
        is_out_of_range=stream.is_out_of_range,
        takes_ranges=stream.takes_ranges,
        pieces=_OpenPieces(opened, chain([first], stream.chunks)),
    )


class _OpenPieces(Iterator[bytes]):
    """Pieces, and what they are read from. A generator could not close that before its first piece was asked for."""

    def __init__(self, opened: ExitStack, pieces: Iterator[bytes]) -> None:
        self._opened, self._pieces = opened, pieces

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._opened.close()


def _type_of(stream: Stream, place: SoundPlace) -> str:
    """Return the type of what a site answers. Raises FetchFailed for anything but audio and video."""
    said = _ALSO.get(stream.content_type, stream.content_type)
    if said in _UNTOLD:
        ending = _ENDING.search(stream.url) or _ENDING.search(place.url or "")
        said = urls.RECORDING_TYPES.get(ending[1].lower(), "") if ending else ""
        known = (place.type or "").partition(";")[0].strip().lower()
        said = _ALSO.get(known, known) if _SOUND.fullmatch(_ALSO.get(known, known)) else said
    if not _SOUND.fullmatch(said):
        raise FetchFailed("Its address leads to something other than audio or video.")
    return said


def _from_store(files: Files, place: SoundPlace, path: str, asked: ByteRange | None) -> Sound:
    opened = ExitStack()
    try:
        stored = files.storage.head(path)
        if stored is None:
            raise ObjectMissing
        part = None if asked is None else asked.within(stored.size)
        is_out_of_range = asked is not None and part is None
        chunks = iter(()) if is_out_of_range else files.storage.stream(path)
        opened.callback(getattr(chunks, "close", lambda: None))
        pieces = chunks if part is None else _cut(chunks, part)
        first = next(pieces, b"")
    except ObjectMissing:
        raise
    except StorageError as error:
        raise NotReady("The file store can't be reached. Try again in a moment.") from error
    known = (place.type or "").partition(";")[0].strip().lower()
    return Sound(
        content_type=known if _SOUND.fullmatch(known) else "audio/mpeg",
        part=part,
        length=0 if is_out_of_range else stored.size if part is None else part.length,
        size=stored.size,
        is_out_of_range=is_out_of_range,
        takes_ranges=True,
        pieces=_OpenPieces(opened, chain([first], pieces)),
    )


def _cut(chunks: Iterator[bytes], part: Part) -> Iterator[bytes]:
    """The bytes of a part. A store has no ranges, so what lies before it is read and dropped."""
    skipped, left = part.first, part.length
    for chunk in chunks:
        piece = chunk[skipped:][:left]
        skipped = max(0, skipped - len(chunk))
        left -= len(piece)
        if piece:
            yield piece
        if not left:
            return
