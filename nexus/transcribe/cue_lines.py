"""Reads WebVTT and SRT, as they should be and as they are found.

One pass over the lines reads both. A line with an arrow between two clocks begins a cue, and an empty line ends its
text; whatever can't be understood costs a cue its time or its place on the screen, but never its words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import pairwise

from nexus.transcribe import UNTIMED, Cue, Transcript
from nexus.transcribe.moments import CLOCK, clock_ms

_ARROW = re.compile(r"-->?|->|[–—]>|→")
_TIMING = re.compile(rf"\s*({CLOCK})\s*(?:{_ARROW.pattern})\s*({CLOCK})", re.ASCII)
#: A line that was meant to be a timing.
_BROKEN = re.compile(rf"\s*(?:-?[\w.,]{{0,9}} ?:[\w.,: ]{{0,30}}\s*)?(?:-->|->|[–—]>|--\s*{CLOCK})")
_LONGEST_TIMING = 400
_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|\Z)")
_LANGUAGE = re.compile(r"Language:\s*([A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*)\s*\Z")
_NUMBER = re.compile(r"\s*\d{1,12}\s*", re.ASCII)
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?(?:[ \t]++([^<>]*))?>|(</v>)")
_TAG = re.compile(
    r"</?(?:c|i|b|u|s|v|ruby|rt|rb|lang|font|span|em|strong|br|p|div)(?=[\s.>/])[^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}",
    re.IGNORECASE,
)
#: `Ann Lee: Good morning.`
_LABEL = re.compile(r"([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30}){0,3}):\s+(?=\S)")
#: A name that appears only once may be any word before a colon.
_TIMES_NAMED = 2


@dataclass
class _Spoken:
    """A cue while its lines are read."""

    starts_ms: int
    ends_ms: int
    lines: list[str] = field(default_factory=list)
    speaker: str | None = None


def has_timings(text: str) -> bool:
    """Whether a line of a text says when a cue begins and ends."""
    return any(
        _timing(line) is not None for line in text.split("\n") if _ARROW.search(line[:_LONGEST_TIMING])
    )


def read_cue_lines(text: str) -> Transcript | None:
    """Read WebVTT or SRT, with lines that end with a line feed. None if no line of it says when a cue begins."""
    if not has_timings(text):
        return None
    lines = text.split("\n")
    is_vtt = lines[0].startswith("WEBVTT")
    spoken = [one for cue in _cues(lines, is_vtt) for one in _voices(cue)]
    spoken = _unrolled(spoken)
    cues = [Cue(one.starts_ms, one.ends_ms, " ".join(one.lines), one.speaker) for one in spoken if one.lines]
    if not any(cue.speaker for cue in cues):
        cues = _labelled(cues)
    return Transcript(tuple(cues), language=_language(lines) if is_vtt else None)


def _timing(line: str) -> tuple[int, int] | None:
    found = _TIMING.match(line[:_LONGEST_TIMING])
    if found is None:
        return None
    starts, ends = clock_ms(found[1]), clock_ms(found[2])
    return (starts or 0, max(starts or 0, ends or 0))


def _language(lines: list[str]) -> str | None:
    head = lines[: lines.index("")] if "" in lines else lines[:1]
    return next((found[1] for line in head if (found := _LANGUAGE.match(line))), None)


def _cues(lines: list[str], is_vtt: bool) -> Iterator[_Spoken]:
    """What stands right before a timing is the number or the name of a cue. In WebVTT an empty line ends a cue; in SRT
    its text may go on after one."""
    cue: _Spoken | None = None
    loose: list[str] = []
    in_text, before = False, ""
    for line in lines:
        if _ARROW.search(line[:_LONGEST_TIMING]) and (timing := _timing(line)):
            if cue is not None:
                yield _closed(cue, loose, before, is_vtt)
            cue, loose, in_text = _Spoken(*timing), [], True
        elif _BROKEN.match(line[:_LONGEST_TIMING]):
            if cue is not None:
                yield _closed(cue, loose, before, is_vtt)
            cue, loose, in_text = _Spoken(UNTIMED, UNTIMED), [], True
        elif not line.strip():
            in_text = False
        elif cue is not None and in_text:
            cue.lines.append(line)
        elif cue is not None:
            loose.append(line)
            in_text = False
        before = line.strip()
    if cue is not None:
        yield _closed(cue, loose, "", is_vtt)


def _closed(cue: _Spoken, loose: list[str], before: str, is_vtt: bool) -> _Spoken:
    """Decide which lines still belong to the text of a cue. `before` stands right above the next timing."""
    if not loose and cue.lines and _NUMBER.fullmatch(before):
        cue.lines.pop()
    kept = loose[:-1] if before else loose
    kept = _without_blocks(kept) if is_vtt else kept
    cue.lines += [line for line in kept if not _NUMBER.fullmatch(line)]
    return cue


def _without_blocks(lines: list[str]) -> list[str]:
    """Comments and styles go on to the next empty line, which is gone by now: whatever follows one goes with it."""
    for place, line in enumerate(lines):
        if _BLOCK.match(line):
            return lines[:place]
    return lines


def _voices(cue: _Spoken) -> Iterator[_Spoken]:
    """Split what several people say in one cue. Its time is shared out by the lengths of what they say."""
    text = "\n".join(cue.lines)
    if "<v" not in text:
        yield _Spoken(cue.starts_ms, cue.ends_ms, _plain(text))
        return
    at, speaker = 0, None
    for found in _VOICE.finditer(text):
        yield _Spoken(cue.starts_ms, cue.ends_ms, _plain(text[at : found.start()]), speaker)
        at, speaker = found.end(), None if found[2] else unescape(found[1] or "") or None
    yield _Spoken(cue.starts_ms, cue.ends_ms, _plain(text[at:]), speaker)


def _plain(text: str) -> list[str]:
    """Return the lines of a text without tags."""
    text = _TAG.sub("", text) if "<" in text or "{" in text else text
    text = unescape(text) if "&" in text else text
    return [words for line in text.split("\n") if (words := " ".join(line.split()))]


def _unrolled(cues: list[_Spoken]) -> list[_Spoken]:
    """Automatic captions show each line twice or more often, as it moves up the screen. Keep the first time."""
    cues = [cue for cue in cues if cue.lines]
    repeated = [_repeated(before, cue) for before, cue in pairwise(cues)]
    if sum(map(bool, repeated)) < max(2, len(cues) // 4):
        return cues
    kept = cues[:1]
    for cue, lines in zip(cues[1:], repeated, strict=True):
        if cue.lines[lines:]:
            kept.append(_Spoken(cue.starts_ms, cue.ends_ms, cue.lines[lines:], cue.speaker))
        else:
            kept[-1].ends_ms = max(kept[-1].ends_ms, cue.ends_ms)
    return kept


def _repeated(before: _Spoken, cue: _Spoken) -> int:
    """How many of a cue's first lines stood at the end of the one before."""
    if cue.starts_ms > before.ends_ms + 100 or cue.speaker != before.speaker:
        return 0
    most = min(len(before.lines), len(cue.lines), 4)
    return next((count for count in range(most, 0, -1) if before.lines[-count:] == cue.lines[:count]), 0)


def _labelled(cues: list[Cue]) -> list[Cue]:
    """Take names before a colon for speakers if they appear more than once. Each speaks until the next is named."""
    labels = [_LABEL.match(cue.text) for cue in cues]
    named = Counter(found[1] for found in labels if found)
    known = {name for name, count in named.items() if count >= _TIMES_NAMED}
    done, speaker = list[Cue](), None
    for cue, found in zip(cues, labels, strict=True):
        if found and found[1] in known:
            speaker = found[1]
            done.append(cue._replace(text=cue.text[found.end() :], speaker=speaker))
        else:
            done.append(cue._replace(speaker=speaker))
    return done
