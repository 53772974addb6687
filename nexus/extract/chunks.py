"""Cuts a text into chunks that can be searched and quoted: between paragraphs if possible, else sentences, else words.

It takes linear time, whatever the text is made of.
"""

from __future__ import annotations

Span = tuple[int, int]

LONGEST = 1200
#: A better place to cut never makes a chunk shorter than this.
SHORTEST = 300
#: What a chunk may end with, best first.
PLACES = (("\n\n",), (". ", "! ", "? ", ".\n", "!\n", "?\n", "。", "！", "？", "।"), ("\n", " "))


def split_chunks(text: str) -> list[Span]:
    """Return the spans of all chunks in order, without the white space around them."""
    spans: list[Span] = []
    start = _skip(text, 0)
    while start < len(text):
        end = _end(text, start)
        spans.append((start, start + len(text[start:end].rstrip())))
        start = _skip(text, end)
    return spans


def _end(text: str, start: int) -> int:
    most = start + LONGEST
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
