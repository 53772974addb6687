"""Reads a page that carries a video or a recording: its player and tracks, its linked data, its meta tags.

It runs in a parser process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml.etree import _Element as Element

from nexus.errors import EmptyContent, PageTooLarge
from nexus.extract import Hints
from nexus.extract.article.facts import page_title
from nexus.extract.article.heads import PageHead, entity_name, read_head, types_of
from nexus.extract.article.page import body_of, parse_page, without_ballast
from nexus.extract.charsets import decode_page
from nexus.extract.elements import words
from nexus.extract.markup import absolute_url
from nexus.extract.recording import NamedTranscript, Recording, TimedChapter
from nexus.extract.results import ParserResult
from nexus.transcribe.descriptions import chapters_in, notes_in
from nexus.transcribe.loose_json import list_at, number_at, text_at
from nexus.urls import recording_type

LARGEST = 2 * 1024 * 1024
MOST_TRACKS = 100
MOST_CHAPTERS = 500
THINGS = words("VideoObject AudioObject PodcastEpisode Episode RadioEpisode TVEpisode MusicVideoObject Clip")
#: Kinds of tracks that hold what is said. Without a kind it is subtitles.
SAID = frozenset({"", "captions", "subtitles"})
_DURATION = re.compile(
    r"P(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,8}(?:\.\d{1,6})?)S)?)?", re.IGNORECASE
)
_ADDRESS = re.compile(r"(?:https?://|/)[^\s<>\"]{1,2000}", re.IGNORECASE)


class PageRecording(ParserResult, frozen=True):
    """What a page says about its recording, and the transcript if that stands in the page itself."""

    recording: Recording
    text: str | None = None
    #: Where more is said about it.
    oembed_url: str | None = None


def read_recording_page(data: bytes, hints: Hints) -> PageRecording:
    """Raises EmptyContent or PageTooLarge."""
    html = decode_page(data, hints.charset)
    html = without_ballast(html) if len(html) > LARGEST else html
    if len(html) > LARGEST:
        raise PageTooLarge
    root, _ = parse_page(html)
    if root is None:
        raise EmptyContent
    head, base = read_head(root), hints.url
    thing = next((one for one in head.things if types_of(one) & THINGS), {})
    said = text_at(thing, "transcript")
    sound = _sound(root, head, thing, base)
    description = text_at(thing, "description") or head.first("og:description", "description") or ""
    seconds = _seconds(text_at(thing, "duration")) or number_at(head.meta, "og:video:duration", 0)
    known = Recording(
        title=text_at(thing, "name") or page_title(head, body_of(root), hints.url),
        author=entity_name(thing.get("author") or thing.get("creator")) or head.first("author"),
        site=next(iter(head.site_names()), None),
        published=text_at(thing, "uploadDate")
        or text_at(thing, "datePublished")
        or head.first("article:published_time", "og:video:release_date"),
        language=text_at(thing, "inLanguage") or head.language,
        seconds=seconds,
        picture_url=_picture(root, head, thing, base),
        embed_url=_absolute(text_at(thing, "embedUrl"), base),
        notes=notes_in(description),
        chapters=_parts(thing) or chapters_in(description, seconds),
        transcripts=(*_tracks(root, base), *_captions_of(thing, base), *_named(said, base)),
        audio_url=sound,
        audio_type=None if sound is None else text_at(thing, "encodingFormat") or recording_type(sound),
    )
    return PageRecording(known, said if said and not is_address(said) else None, _oembed(root, base))


def is_address(said: str) -> bool:
    return _ADDRESS.fullmatch(said) is not None


def _absolute(address: str | None, base: str | None) -> str | None:
    return absolute_url(address.strip(), base) if address else None


def _sound(root: Element, head: PageHead, thing: dict[str, Any], base: str | None) -> str | None:
    """Return the address of the first file that the page plays. Those of its player come first."""
    given = (
        *(_player_sources(root, "audio")),
        *(_player_sources(root, "video")),
        text_at(thing, "contentUrl") or "",
        text_at(thing, "associatedMedia", "contentUrl") or "",
        head.first("og:audio", "og:audio:url", "og:audio:secure_url") or "",
        head.first("og:video:secure_url", "og:video:url", "og:video") or "",
        head.first("twitter:player:stream") or "",
    )
    places = [(place, place >= len(given) - 3) for place in range(len(given))]
    for place, may_be_page in places:
        found = _absolute(given[place], base)
        # What Open Graph calls a video is often the page of a player.
        if found is not None and (not may_be_page or recording_type(found)):
            return found
    return None


def _player_sources(root: Element, tag: str) -> Iterator[str]:
    for player in root.iter(tag):
        if player.get("src"):
            yield player.get("src") or ""
        for source in player.iter("source"):
            yield source.get("src") or ""


def _tracks(root: Element, base: str | None) -> list[NamedTranscript]:
    """Return the tracks with what is said, those that the page shows by itself first."""
    found: list[NamedTranscript] = []
    for track in root.iter("track"):
        kind = (track.get("kind") or "").strip().lower()
        url = _absolute(track.get("src"), base)
        if kind in SAID and url and len(found) < MOST_TRACKS:
            named = NamedTranscript(url, None, track.get("srclang"), kind or "subtitles")
            found.insert(0 if track.get("default") is not None else len(found), named)
    return found


def _captions_of(thing: dict[str, Any], base: str | None) -> Iterator[NamedTranscript]:
    given = thing.get("caption")
    for caption in given if isinstance(given, list) else [given]:
        url = _absolute(text_at(caption, "contentUrl") or text_at(caption, "url"), base)
        if url:
            yield NamedTranscript(
                url, text_at(caption, "encodingFormat"), text_at(caption, "inLanguage"), "captions"
            )


def _named(said: str | None, base: str | None) -> Iterator[NamedTranscript]:
    if said and is_address(said) and (url := _absolute(said, base)):
        yield NamedTranscript(url)


def _picture(root: Element, head: PageHead, thing: dict[str, Any], base: str | None) -> str | None:
    given = thing.get("thumbnailUrl")
    first = given[0] if isinstance(given, list) and given else given
    poster = next((one.get("poster") for one in root.iter("video") if one.get("poster")), None)
    shown = (
        first if isinstance(first, str) else None,
        text_at(thing, "thumbnail", "contentUrl"),
        poster,
        head.first("og:image", "twitter:image"),
    )
    return next((url for one in shown if (url := _absolute(one, base))), None)


def _parts(thing: dict[str, Any]) -> tuple[TimedChapter, ...]:
    """Return the clips that the linked data divides a recording into."""
    found = [
        TimedChapter(start, name)
        for part in list_at(thing, "hasPart")[:MOST_CHAPTERS]
        if (start := number_at(part, "startOffset")) is not None and (name := text_at(part, "name"))
    ]
    return tuple(sorted(found))


def _seconds(duration: str | None) -> float | None:
    found = _DURATION.fullmatch(duration or "")
    if found is None:
        return None
    days, hours, minutes, seconds = (float(one or 0) for one in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds or None


def _oembed(root: Element, base: str | None) -> str | None:
    links = (link for link in root.iter("link") if link.get("type") == "application/json+oembed")
    return next((url for link in links if (url := _absolute(link.get("href"), base))), None)
