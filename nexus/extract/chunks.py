"""Cuts a text into chunks that can be searched and quoted: before headings and between paragraphs if possible, else
between sentences, else between words.

It takes linear time, whatever the text is made of.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from html import unescape
from operator import attrgetter
from typing import NamedTuple

Span = tuple[int, int]

LONGEST = 1200
#: A better place to cut never makes a chunk shorter than this.
SHORTEST = 300
#: What a chunk may end with, best first.
PLACES = (("\n\n",), (". ", "! ", "? ", ".\n", "!\n", "?\n", "。", "！", "？", "।"), ("\n", " "))

_HEADING = re.compile(r"<h([1-6])(?: [^<>]*)?>((?:(?!<h[1-6]).)*?)</h\1>", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")


class Headline(NamedTuple):
    """A heading, and where in the text of its fragment it begins."""

    start: int
    title: str


_start = attrgetter("start")


def find_headlines(text: str, html: str | None) -> list[Headline]:
    """Return the headings of a fragment in their order. Its html has exactly the characters of its text."""
    return list(_headlines(text, html)) if html and "<h" in html else []


def split_chunks(text: str, headlines: Sequence[Headline] = ()) -> list[Span]:
    """Return the spans of all chunks in order, without the white space around them."""
    breaks = [*map(_start, headlines)]
    spans: list[Span] = []
    start = _skip(text, 0)
    while start < len(text):
        end = _end(text, start, breaks)
        spans.append((start, start + len(text[start:end].rstrip())))
        start = _skip(text, end)
    return spans


def titles_of(span: Span, headlines: Sequence[Headline]) -> list[str]:
    """Return the heading that a chunk stands under, and those within it."""
    first = max(bisect_right(headlines, span[0], key=_start) - 1, 0)
    return [line.title for line in headlines[first : bisect_left(headlines, span[1], key=_start)]]


def _headlines(text: str, html: str) -> Iterator[Headline]:
    at = 0
    for found in _HEADING.finditer(html):
        title = unescape(_TAG.sub("", found[2])).strip()
        start = text.find(title, at) if title else -1
        if start >= 0:
            yield Headline(start, title)
            at = start + len(title)


def _end(text: str, start: int, breaks: Sequence[int]) -> int:
    """A heading ends the chunk before it, unless that would be too short."""
    most = start + LONGEST
    heading = bisect_right(breaks, start + SHORTEST)
    if heading < len(breaks) and breaks[heading] <= most:
        return breaks[heading]
    if most >= len(text):
        return len(text)
    for marks in PLACES:
        found = max(text.rfind(mark, start + SHORTEST, most) + len(mark) for mark in marks)
        if found > start + SHORTEST:
            return found
    return most


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
