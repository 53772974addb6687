"""Vimeo: what it says about a video, and the captions of its player."""

from __future__ import annotations

from urllib.parse import quote

from nexus.errors import (
    ExtractionFailed,
    FetchFailed,
    FetchRateLimited,
    ProviderBlocked,
    TranscriptUnavailable,
    VideoUnavailable,
)
from nexus.extract import Hints, Source, Workbench
from nexus.extract.markup import absolute_url
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.transcribe.choosing import rank_captions
from nexus.transcribe.loose_json import largest_picture, list_at, number_at, parse_json, text_at

ACCEPT = "application/json"
GONE = frozenset({404, 410})
SAID = frozenset({"captions", "subtitles"})
MOST = 500
BLOCKED = "Vimeo blocks requests from this address at the moment. Nexus tries again later on its own."
NOT_SHOWN = (
    "Vimeo shows this video on chosen sites or to chosen people only, so Nexus can't get its captions. "
    "Add a transcript."
)
UNREADABLE = "Vimeo's answer can't be read. Look for a newer Nexus, or add a transcript."


def vimeo_oembed(source: Source) -> str:
    return f"https://vimeo.com/api/oembed.json?url={quote(source.url or '', safe='')}"


def ask_vimeo(bench: Workbench, video_id: str) -> Recording:
    """Return what the player is told, with its captions, the best first.

    The key of an unlisted video follows its number. Raises ProviderBlocked or TranscriptUnavailable, and FetchFailed if
    Vimeo can't be reached at the moment.
    """
    number, _, key = video_id.partition("/")
    config = f"https://player.vimeo.com/video/{number}/config" + (f"?h={key}" if key else "")
    with bench.asking("vimeo"):
        found = _ask_player(bench, config)
    tracks = [(one.language or "", _is_automatic(one)) for one in found.transcripts]
    order = rank_captions(tracks, bench.languages)
    return Recording(
        title=found.title,
        author=found.author,
        seconds=found.seconds,
        picture_url=found.picture_url,
        embed_url=found.embed_url,
        chapters=found.chapters,
        transcripts=tuple(found.transcripts[place] for place in order),
    )


def _ask_player(bench: Workbench, config: str) -> Recording:
    try:
        answer = bench.fetch_data(config, ACCEPT)
        return bench.read_as(Recording, f"{__name__}:read_config", answer.body, answer.hints())
    except FetchRateLimited as error:
        raise ProviderBlocked(BLOCKED, error.retry_after) from error
    except FetchFailed as error:
        if error.transient:
            raise
        raise VideoUnavailable() if error.http_status in GONE else TranscriptUnavailable(NOT_SHOWN) from error
    except ExtractionFailed as error:
        raise TranscriptUnavailable(UNREADABLE) from error


def caption_source(track: NamedTranscript) -> str:
    return "Captions from Vimeo, automatic" if _is_automatic(track) else "Captions from Vimeo"


def read_config(data: bytes, hints: Hints) -> Recording:
    """Read what Vimeo's player is told. Raises ExtractionFailed."""
    found = parse_json(data)
    video_id = number_at(found, "video", "id")
    if video_id is None:
        raise ExtractionFailed
    pictures = [
        {"url": url}
        for url in (text_at(found, "video", "thumbs", name) for name in ("base", "1280", "640"))
        if url
    ]
    tracks = (_track(one, hints) for one in list_at(found, "request", "text_tracks")[:MOST])
    chapters = (
        (number_at(one, "timecode"), text_at(one, "title"))
        for one in list_at(found, "embed", "chapters")[:MOST]
    )
    return Recording(
        title=text_at(found, "video", "title"),
        author=text_at(found, "video", "owner", "name"),
        seconds=number_at(found, "video", "duration"),
        picture_url=largest_picture(pictures),
        embed_url=f"https://player.vimeo.com/video/{int(video_id)}",
        chapters=tuple(TimedChapter(at, title) for at, title in chapters if at is not None and title),
        transcripts=tuple(track for track in tracks if track is not None),
    )


def _track(given: object, hints: Hints) -> NamedTranscript | None:
    address, kind = text_at(given, "url"), text_at(given, "kind") or "subtitles"
    url = absolute_url(address, hints.url) if address else None
    return NamedTranscript(url, "text/vtt", text_at(given, "lang"), kind) if url and kind in SAID else None


def _is_automatic(track: NamedTranscript) -> bool:
    """Vimeo calls them `en-x-autogen`."""
    return "autogen" in (track.language or "")
