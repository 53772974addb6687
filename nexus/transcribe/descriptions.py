"""What a description in plain text says about a recording: its notes, and the chapters that it lists by their times."""

from __future__ import annotations

import re
from html import escape

from nexus.extract.recording import TimedChapter

LONGEST = 100_000
LONGEST_LINE = 300
#: YouTube's rule: a list of times is a list of chapters if it starts at zero and has a few lines.
FEWEST = 3
_CLOCK = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})"
_LEADING = re.compile(rf"[\s\-–—•*\[(]*{_CLOCK}[\])]?[\s\-–—:.|]+(\S.*)")
_TRAILING = re.compile(rf"(\S.*?)[\s\-–—:.|\[(]+{_CLOCK}[\])]?")
_PARAGRAPHS = re.compile(r"\n\s*\n")


def chapters_in(description: str, seconds: float | None = None) -> tuple[TimedChapter, ...]:
    """Return the chapters that a description lists, one to a line; none if it is not such a list."""
    found: list[TimedChapter] = []
    for whole in description[:LONGEST].splitlines():
        line = whole.strip()
        if len(line) > LONGEST_LINE:
            continue
        if leading := _LEADING.fullmatch(line):
            hours, minutes, rest, title = leading.groups()
        elif trailing := _TRAILING.fullmatch(line):
            title, hours, minutes, rest = trailing.groups()
        else:
            continue
        moment = int(hours or 0) * 3600 + int(minutes) * 60 + int(rest)
        found.append(TimedChapter(float(moment), title.strip()))
    moments = [chapter.seconds for chapter in found]
    is_list = len(found) >= FEWEST and moments[0] == 0 and moments == sorted(set(moments))
    fits = not seconds or not moments or moments[-1] <= seconds
    return tuple(found) if is_list and fits else ()


def notes_in(description: str) -> str | None:
    """Return a description as html, with its paragraphs and lines; None if it is empty."""
    blocks = [block.strip() for block in _PARAGRAPHS.split(description[:LONGEST]) if block.strip()]
    paragraphs = ("<br>".join(escape(line, quote=False) for line in block.splitlines()) for block in blocks)
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs) or None
