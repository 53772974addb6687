"""Where in a text the words of a question are, and which part of the text to show."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from nexus.search.analysis import fold_characters, stemmed_in, tokens_of
from nexus.search.terms import Form, Terms

Span = tuple[int, int]
#: How much of a passage is shown, in characters, and how much of that comes before the first marked word.
SHOWN = 240
BEFORE = 60
#: How far a cut may move to fall between words.
REACH = 24

_WORD = re.compile(r"\S+")
#: What ends a sentence, and the white space up to the next one.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？]\s*|\n\s*")


class Snippet(NamedTuple):
    """The part of a text from `start` to `end`, and the spans in it to mark, as places in the whole text."""

    start: int
    end: int
    marks: tuple[Span, ...]


class _Located(NamedTuple):
    token: str
    start: int
    end: int


def mark_words(text: str, terms: Terms, language: str | None = None) -> list[Span]:
    """Return where a text in a language has words or phrases of a question, in order, without overlaps."""
    forms = {form for term in terms.wanted for form in term.forms}
    located = _locate(text, stemmed_in(language))
    found = sorted(span for form in forms for span in _occurrences(located, form))
    marks: list[Span] = []
    for start, end in found:
        if marks and start <= marks[-1][1]:
            marks[-1] = (marks[-1][0], max(end, marks[-1][1]))
        else:
            marks.append((start, end))
    return marks


def cut_snippet(text: str, marks: list[Span], most: int = SHOWN) -> Snippet:
    """Return the part of a text with the most marks, cut between words; if it can, it begins with a sentence."""
    first = _best_start(marks, most)
    start = max(0, min(first - BEFORE, len(text) - most))
    ended = _SENTENCE_END.search(text, start, first) if start else None
    start = ended.end() if ended else _between_words(text, start, forward=True)
    end = _between_words(text, min(len(text), start + most), forward=False)
    return Snippet(start, end, tuple(mark for mark in marks if start <= mark[0] and mark[1] <= end))


def _best_start(marks: list[Span], most: int) -> int:
    """Where to begin so that most marks fit; the earliest place, if there are several."""
    starts = [start for start, _ in marks]
    reach = most - 2 * BEFORE
    return max(
        starts, key=lambda start: bisect_left(starts, start + reach) - bisect_left(starts, start), default=0
    )


def _between_words(text: str, place: int, *, forward: bool) -> int:
    if place in {0, len(text)}:
        return place
    for distance in range(REACH):
        moved = place + distance if forward else place - distance
        if not 0 < moved < len(text):
            break
        if text[moved - 1].isspace() if forward else text[moved].isspace():
            return moved
    return place


def _occurrences(located: list[_Located], form: Form) -> Iterator[Span]:
    length = len(form)
    for number in range(len(located) - length + 1):
        if located[number].token != form[0]:
            continue
        words = located[number : number + length]
        if tuple(word.token for word in words) == form:
            yield words[0].start, words[-1].end


def _locate(text: str, language: str) -> list[_Located]:
    """The tokens of a text with their places in it. A character that folding makes longer or shorter keeps its
    place."""
    folded: list[str] = []
    places: list[Span] = []
    for start, end in _clusters(text):
        characters = _folded(text[start:end], language)
        folded.append(characters)
        places.extend([(start, end)] * len(characters))
    token = tokens_of(language)
    return [
        _Located(token(word[0]), places[word.start()][0], places[word.end() - 1][1])
        for word in _WORD.finditer("".join(folded))
    ]


def _clusters(text: str) -> Iterator[Span]:
    """Each character with its combining marks."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or text[place] < "\u0300" or not unicodedata.combining(text[place]):
            yield start, place
            start = place


@lru_cache(4096)
def _folded(cluster: str, language: str) -> str:
    return fold_characters(cluster, language)
