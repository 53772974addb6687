"""PeerTube: what the API of a host says about a video, its captions and its chapters."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from nexus.errors import ExtractionFailed, FetchFailed
from nexus.extract import Hints, Source
from nexus.extract.markup import absolute_url
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.extract.results import ParserResult
from nexus.transcribe.descriptions import chapters_in, notes_in
from nexus.transcribe.loose_json import list_at, number_at, parse_json, text_at
from nexus.transcribe.merging import fill_in

ACCEPT = "application/json"
#: A page of a video, by its id of 36 characters or of 22.
_PATH = re.compile(r"/(?:w|videos/watch|videos/embed)/([0-9A-Za-z-]{22,36})/?")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOST = 500


class PeerTubeVideo(ParserResult, frozen=True):
    uuid: str
    recording: Recording


def look_at_peertube(source: Source) -> Recording | None:
    """Return what a host says about a video; None if it is not a PeerTube. Raises FetchFailed if it may answer
    later."""
    found = _PATH.fullmatch(urlsplit(source.url or "").path)
    if found is None:
        return None
    bench, host = source.bench, urlsplit(source.url or "").netloc
    api = f"{urlsplit(source.url or '').scheme}://{host}/api/v1/videos/{found[1]}"
    try:
        answer = bench.fetch_data(api, ACCEPT)
        video = bench.read_as(PeerTubeVideo, f"{__name__}:read_peertube_video", answer.body, answer.hints())
    except (FetchFailed, ExtractionFailed) as error:
        if error.transient:
            raise
        return None
    bench.know_as("peertube", f"{video.uuid}@{host}")
    known = video.recording
    for part in ("captions", "chapters"):
        try:
            answer = bench.fetch_data(f"{api}/{part}", ACCEPT)
            more = bench.read_as(Recording, f"{__name__}:read_peertube_{part}", answer.body, answer.hints())
        except (FetchFailed, ExtractionFailed) as error:
            if error.transient and part == "captions":
                raise
            continue
        known = fill_in(more, known)
    return known


def read_peertube_video(data: bytes, hints: Hints) -> PeerTubeVideo:
    """Read what the API says about a video. Raises ExtractionFailed."""
    found = parse_json(data)
    uuid = text_at(found, "uuid") or ""
    if not _ID.fullmatch(uuid):
        raise ExtractionFailed
    description, seconds = text_at(found, "description") or "", number_at(found, "duration")
    sound, size = _smallest_file(found)
    picture = text_at(found, "previewPath") or text_at(found, "thumbnailPath") or ""
    return PeerTubeVideo(
        uuid,
        Recording(
            title=text_at(found, "name"),
            author=text_at(found, "channel", "displayName") or text_at(found, "account", "displayName"),
            site="PeerTube",
            published=text_at(found, "originallyPublishedAt") or text_at(found, "publishedAt"),
            language=text_at(found, "language", "id"),
            seconds=seconds,
            picture_url=absolute_url(picture, hints.url) if picture else None,
            embed_url=absolute_url(text_at(found, "embedPath") or f"/videos/embed/{uuid}", hints.url),
            notes=notes_in(description),
            chapters=chapters_in(description, seconds),
            audio_url=sound,
            audio_type="video/mp4" if sound else None,
            audio_bytes=size,
        ),
    )


def read_peertube_captions(data: bytes, hints: Hints) -> Recording:
    """Read the list of captions: those that people wrote come first. Raises ExtractionFailed."""
    named: list[tuple[bool, NamedTranscript]] = []
    for one in list_at(parse_json(data), "data")[:MOST]:
        address = text_at(one, "fileUrl") or text_at(one, "captionPath") or ""
        url = absolute_url(address, hints.url) if address else None
        if url:
            transcript = NamedTranscript(url, "text/vtt", text_at(one, "language", "id"), "captions")
            named.append((bool(isinstance(one, dict) and one.get("automaticallyGenerated")), transcript))
    return Recording(transcripts=tuple(one for _, one in sorted(named, key=lambda pair: pair[0])))


def read_peertube_chapters(data: bytes, hints: Hints) -> Recording:  # noqa: ARG001
    """Read the list of chapters. Raises ExtractionFailed."""
    given = list_at(parse_json(data), "chapters")[:MOST]
    found = ((number_at(one, "timecode"), text_at(one, "title")) for one in given)
    return Recording(
        chapters=tuple(TimedChapter(at, title) for at, title in found if at is not None and title)
    )


def _smallest_file(found: object) -> tuple[str | None, int | None]:
    """Every file of a video has its sound; the smallest is the fastest to fetch."""
    files = list_at(found, "files") + [
        one for playlist in list_at(found, "streamingPlaylists")[:10] for one in list_at(playlist, "files")
    ]
    sized = ((number_at(one, "size"), text_at(one, "fileUrl")) for one in files[:MOST])
    known = [(int(size), url) for size, url in sized if size and 0 < size < 2**50 and url]
    if not known:
        return None, None
    size, url = min(known)
    return url, size
