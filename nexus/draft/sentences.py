"""Splits a text into sentences, in languages with and without spaces between words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int]

#: Longer ones are cut between words: a list, a poem, or a script that ends sentences with a space.
LONGEST = 400

SPACE = re.compile(r"\s+")
STOPS = ".!?…‼⁇؟۔।॥።"
#: No space follows these. The same is true of the stops of Khmer and Burmese.
WIDE_STOPS = "。！？｡"
CLOSING = "\"'”’»›)\\]」』）］】*_"
#: The end of a sentence, if what follows allows it. Possessive, so that a text of nothing but stops takes linear time.
STOP = re.compile(
    rf"(?<![{STOPS}])[{STOPS}]++(?:[\u00a0\u202f]»)?[{CLOSING}]*+(?=\s|\Z)|[{WIDE_STOPS}][{WIDE_STOPS}…{CLOSING}]*+|[។။]"
)
OPENING = "\"'“‘„«‹([¿¡「『（［【-–—*_"
LAST_WORD = re.compile(r"[\w.]+\Z")
INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
ORDINAL = re.compile(r"\d{1,2}")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: A period after these does not end a sentence. In lower case, without the period.
ABBREVIATIONS = _set(
    "mr mrs ms dr prof st sr jr rev hon gov sen rep gen maj capt cmdr lt sgt messrs mt viz cf approx dept inc ltd corp "
    "bros jan feb apr jun jul aug sept oct nov i.e e.g a.m p.m ph.d vs al "
    "hr hrn bzw ca ggf inkl evtl sog vgl zzgl dipl ing mio mrd tsd z.b d.h u.a o.ä i.d.r "
    "mme mlle mgr env éd sra srta dra uds avda págs núm ee.uu sigg dott prof.ssa "
    "dhr mevr drs bijv blz o.a d.w.z г гг ул т.е т.д т.п т.к тыс млн млрд руб проф стр рис tzn inż tzv např"
)
#: The same, but only before a number: otherwise they are words that may end a sentence.
NUMBERED = _set("no nos nr art fig figs ch sec p pp vol vols ed mar dec abs bd str pág см ст")


def split_sentences(text: str) -> list[Span]:
    """Return the span of each sentence, in reading order, without the white space around it."""
    return [
        span
        for start, end in _paragraphs(text)
        for sentence in _sentences(text, start, end)
        for span in _short(text, *sentence)
    ]


def _paragraphs(text: str) -> Iterator[Span]:
    """Yield the paragraphs. One ends at a blank line, or at the end of a line if the next is not in lower case."""
    breaks = [found.span() for found in SPACE.finditer(text) if _parts(text, found)]
    for (_, start), (end, _) in pairwise([(0, 0), *breaks, (len(text), len(text))]):
        yield start, end


def _parts(text: str, space: re.Match[str]) -> bool:
    lines = space[0].count("\n")
    return lines > 1 or (lines == 1 and not text[space.end() : space.end() + 1].islower())


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    for stop in STOP.finditer(text, start, end):
        if _ends(text, start, stop):
            yield start, stop.end()
            start = stop.end()
    yield start, end


def _ends(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a sentence ends here: not before a lower-case letter, and not after an abbreviation."""
    following = text[stop.end() : stop.end() + 8].lstrip().lstrip(OPENING)[:1]
    if following.islower():
        return False
    return stop[0] != "." or not _abbreviates(text[max(start, stop.start() - 20) : stop.start()], following)


def _abbreviates(before: str, following: str) -> bool:
    found = LAST_WORD.search(before)
    word = found[0].lower() if found else ""
    if word in ABBREVIATIONS or (word in NUMBERED and following.isdigit()):
        return True
    return bool(INITIALS.fullmatch(word) or ORDINAL.fullmatch(word))


def _short(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the span without the white space around it, in pieces if it is too long."""
    while True:
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        end = start + len(piece.strip())
        if end - start <= LONGEST:
            break
        cut = _last_space(text, start, start + LONGEST)
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def _last_space(text: str, start: int, end: int) -> int:
    """Return where the last white space before the end begins, or the end if the second half has none."""
    spaces = [found.start() for found in SPACE.finditer(text, start + LONGEST // 2, end)]
    return spaces[-1] if spaces else end
