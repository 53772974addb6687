"""Reads what YouTube's player and its page say about a video. Runs in a parser process."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from nexus.extract import Hints
from nexus.extract.recording import Recording, TimedChapter
from nexus.transcribe.descriptions import chapters_in, notes_in
from nexus.transcribe.loose_json import dig, largest_picture, list_at, number_at, parse_json, text_at

SITE = "YouTube"
MOST_CHAPTERS = 500
_PUBLISHED = re.compile(
    r'(?:itemprop="(?:datePublished|uploadDate)" content=|"(?:publishDate|uploadDate)":)\s*"([0-9T:+Z.-]{10,35})"'
)
_CHAPTER = re.compile(
    r'"chapterRenderer":\{"title":\{"simpleText":("(?:[^"\\]|\\.){1,500}")\},"timeRangeStartMillis":(\d{1,10})'
)


def read_player(data: bytes, hints: Hints) -> Recording:  # noqa: ARG001
    """Read the answer that YouTube's player gets. Raises ExtractionFailed."""
    found = parse_json(data)
    details = dig(found, "videoDetails")
    video_id, description = text_at(details, "videoId"), text_at(details, "shortDescription") or ""
    seconds = number_at(details, "lengthSeconds")
    microformat = dig(found, "microformat", "playerMicroformatRenderer")
    return Recording(
        title=text_at(details, "title"),
        author=text_at(details, "author"),
        site=SITE,
        published=text_at(microformat, "publishDate"),
        seconds=seconds or None,  # a live stream has none
        picture_url=largest_picture(list_at(details, "thumbnail", "thumbnails")),
        embed_url=embed_address(video_id) if video_id else None,
        notes=notes_in(description),
        chapters=chapters_in(description, seconds),
    )


def read_watch_page(data: bytes, hints: Hints) -> Recording:  # noqa: ARG001
    """Read what only the page of a video says: when it was published, and its chapters."""
    page = data.decode(errors="replace")
    published = _PUBLISHED.search(page)
    chapters = dict[int, TimedChapter]()
    for title, starts_ms in _CHAPTER.findall(page)[:MOST_CHAPTERS]:
        with suppress(ValueError):
            chapters[int(starts_ms)] = TimedChapter(int(starts_ms) / 1000, json.loads(title))
    return Recording(
        published=published[1] if published else None,
        chapters=tuple(chapters[moment] for moment in sorted(chapters)),
    )


def embed_address(video_id: str) -> str:
    return f"https://www.youtube-nocookie.com/embed/{video_id}"
