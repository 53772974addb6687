"""Finds quotes in a text.

Both are folded alike: different ways to write white space, quotation marks, dashes, ellipses, ligatures and accents
make no difference, and nothing else is forgiven. Folding marks where each word begins and ends, so that a quote never
matches a part of a word: "can" is not in "can't", nor "5" in "5.3" or "-5".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from unicodedata import category, normalize

from nexus.draft import Evidence

Span = tuple[int, int]

#: How far apart the parts of a shortened quote may be, in folded characters.
MOST_GAP = 600
#: The least words in a part of a shortened quote: fewer may match by chance.
LEAST_WORDS = 3
MOST_PARTS = 4
#: How many occurrences of its first part are tried.
MOST_TRIES = 20

QUOTE = '"'
DASH = "-"
#: Marks where a word begins or ends. Folding removes it from texts.
EDGE = "\0"

QUOTES = "\"'`´‘’‚‛“”„‟′″‵‶«»‹›「」『』〝〞〟＂＇ʻʼ"
DASHES = "-‐‑‒–—―−⸺⸻﹘﹣－"
LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
#: Characters that are invisible, or visible only at the end of a line.
UNSEEN = "\0\1\2\3\u00ad\u200b\u200c\u200d\u2060\ufeff"
#: Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
ELLIPSIS = re.compile(r"[\[(]?(?:…|\.\s?\.\s?\.)[\])]?")
AROUND = QUOTES + " \t\r\n\u00a0"
PERIODS = ".。"
#: Replaces a mark inside a word, so that the word stays whole.
JOINTS = {QUOTE: "'", ".": "\1", ",": "\2", DASH: "\3"}


class CharKind(Enum):
    """How a folded character relates to its neighbours."""

    #: A letter, a digit, or what joins them.
    WORD = "word"
    #: Belongs to the character before it.
    ACCENT = "accent"
    #: Stands alone.
    OTHER = "other"


class _Forms(dict[str, str]):
    """What each character folds to, computed once."""

    def __missing__(self, char: str) -> str:
        self[char] = form = " " if char.isspace() else normalize("NFD", char)
        return form


class _Kinds(dict[str, CharKind]):
    def __missing__(self, char: str) -> CharKind:
        self[char] = kind = _kind(char)
        return kind


def _kind(char: str) -> CharKind:
    if category(char).startswith("M"):
        return CharKind.ACCENT
    return CharKind.WORD if char.isalnum() and not SPACELESS.match(char) else CharKind.OTHER


FORMS = _Forms(
    {
        **dict.fromkeys(QUOTES, QUOTE),
        **dict.fromkeys(DASHES, DASH),
        **dict.fromkeys(UNSEEN, ""),
        **LIGATURES,
        "…": "...",
    }
)
KINDS = _Kinds(dict.fromkeys(JOINTS.values(), CharKind.WORD))


class QuotableText:
    """A text to find quotes in, folded once."""

    def __init__(self, text: str) -> None:
        self._folded, self._places = _fold(text)

    def find(self, quote: str) -> Span | None:
        """Return the first span of the quote; for one shortened in the middle, from its first part to its last."""
        for form in _tidied(quote):
            span = self._whole(form) or self._shortened(form)
            if span:
                return span
        return None

    def evidence(self, quote: str, title: str = "") -> Evidence:
        """Look a quote up; if a title is given, there too."""
        start, end = self.find(quote) or (None, None)
        in_title = start is None and bool(title) and QuotableText(title).find(quote) is not None
        return Evidence(quote, start, end, in_title)

    def _whole(self, quote: str) -> Span | None:
        wanted = _fold(quote)[0]
        if not _words(wanted):
            return None
        at = self._folded.find(wanted)
        return None if at < 0 else self._span(at, at + len(wanted))

    def _shortened(self, quote: str) -> Span | None:
        parts = [_fold(part)[0] for part in ELLIPSIS.split(quote)]
        parts = [part for part in parts if part != EDGE]
        if not 1 <= len(parts) <= MOST_PARTS or any(_words(part) < LEAST_WORDS for part in parts):
            return None
        for start in islice(self._occurrences(parts[0]), MOST_TRIES):
            end = self._follow(parts[1:], start + len(parts[0]))
            if end:
                return self._span(start, end)
        return None

    def _occurrences(self, part: str) -> Iterator[int]:
        at = self._folded.find(part)
        while at >= 0:
            yield at
            at = self._folded.find(part, at + 1)

    def _follow(self, parts: list[str], end: int) -> int | None:
        """Return where the last part ends, if each follows closely on the one before it."""
        for part in parts:
            at = self._folded.find(part, end - 1, end + MOST_GAP + len(part))
            if at < 0:
                return None
            end = at + len(part)
        return end

    def _span(self, start: int, end: int) -> Span:
        """Translate a folded span. Its first and last characters are edges, which don't count."""
        return self._places[start + 1], self._places[end - 2] + 1


def _tidied(quote: str) -> Iterator[str]:
    """Yield the quote as it is, then without quotation marks around it, then without a final period."""
    bare = quote.strip(AROUND)
    yield quote
    if bare != quote:
        yield bare
    if bare.endswith(tuple(PERIODS)):
        yield bare.rstrip(PERIODS).rstrip(AROUND)


def _words(folded: str) -> int:
    return sum(any(map(str.isalnum, word)) for word in folded.split(EDGE))


def _fold(text: str) -> tuple[str, list[int]]:
    """Return the folded text, and for each of its characters the index of the one it comes from."""
    folded = [EDGE]
    places = [0]
    kind = CharKind.OTHER
    for char, place in _formed(text):
        following = KINDS[char]
        held = following is CharKind.ACCENT or (following is CharKind.WORD and kind is not CharKind.OTHER)
        if not held and len(folded) > 1:
            folded.append(EDGE)
            places.append(place)
        folded.append(char)
        places.append(place)
        kind = following
    if len(folded) > 1:
        folded.append(EDGE)
        places.append(len(text))
    return "".join(folded), places


def _formed(text: str) -> Iterator[tuple[str, int]]:
    """Yield the folded characters without edges. White space counts once, and not beside a quotation mark, where
    languages differ. A run of dashes counts as one."""
    last = QUOTE
    space: int | None = None
    for at, char in enumerate(text):
        form = FORMS[char]
        if form == " ":
            space = at if space is None else space
            continue
        if not form or (form == last == DASH and space is None):
            continue
        if space is not None and QUOTE not in {last, form}:
            yield " ", space
        if form in JOINTS and _joins(text, at, form):
            form = JOINTS[form]
        for piece in form:
            yield piece, at
        last, space = form[-1], None


def _joins(text: str, at: int, form: str) -> bool:
    """Whether a mark belongs to a word: an apostrophe between letters, a point or comma between digits, a minus sign
    before a number."""
    before, after = text[at - 1 : at] or " ", text[at + 1 : at + 2] or " "
    if form == QUOTE:
        return KINDS[before] is not CharKind.OTHER and KINDS[after] is CharKind.WORD
    if form == DASH:
        return after.isdigit() and before.isspace()
    return before.isdigit() and after.isdigit()
