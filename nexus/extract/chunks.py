"""A text cut into chunks that can be searched and quoted: at paragraphs where it can be, then sentences, then words.

Linear in the length of the text, whatever it is made of.
"""

from __future__ import annotations

Span = tuple[int, int]

LONGEST = 1200
#: No chunk is cut shorter than this for the sake of a better place.
SHORTEST = 300
#: Where a chunk may end, the best first.
PLACES = (("\n\n",), (". ", "! ", "? ", ".\n", "!\n", "?\n", "。", "！", "？", "।"), ("\n", " "))


def split(text: str) -> list[Span]:
    """In order, without the white space around them, and together all of the text."""
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
