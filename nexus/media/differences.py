"""Two texts side by side, with the words marked that only one of them has.

Paragraphs are matched first, then the words of those that differ, by Myers' algorithm. It stops after a number of
edits: what differs more than that is shown as replaced, so that a hostile text can't keep the server busy. The
standard library's difflib has no such bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

#: The most edits that are looked for: of paragraphs in a text, and of words in a run of paragraphs that differ.
MOST_PARAGRAPHS = 500
MOST_WORDS = 200
#: How many paragraphs are shown before and after a change.
AROUND = 1

_PARAGRAPH_ENDS = re.compile(r"\n+")
_WORD = re.compile(r"\S+\s*")
_SIDES = (attrgetter("before"), attrgetter("after"))
#: Where a run of equal entries begins in each of two lists, and how long it is.
_Run = tuple[int, int, int]


@dataclass(frozen=True)
class Span:
    text: str
    #: Whether the other text does not have it.
    is_marked: bool = False


@dataclass(frozen=True)
class Beside:
    """A part of both texts, or a number of equal paragraphs that are left out."""

    before: tuple[Span, ...] = ()
    after: tuple[Span, ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class Difference:
    rows: tuple[Beside, ...]
    words_removed: int
    words_added: int


def compare(before: str, after: str) -> Difference:
    """Compare an earlier text with a later one."""
    old, new = _paragraphs(before), _paragraphs(after)
    rows: list[Beside] = []
    for equal, ours, theirs in _parts(old, new, MOST_PARAGRAPHS):
        rows += (
            _equal_rows(ours, at_start=not rows) if equal else [_marked("\n".join(ours), "\n".join(theirs))]
        )
    if len(rows) > 1 and rows[-2].left_out and rows[-1].before == rows[-1].after:
        rows[-2:] = [Beside(left_out=rows[-2].left_out + 1)]  # nothing differs after it
    marked = [[span for row in rows for span in spans(row)] for spans in _SIDES]
    removed, added = (sum(len(span.text.split()) for span in side if span.is_marked) for side in marked)
    return Difference(tuple(rows), removed, added)


def _paragraphs(text: str) -> list[str]:
    return [part for part in _PARAGRAPH_ENDS.split(text) if part.strip()]


def _equal_rows(paragraphs: Sequence[str], *, at_start: bool) -> list[Beside]:
    """The ends of a run of equal paragraphs, next to what differs."""
    head = 0 if at_start else AROUND
    shown = [Beside((Span(one),), (Span(one),)) for one in paragraphs]
    if len(paragraphs) <= head + AROUND + 1:
        return shown
    left_out = Beside(left_out=len(paragraphs) - head - AROUND)
    return [*shown[:head], left_out, *shown[len(shown) - AROUND :]]


def _marked(before: str, after: str) -> Beside:
    old, new = _WORD.findall(before), _WORD.findall(after)
    left, right = list[Span](), list[Span]()
    words = ([word.rstrip() for word in old], [word.rstrip() for word in new])
    place = [0, 0]
    for equal, ours, theirs in _parts(*words, MOST_WORDS):
        for spans, source, side, many in ((left, old, 0, len(ours)), (right, new, 1, len(theirs))):
            if many:
                text = "".join(source[place[side] : place[side] + many])
                spans.append(Span(text, is_marked=not equal))
                place[side] += many
    return Beside(tuple(left), tuple(right))


def _parts(
    old: Sequence[str], new: Sequence[str], most: int
) -> Iterator[tuple[bool, Sequence[str], Sequence[str]]]:
    """Yield both lists in parts that are equal, or of which only one list has each entry."""
    x = y = 0
    for begins, also, length in [*_equal_runs(old, new, most), (len(old), len(new), 0)]:
        if begins > x or also > y:
            yield False, old[x:begins], new[y:also]
        if length:
            yield True, old[begins : begins + length], new[also : also + length]
        x, y = begins + length, also + length


def _equal_runs(old: Sequence[str], new: Sequence[str], most: int) -> list[_Run]:
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    rest = shorter - head
    tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    middle = _shortest_edit(old[head : len(old) - tail], new[head : len(new) - tail], most)
    runs = [(0, 0, head), *((x + head, y + head, n) for x, y, n in middle)]
    return [run for run in (*runs, (len(old) - tail, len(new) - tail, tail)) if run[2]]


def _shortest_edit(old: Sequence[str], new: Sequence[str], most: int) -> list[_Run]:
    """Return the equal runs that the fewest edits leave; none if more than `most` are needed.

    `furthest[k]` is how far into `old` a number of edits can lead if the places differ by k.
    """
    furthest, trail = {1: 0}, list[dict[int, int]]()
    for edits in range(min(most, len(old) + len(new)) + 1):
        trail.append(furthest.copy())
        for k in range(-edits, edits + 1, 2):
            x = furthest[k + 1] if _is_added(furthest, k, edits) else furthest[k - 1] + 1
            while x < len(old) and x - k < len(new) and old[x] == new[x - k]:
                x += 1
            furthest[k] = x
            if x >= len(old) and x - k >= len(new):
                return _walk_back(trail, len(old), len(new))
    return []


def _is_added(furthest: dict[int, int], k: int, edits: int) -> bool:
    """Whether the last edit on the way to diagonal k adds an entry of `new`; otherwise it removes one of `old`."""
    return k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])


def _walk_back(trail: Sequence[dict[int, int]], x: int, y: int) -> list[_Run]:
    runs: list[_Run] = []
    for edits in range(len(trail) - 1, -1, -1):
        furthest, k = trail[edits], x - y
        added = _is_added(furthest, k, edits)
        before = furthest[k + 1] if added else furthest[k - 1]
        begins = 0 if edits == 0 else before if added else before + 1
        if x > begins:
            runs.append((begins, begins - k, x - begins))
        x, y = before, before - (k + 1 if added else k - 1)
    return runs[::-1]
