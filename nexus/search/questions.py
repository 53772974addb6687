"""Reads what a user types into a search box. Nothing typed is an error: whatever is not understood counts as words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from nexus.search.analysis import split_words

#: How many characters of a question are read.
LONGEST_QUESTION = 1000
#: How many words, phrases and filters of it.
MOST_PARTS = 64

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»＂", '"'))
_PART = re.compile(
    r'(?P<minus>-?)(?:(?P<field>in|kind|site|by|before|after):)?(?:"(?P<quoted>[^"]*)"?|(?P<bare>[^\s"]+))',
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")

_SAYING_NOTHING = """
a about all also an and any are as at be been but by can could did do does for from had has have he her his how i if in
into is it its may me more most my no nor not of on one or other our out s shall she should so some such t than that the
their them then there these they this those to under up us was we were what when where which who whom why will with
would you your
"""
#: Words that say nothing about what is looked for. They count inside phrases.
STOP_WORDS = frozenset(_SAYING_NOTHING.split())


@dataclass(frozen=True)
class Filters:
    """What a question asks of items, as it was typed. If a filter has several values, any will do."""

    libraries: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    bylines: tuple[str, ...] = ()
    #: Published before this day, and on this day or later.
    before: date | None = None
    after: date | None = None


@dataclass(frozen=True)
class Question:
    """What a user wants to find. Phrases have to occur in an item; what is excluded must not."""

    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    filters: Filters = Filters()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look for, apart from filters and what is excluded."""
        return not (self.words or self.phrases)

    @property
    def meaning(self) -> str:
        """The question as a sentence, for a model that looks for what it means."""
        return " ".join((*self.phrases, *self.words))


def parse_question(typed: str) -> Question:
    """Read words, "phrases", -excluded ones, and the filters in: kind: site: by: before: after:."""
    reading = _Reading()
    plain = typed[:LONGEST_QUESTION].translate(_QUOTES).replace("\0", " ")
    for number, part in enumerate(_PART.finditer(plain)):
        if number == MOST_PARTS:
            break
        reading.take(part)
    return reading.question()


class _Reading:
    def __init__(self) -> None:
        self._words: list[str] = []
        self._phrases: list[str] = []
        self._excluded: list[str] = []
        self._values: dict[str, list[str]] = {name: [] for name in ("in", "kind", "site", "by")}
        self._days: dict[str, date] = {}

    def take(self, part: re.Match[str]) -> None:
        quoted = part["quoted"]
        value = (part["bare"] if quoted is None else quoted).strip()
        field = (part["field"] or "").lower()
        if field and not part["minus"] and self._is_filter(field, value):
            return
        text = f"{part['field']} {value}" if field else value
        if not split_words(text):
            return
        if part["minus"]:
            self._excluded.append(text)
        elif quoted is not None and not field:
            self._phrases.append(text)
        else:
            self._words.append(text)

    def _is_filter(self, field: str, value: str) -> bool:
        if field in {"before", "after"}:
            day = parse_day(value)
            if day is not None:
                self._days[field] = day
            return day is not None
        if value:
            self._values[field].append(value)
        return bool(value)

    def question(self) -> Question:
        telling = [word for word in self._words if any(part not in STOP_WORDS for part in split_words(word))]
        return Question(
            words=tuple(telling if telling or self._phrases else self._words),
            phrases=tuple(self._phrases),
            excluded=tuple(self._excluded),
            filters=Filters(
                libraries=tuple(self._values["in"]),
                kinds=tuple(kind.lower() for kind in self._values["kind"]),
                sites=tuple(self._values["site"]),
                bylines=tuple(self._values["by"]),
                before=self._days.get("before"),
                after=self._days.get("after"),
            ),
        )


def parse_day(value: str) -> date | None:
    """Return the first day of a year, a month or a day, written as in ISO 8601; None for anything else."""
    found = _DATE.fullmatch(value)
    if found is None or not found[0].isascii():
        return None
    try:
        return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        return None
