"""Chapters that a feed names by an address: JSON, as the podcast namespace describes it."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import msgspec

from nexus.extract import Hints, Workbench
from nexus.extract.recording import TimedChapter
from nexus.extract.results import ParserResult
from nexus.transcribe.turns import tidy

READER = "nexus.transcribe.chapters:read_chapters"
ACCEPT = "application/json+chapters, application/json;q=0.9, */*;q=0.5"
MOST_CHAPTERS = 1000
LONGEST_TITLE = 200


class ChapterList(ParserResult, frozen=True):
    """The chapters of a recording, in the order of their times."""

    chapters: Annotated[tuple[TimedChapter, ...], msgspec.Meta(max_length=MOST_CHAPTERS)] = ()


def read_chapters(data: bytes, hints: Hints) -> ChapterList:
    """Read chapters. Those that make no sense, or are not to be listed, are left out."""
    del hints
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return ChapterList()
    listed = found.get("chapters") if isinstance(found, dict) else None
    chapters = [one for one in map(_chapter, listed if isinstance(listed, list) else []) if one is not None]
    return ChapterList(tuple(sorted(chapters[:MOST_CHAPTERS], key=lambda one: one.seconds)))


def named_chapters(bench: Workbench, url: str) -> tuple[TimedChapter, ...]:
    """Fetch and read the chapters at an address.

    Raises FetchFailed or ExtractionFailed. A recording can do without them, so callers go on.
    """
    fetched = bench.fetch_data(url, ACCEPT)
    return bench.read_as(ChapterList, READER, fetched.body, fetched.hints()).chapters


def _chapter(given: Any) -> TimedChapter | None:
    if not isinstance(given, dict) or given.get("toc") is False:
        return None
    starts, title = given.get("startTime"), given.get("title")
    if isinstance(starts, bool) or not isinstance(starts, int | float) or not isinstance(title, str):
        return None
    if not 0 <= starts < math.inf or starts > 1e9 or not tidy(title):
        return None
    return TimedChapter(float(starts), tidy(title)[:LONGEST_TITLE])
