"""Reads the numbers in a text: 1,000 and 1.000 and "a thousand", 5 %, 21st, 2099-03-05, 三千."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

#: Spaces that group digits.
_GAPS = " \u00a0\u202f\u2009"
_DATE = r"(?P<date>\d{1,4}(?P<sep>[-./])\d{1,2}(?P=sep)\d{1,4}(?!\d))"
_GROUPED = rf"\d{{1,3}}(?P<gap>[.,'’{_GAPS}])\d{{3}}(?:(?P=gap)\d{{3}})*(?:[.,]\d+)?(?!\d)"
_FIGURE = re.compile(
    rf"(?<![A-Za-z\u00c0-\u024f\d])(?:{_DATE}"
    rf"|(?P<number>{_GROUPED}|\d+(?:[.,]\d+)?)(?:(?P<short>k|m|mn|bn|tn)(?![A-Za-z]))?)"
)
_AFTER = re.compile(rf"[{_GAPS}-]?([^\W\d_]+)")
_ENDING = re.compile(r"(?:st|nd|rd|th)\b")
#: In front of a word that multiplies a figure, and not a number of its own.
_AFTER_FIGURE = re.compile(rf"\d[{_GAPS}-]?\Z")
_PERCENT = re.compile(
    rf"[{_GAPS}]?(?:[%٪％]|(?:percent|per[ -]cent|prozent|pour[ -]cent|por[ -]ciento|percento|процент)\w*)",
    re.IGNORECASE,
)
#: A range or a pair, whose first number shares what follows the second: "5 to 6 million", "5–6 %".
_PAIR = re.compile(rf"[{_GAPS}]?(?:[-–—]|to|and|or|bis|und|à|et|y|a|до|и)[{_GAPS}]?\Z", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]+", re.IGNORECASE)
_HAN = re.compile("[〇零一二三四五六七八九十百千万萬億亿]{2,}")


def _list(words: str) -> list[str]:
    return words.split()


_SMALL = _list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = _list("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS = _list(
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_UNITS = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: value for value, word in enumerate(_ORDINALS)},
    **{word: 20 + 10 * place for place, word in enumerate(_TENS)},
    **{f"{word[:-1]}ieth": 20 + 10 * place for place, word in enumerate(_TENS)},
}
_HUNDREDS = {"hundred": 100, "hundredth": 100, "dozen": 12}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
#: Words that mean a number, but that nobody need have written as one.
_ALSO = {"both": 2, "couple": 2, "pair": 2, "twice": 2, "double": 2, "half": 50, "quarter": 25, "once": 1}
#: Often no numbers: "one of them", "a second".
_VAGUE = frozenset({"one", "first", "second", "zero", *_ALSO})
#: What multiplies the number before it, in the languages that most articles are in.
_MULTIPLIERS = {
    **_HUNDREDS,
    **_SCALES,
    **dict.fromkeys(
        _list("millions millionen mio millones milhões milioni млн миллион миллиона миллионов"), 10**6
    ),
    **dict.fromkeys(
        _list("billions milliarden mrd milliard milliards miliardi млрд миллиард миллиардов"), 10**9
    ),
    **dict.fromkeys(_list("thousands tausend tsd mille mil mila тыс тысяча тысячи тысяч"), 10**3),
}
_SHORT = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9, "tn": 10**12}
_HAN_DIGITS = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_HAN_SCALES = {"万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8}

#: In lower case, without accents: English, German, French, Spanish, Italian, Dutch, Portuguese, Russian.
_MONTH_NAMES = (
    "january jan januar janner janvier enero gennaio januari janeiro январь января",
    "february feb februar fevrier febrero febbraio februari fevereiro февраль февраля",
    "march mar marz mars marzo maart marco март марта",
    "april apr avril abril aprile апрель апреля",
    "may mai mayo maggio mei maio май мая",
    "june jun juni juin junio giugno junho июнь июня",
    "july jul juli juillet julio luglio julho июль июля",
    "august aug aout agosto augustus август августа",
    "september sep sept septembre septiembre settembre setembro сентябрь сентября",
    "october oct oktober okt octobre octubre ottobre outubro октябрь октября",
    "november nov novembre noviembre novembro ноябрь ноября",
    "december dec dezember dez decembre diciembre dicembre dezembro декабрь декабря",
)
MONTHS = {word: number for number, names in enumerate(_MONTH_NAMES, 1) for word in names.split()}
#: Also other words, or names.
UNSURE_MONTHS = frozenset(_list("may march mar mars mai mei maio jan april june dec sep marco"))


@dataclass(frozen=True)
class Number:
    """A number in a text, with every value that it may stand for: 1.000 is one or a thousand."""

    start: int
    written: str
    values: frozenset[Decimal]
    is_percent: bool = False
    #: May be no number at all.
    is_vague: bool = False
    #: The months that it may stand for, as a part of a date.
    months: frozenset[int] = frozenset()


def read_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text, whose digits are 0 to 9."""
    yield from _figures(text)
    yield from _spelled(text)
    for found in _HAN.finditer(text):
        yield Number(found.start(), found.group(), frozenset({_han(found.group())}))


