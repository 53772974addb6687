"""Cues in order: cleaned, and joined as long as the same person goes on speaking."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, zip_longest

from nexus.draft.sentences import STOPS, WIDE_STOPS, split_sentences
from nexus.extract import TimeSpan
from nexus.transcribe import UNTIMED, Cue

#: Longer than any recording. Later moments are mistakes.
LATEST_MS = 1000 * 3600 * 1000
#: Nobody continues a sentence after such a silence.
LONG_PAUSE_MS = 4000
#: A turn ends with a sentence once it is this long, and anywhere once it is twice as long.
LONG_TURN = 8000
#: Cues are lines on a screen. Anything longer is cut between words, and its time with it.
LONGEST_CUE = 1000
LONGEST_NAME = 80
#: Times are kept for sentences. A longer one is cut where a cue ends.
LONGEST_SPAN = 240

_DIRT = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff\ud800-\udfff]+"
)
#: Scripts without spaces between words.
_WIDE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]"
)
_ENDED = re.compile(rf"[{STOPS}{WIDE_STOPS}][\"'”’»)\]]*\Z")


@dataclass(frozen=True)
class SpokenTurn:
    """What one person says without a long pause: its text, and the place and time of each cue in it."""

    speaker: str | None
    text: str
    cues: tuple[TimeSpan, ...]

    @property
    def is_timed(self) -> bool:
        return self.cues[0].starts_ms != UNTIMED

    def sentences(self) -> list[TimeSpan]:
        """Return its sentences in order. A sentence that begins within a cue gets its share of the time."""
        starts = [cue.start for cue in self.cues]
        ends = [cue.end for cue in self.cues]
        spans = (piece for span in split_sentences(self.text) for piece in self._cut(span, ends))
        return [self._timed(start, end, starts) for start, end in spans]

    def _cut(self, span: tuple[int, int], ends: list[int]) -> Iterator[tuple[int, int]]:
        start, end = span
        while end - start > LONGEST_SPAN:
            place = bisect_right(ends, start + LONGEST_SPAN) - 1
            if place < 0 or ends[place] <= start:
                break
            yield start, ends[place]
            start = ends[place]
            start += self.text[start : start + 1] == " "
        if start < end:
            yield start, end

    def _timed(self, start: int, end: int, starts: list[int]) -> TimeSpan:
        first = self.cues[bisect_right(starts, start) - 1]
        last = self.cues[bisect_right(starts, end - 1) - 1]
        if not self.is_timed:
            return TimeSpan(start, end, UNTIMED, UNTIMED)
        begins = _moment(first, start)
        return TimeSpan(start, end, begins, max(begins, _moment(last, end)))


def _moment(cue: TimeSpan, place: int) -> int:
    share = min(1.0, (place - cue.start) / (cue.end - cue.start))
    return cue.starts_ms + round(share * (cue.ends_ms - cue.starts_ms))


def put_in_order(cues: Iterable[Cue]) -> list[Cue]:
    """Return cues that have a text, in the order of their times; none goes on after the next one has begun.

    Either all of them have times or none has.
    """
    cleaned = [piece for cue in cues for piece in _cut_long(_clean(cue)) if piece.text]
    without = sum(cue.starts_ms == UNTIMED for cue in cleaned)
    if without > len(cleaned) // 2:
        return [cue._replace(starts_ms=UNTIMED, ends_ms=UNTIMED) for cue in cleaned]
    if without:
        cleaned = list(_filled_in(cleaned))
    cleaned.sort(key=lambda cue: cue.starts_ms)
    return list(_one_after_another(cleaned))


def _one_after_another(cues: list[Cue]) -> Iterator[Cue]:
    """End each cue when the next begins. Cues that begin together share their time by their lengths."""
    together = [list(group) for _, group in groupby(cues, key=lambda cue: cue.starts_ms)]
    for group, following in zip_longest(together, together[1:]):
        starts, ends = group[0].starts_ms, max(cue.ends_ms for cue in group)
        ends = min(ends, following[0].starts_ms) if following else ends
        whole = TimeSpan(0, sum(len(cue.text) for cue in group), starts, ends)
        place = 0
        for cue in group:
            after = place + len(cue.text)
            yield cue._replace(starts_ms=_moment(whole, place), ends_ms=_moment(whole, after))
            place = after


def _filled_in(cues: Iterable[Cue]) -> Iterator[Cue]:
    """A few cues without times among others get the moment when the one before ends."""
    before = 0
    for cue in cues:
        if cue.starts_ms == UNTIMED:
            yield cue._replace(starts_ms=before, ends_ms=before)
        else:
            yield cue
            before = cue.ends_ms


def take_turns(cues: Iterable[Cue]) -> Iterator[SpokenTurn]:
    """Join cues in order into turns. Without times, each cue is a turn of its own."""
    turn: list[Cue] = []
    length = 0
    for cue in cues:
        if turn and _ends_before(cue, turn[-1], length):
            yield _join(turn)
            turn, length = [], 0
        turn.append(cue)
        length += len(cue.text)
    if turn:
        yield _join(turn)


def _ends_before(cue: Cue, last: Cue, length: int) -> bool:
    if cue.starts_ms == UNTIMED or cue.speaker != last.speaker:
        return True
    if cue.starts_ms - last.ends_ms >= LONG_PAUSE_MS:
        return True
    return length > LONG_TURN and (_ENDED.search(last.text) is not None or length > 2 * LONG_TURN)


def _join(turn: list[Cue]) -> SpokenTurn:
    pieces, spans, length = list[str](), list[TimeSpan](), 0
    for cue in turn:
        gap = " " if pieces and not (_WIDE.match(cue.text) and _WIDE.match(pieces[-1][-1])) else ""
        pieces.append(gap + cue.text)
        start, length = length + len(gap), length + len(gap) + len(cue.text)
        spans.append(TimeSpan(start, length, cue.starts_ms, cue.ends_ms))
    return SpokenTurn(turn[0].speaker, "".join(pieces), tuple(spans))


def _clean(cue: Cue) -> Cue:
    text = tidy(cue.text)
    speaker = tidy(cue.speaker or "")[:LONGEST_NAME].strip(" :") or None
    if cue.starts_ms == UNTIMED:
        return Cue(UNTIMED, UNTIMED, text, speaker)
    starts = min(max(cue.starts_ms, 0), LATEST_MS)
    return Cue(starts, min(max(cue.ends_ms, starts), LATEST_MS), text, speaker)


def tidy(text: str) -> str:
    """Return a text on one line, without characters that nobody sees."""
    return " ".join(_DIRT.sub(" ", text).split())


def _cut_long(cue: Cue) -> Iterator[Cue]:
    """Cut a cue that is too long between words."""
    timed = cue.starts_ms != UNTIMED
    most = LONGEST_CUE if timed else LONG_TURN
    if len(cue.text) <= most:
        yield cue
        return
    whole = TimeSpan(0, len(cue.text), cue.starts_ms, cue.ends_ms)
    start = 0
    while start < len(cue.text):
        end = min(start + most, len(cue.text))
        if end < len(cue.text) and (space := cue.text.rfind(" ", start + most // 2, end)) > 0:
            end = space
        begins, stops = (_moment(whole, start), _moment(whole, end)) if timed else (UNTIMED, UNTIMED)
        yield Cue(begins, stops, cue.text[start:end].strip(), cue.speaker)
        start = end
