"""Finds the numbers, dates and names that a text says and its quotes don't.

It knows no languages and no world: it compares what is written. Numbers are compared by value, however they are
written, dates by their parts, and names by their words. What it points out is for a person to check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from unicodedata import category, decimal, normalize

from nexus.draft.numerals import MONTHS, UNSURE_MONTHS, Number, read_numbers

#: How many facts are pointed out for one text.
MOST = 5
#: Texts whose facts are remembered: lists of stories ask for the same ones again and again.
REMEMBERED = 4096


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


WORD = re.compile(r"[^\W\d_](?:\w|[.'’-](?=\w))*")
OPENING = "\"'“‘„«‹「『(["
#: What a sentence ends with, or a heading in front of one.
STOPS = ".!?…:;。！？؟।—–•\n"
#: Titles before a name: a period after them ends no sentence, and they say nothing that has to be checked.
TITLES = _set("mr mrs ms dr prof sir st hr fr mme mlle sr sra г")
#: Words that stay in lower case in a headline whose other words are all capitalised.
SMALL = _set(
    "a an the and or but nor for of in on at to by as up off via with from into over after amid than per vs is are"
)
#: Words of German, which begins every noun with a capital. Two of them are not an accident.
GERMAN = _set(
    "der die das und ist ein eine den dem des mit von für auf im zu nicht wurde hat sind sich auch bei nach"
)


@lru_cache(REMEMBERED)
def missing_facts(text: str, quotes: tuple[str, ...]) -> tuple[str, ...]:
    """Return, as they are written, the facts of a text that none of its quotes has."""
    text, source = normalize("NFC", text), _Source.of([normalize("NFC", quote) for quote in quotes])
    found = [(fact.start, fact.written) for fact in _figures(text) if not source.has_figure(fact)]
    found += [(name.start, name.written) for name in _missing_names(text, source)]
    return tuple(dict.fromkeys(written for _, written in sorted(found)))[:MOST]


@dataclass(frozen=True)
class _Month:
    start: int
    written: str
    number: int


@dataclass(frozen=True)
class _Word:
    start: int
    written: str
    is_start: bool

    @property
    def is_capital(self) -> bool:
        """Also a word like NATO or iPhone, which has a capital that no sentence gives it."""
        return self.written[0].isupper() or any(map(str.isupper, self.written[1:]))

    @property
    def folded(self) -> list[str]:
        return [_folded(part) for part in self.written.split("-") if part]


@dataclass(frozen=True)
class _Source:
    """What quotes say."""

    values: frozenset[object]
    has_percent: bool
    months: frozenset[int]
    words: frozenset[str]
    acronyms: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, quotes: Sequence[str]) -> _Source:
        text = "\n".join(quotes)
        numbers = list(read_numbers(_western(text)))
        words = list(_words(text))
        return cls(
            frozenset(value for number in numbers for value in number.values),
            any(number.is_percent for number in numbers),
            frozenset(
                {month.number for month in _months(text)}.union(*(number.months for number in numbers))
            ),
            frozenset(folded for word in words for folded in word.folded),
            frozenset(_initials(run) for run in _runs(words)),
        )

    def has_figure(self, fact: Number | _Month) -> bool:
        if isinstance(fact, _Month):
            return fact.number in self.months
        if fact.is_percent and not self.has_percent:
            return False
        return not fact.values.isdisjoint(self.values) or not fact.months.isdisjoint(self.months)

    def has_word(self, word: _Word) -> bool:
        return all(self._has(folded) for folded in word.folded) or _folded(word.written) in self.acronyms

    def _has(self, word: str) -> bool:
        """Names get an s, and an ending of another kind in languages that decline them."""
        if self.words & {word, word.removesuffix("s"), f"{word}s"}:
            return True
        is_declined = len(word) > 4 and "\u0370" <= word[0] <= "\u052f"
        return is_declined and any(other.startswith(word[:-2]) for other in self.words)


def _figures(text: str) -> Iterator[Number | _Month]:
    """Yield the numbers that have to be checked, and the months. "One" and "first" are often no numbers."""
    yield from (number for number in read_numbers(_western(text)) if not number.is_vague)
    yield from _months(text)


def _western(text: str) -> str:
    """The same text, with the digits of every script as 0 to 9."""
    return "".join(char if char.isascii() else str(decimal(char, char)) for char in text)


def _months(text: str) -> Iterator[_Month]:
    for word in _words(text):
        number = MONTHS.get(_folded(word.written))
        if number and _is_month(word, text):
            yield _Month(word.start, word.written, number)


def _is_month(word: _Word, text: str) -> bool:
    """May, march and mars are other words too, unless a number stands beside them or they are capitalised."""
    if _folded(word.written) not in UNSURE_MONTHS or (word.written[0].isupper() and not word.is_start):
        return True
    around = text[: word.start].rstrip(" .")[-1:] + text[word.start + len(word.written) :].lstrip(" ,.")[:1]
    return any(map(str.isdigit, around))


# ── Names: capitalised words that no sentence begins with ──


def _missing_names(text: str, source: _Source) -> Iterator[_Word]:
    words = list(_words(text))
    if _is_title_case(words):
        return
    least = 2 if len(GERMAN & {word.written for word in words}) > 1 else 1
    for run in _runs(words):
        if len(run) < least or _initials(run) in source.words:
            continue
        for is_missing, some in groupby(run, lambda word: not source.has_word(word)):
            if is_missing:
                missing = list(some)
                yield _Word(missing[0].start, " ".join(word.written for word in missing), False)


def _runs(words: list[_Word]) -> Iterator[list[_Word]]:
    """Yield the names: capitalised words that follow one another."""
    for is_name, run in groupby(words, _is_name):
        if is_name:
            yield list(run)


def _is_name(word: _Word) -> bool:
    folded = _folded(word.written)
    if folded in TITLES or folded in MONTHS or folded == "i" or word.written.startswith(("I'", "I’")):
        return False
    return word.is_capital and (not word.is_start or any(map(str.isupper, word.written[1:])))


def _is_title_case(words: list[_Word]) -> bool:
    """Whether all words of a headline are capitalised, so that capitals say nothing."""
    large = [word for word in words if word.written.lower() not in SMALL]
    return len(large) > 1 and all(word.is_capital for word in large)


def _initials(run: list[_Word]) -> str:
    return "".join(_folded(word.written)[:1] for word in run) if len(run) > 1 else ""


def _words(text: str) -> Iterator[_Word]:
    for found in WORD.finditer(text):
        yield _Word(found.start(), found.group(), _begins_sentence(text, found.start()))


def _begins_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t\u00a0\u202f" + OPENING)
    if not before or text[start - 1] in OPENING:
        return True
    if before[-1] != ".":
        return before[-1] in STOPS
    last = before[:-1].rpartition(" ")[2].strip(OPENING).casefold()
    return last not in TITLES and len(last) > 1


def _folded(word: str) -> str:
    plain = "".join(char for char in normalize("NFD", word) if category(char) != "Mn")
    return re.sub(r"['’](?:s)?$|\.", "", plain.casefold())