def _figures(text: str) -> Iterator[Number]:
    """From the end on, because a range shares what follows its second number: "5 to 6 million", "2019–20"."""
    numbers: list[Number] = []
    later: tuple[re.Match[str], _Following] | None = None
    for found in reversed(list(_FIGURE.finditer(text))):
        if found["date"]:
            numbers.extend(_date(found.start(), found["date"]))
            later = None
            continue
        following = _following(text, found)
        if later and _PAIR.fullmatch(text[found.end() : later[0].start()]):
            following = later[1] if following == _Following() else following
            numbers.extend(_years(found, later[0]))
        numbers.append(_number(found, following))
        later = found, following
    yield from reversed(numbers)


class _Following(NamedTuple):
    """What stands behind a number, and what it makes of it."""

    written: str = ""
    multiplier: int = 1
    is_percent: bool = False


def _following(text: str, found: re.Match[str]) -> _Following:
    if _PERCENT.match(text, found.end()):
        return _Following("%", is_percent=True)
    if ending := _ENDING.match(text, found.end()):
        return _Following(ending.group())
    word = _AFTER.match(text, found.end())
    multiplier = word and (_MULTIPLIERS.get(word[1].lower()) or _HAN_SCALES.get(word[1][0]))
    return _Following(word.group(), multiplier) if word and multiplier else _Following()


def _years(first: re.Match[str], last: re.Match[str]) -> Iterator[Number]:
    """The second year of 2019–20, in full, beside the short one."""
    if len(first.group()) == 4 and len(last.group()) == 2 and (first.group() + last.group()).isdigit():
        year = Decimal(first.group()[:2] + last.group())
        yield Number(last.start(), last.group(), frozenset({year, Decimal(last.group())}), is_vague=True)


def _number(found: re.Match[str], following: _Following) -> Number:
    values = {value * following.multiplier for value in _readings(found["number"], found["gap"])}
    if found["short"]:
        values |= {value * _SHORT[found["short"]] for value in values}
    is_month = found.string[found.end() : found.end() + 1] == "月"
    return Number(
        found.start(),
        found.group() + following.written,
        frozenset(values),
        following.is_percent,
        months=frozenset({int(found.group())} if is_month and found.group().isdigit() else ()),
    )


def _readings(written: str, gap: str | None) -> set[Decimal]:
    """A single comma or point before three digits may group them, or begin the decimals."""
    whole = written if gap is None else written.replace(gap, "")
    readings = {Decimal(whole.replace(",", "."))}
    if gap is not None and gap in ".," and whole.isdigit() and written.count(gap) == 1:
        readings.add(Decimal(written.replace(",", ".")))
    return readings


def _date(start: int, written: str) -> Iterator[Number]:
    """Each part of a date. Which of two small ones is the month, nobody knows."""
    for part in re.finditer(r"\d+", written):
        value = int(part.group())
        months = frozenset({value}) if 1 <= value <= 12 else frozenset[int]()
        century = {Decimal(1900 + value), Decimal(2000 + value)} if len(part.group()) == 2 else set[Decimal]()
        yield Number(start, written, frozenset({Decimal(value), *century}), months=months)


def _spelled(text: str) -> Iterator[Number]:
    """Numbers in English words: "twenty-five thousand", "a dozen", "the third"."""
    run: list[re.Match[str]] = []
    for word in _WORDS.finditer(text):
        if not _is_number_word(word.group().lower()) or _AFTER_FIGURE.search(
            text, max(0, word.start() - 2), word.start()
        ):
            continue
        if run and not _goes_on(text, run[-1], word):
            yield _value_of(text, run)
            run = []
        run.append(word)
    if run:
        yield _value_of(text, run)


def _goes_on(text: str, last: re.Match[str], word: re.Match[str]) -> bool:
    between = text[last.end() : word.start()]
    is_large = last.group().lower() in {**_HUNDREDS, **_SCALES}
    return between in {" ", "-"} or (between == " and " and is_large)


def _is_number_word(word: str) -> bool:
    return word in _UNITS or word in _HUNDREDS or word in _SCALES or word in _ALSO


def _value_of(text: str, run: list[re.Match[str]]) -> Number:
    words = [word.group().lower() for word in run]
    total = current = 0
    for word in words:
        if word in _HUNDREDS:
            current = max(current, 1) * _HUNDREDS[word]
        elif word in _SCALES:
            total, current = total + max(current, 1) * _SCALES[word], 0
        else:
            current += _UNITS.get(word, _ALSO.get(word, 0))
    start, end = run[0].start(), run[-1].end()
    is_percent = bool(_PERCENT.match(text, end)) or words[-1] in {"half", "quarter"}
    is_vague = len(words) == 1 and words[0] in _VAGUE and not _PERCENT.match(text, end)
    return Number(start, text[start:end], frozenset({Decimal(total + current)}), is_percent, is_vague)


def _han(written: str) -> Decimal:
    """A number in Chinese characters, digit by digit (二〇九九) or with its units (三千五百)."""
    if all(char in _HAN_DIGITS for char in written):
        return Decimal("".join(str(_HAN_DIGITS[char]) for char in written))
    total = section = digit = 0
    for char in written:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
        elif char in _HAN_UNITS:
            section, digit = section + (digit or 1) * _HAN_UNITS[char], 0
        else:
            total, section, digit = (total + section + digit or 1) * _HAN_SCALES[char], 0, 0
    return Decimal(total + section + digit)
