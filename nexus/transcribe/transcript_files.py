"""Reads a transcript, whatever its format: from what is in it first, then from its type and its name.

It runs in a parser process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from nexus.errors import TranscriptUnreadable
from nexus.extract import Hints
from nexus.extract.charsets import decode_marked, decode_page
from nexus.extract.results import MOST_ITEMS
from nexus.transcribe import UNTIMED, Cue, Transcript
from nexus.transcribe.cue_json import read_cue_json
from nexus.transcribe.cue_lines import has_timings, read_cue_lines
from nexus.transcribe.cue_markup import read_cue_html, read_timed_xml
from nexus.transcribe.moments import CLOCK, clock_ms, with_ends

#: Formats by the ending of a name and by the media type. Anything else is recognized, or is plain text.
_ENDINGS = {"vtt": "lines", "srt": "lines", "json": "json", "json3": "json", "html": "html", "htm": "html"}
_ENDINGS |= {"xml": "xml", "ttml": "xml", "srv1": "xml", "srv3": "xml"}
_TYPES = {
    "text/vtt": "lines",
    "application/srt": "lines",
    "application/x-subrip": "lines",
    "text/srt": "lines",
    "application/json": "json",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/xml": "xml",
    "application/xml": "xml",
    "application/ttml+xml": "xml",
}
_NEWLINE = re.compile(r"\r\n?|[\u0085\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f]")
_PAGE = re.compile(
    r"<(?:!doctype\s+html|html|body|p|div|cite|time|article|section|span|h\d)\b", re.IGNORECASE
)
#: A moment alone on its line, or before what is said then: `[1:02] Hello`.
_STAMPED = re.compile(rf"[ \t]*[\[(<]?({CLOCK})[\])>]?(?:[ \t]*[-–—:|])?(?:[ \t]+|\Z)(.*)", re.ASCII)
#: `Ann Lee: Good morning.`
_LABELLED = re.compile(r"[^\W\d_][\w.'’ -]{0,40}:\s")
_BLANK = re.compile(r"\n[ \t]*\n")
#: One control character in this many is dirt. With more of them it is not text.
_DIRT = 100


def read_transcript(data: bytes, hints: Hints) -> Transcript:
    """Read a transcript: WebVTT, SRT, JSON, YouTube's timed text, TTML, html or plain text.

    Raises TranscriptUnreadable.
    """
    text = _decoded(data, hints)
    found = _read(text, _format(hints))
    cues = [cue for cue in found.cues if cue.text.strip()] if found else []
    if not cues:
        raise TranscriptUnreadable
    return Transcript(tuple(_at_most(cues)), language=found.language if found else None)


def _format(hints: Hints) -> str:
    ending = (hints.filename or "").rpartition(".")[2].lower()
    return _ENDINGS.get(ending) or _TYPES.get((hints.content_type or "").lower(), "")


def _read(text: str, named: str) -> Transcript | None:
    head = text[:1000].lstrip()
    if head.startswith("WEBVTT"):
        return read_cue_lines(text.lstrip())
    if head.startswith(("{", "[")) and ((found := read_cue_json(text)) is not None or named == "json"):
        return found
    if head.startswith("<"):
        found = _read_markup(text.lstrip(), head, named)
        if found or head.startswith(("<?", "<!")) or text.rstrip().endswith(">"):
            return found
    if has_timings(text):
        return read_cue_lines(text)
    return None if named in {"lines", "json", "xml"} else _read_words(text)


def _read_markup(text: str, head: str, named: str) -> Transcript | None:
    """A page in place of captions is the answer of a site that has lost them."""
    data = text.encode(errors="replace")
    is_page = _PAGE.match(head) is not None
    found = None if named == "html" or is_page else read_timed_xml(data)
    if found is None and (named == "html" or (is_page and not named)):
        found = read_cue_html(data)
    return found


def _read_words(text: str) -> Transcript | None:
    """Read plain text, with the moments that stand in it, as in what people paste from pages, or else without any."""
    lines = [line for line in text.split("\n") if line.strip()]
    stamped = [found for line in lines if (found := _STAMPED.match(line))]
    moments = [clock_ms(found[1]) or 0 for found in stamped]
    if len(stamped) > 2 and 4 * len(stamped) >= len(lines) and all(a <= b for a, b in pairwise(moments)):
        return Transcript(tuple(with_ends(_stamped(lines))))
    return Transcript(tuple(Cue(UNTIMED, UNTIMED, one) for one in _paragraphs(text)))


def _stamped(lines: Iterable[str]) -> list[Cue]:
    cues, moment, said = list[Cue](), 0, list[str]()
    for line in lines:
        if found := _STAMPED.match(line):
            cues.append(Cue(moment, UNTIMED, " ".join(said)))
            moment, said = clock_ms(found[1]) or 0, [found[2]]
        else:
            said.append(line)
    return [cue for cue in [*cues, Cue(moment, UNTIMED, " ".join(said))] if cue.text.strip()]


def _paragraphs(text: str) -> list[str]:
    """If no line is empty, each line is a paragraph. The name of a speaker always begins one."""
    if not _BLANK.search(text.strip()):
        return [line for line in text.split("\n") if line.strip()]
    done: list[str] = []
    for block in _BLANK.split(text):
        lines: list[str] = []
        for line in block.split("\n"):
            if lines and _LABELLED.match(line):
                done.append(" ".join(lines))
                lines = []
            lines.append(line)
        done.append(" ".join(lines))
    return [one for one in done if one.strip()]


def _decoded(data: bytes, hints: Hints) -> str:
    """Decode by the byte order mark, as UTF-16 if every other byte is 0, as UTF-8, as declared, or by a guess."""
    text = decode_marked(data)
    if text is None:
        halves = {"utf-16-be": data[:4096:2], "utf-16-le": data[1:4096:2]}
        codec = next((name for name, half in halves.items() if 2 * half.count(0) > len(half) > 0), None)
        text = data.decode(codec, "replace") if codec else None
    if text is None:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = decode_page(data, hints.charset)
    if (len(_CONTROL.findall(text)) + text.count("\ufffd") - 1) * _DIRT > len(text):
        raise TranscriptUnreadable
    return _NEWLINE.sub("\n", _CONTROL.sub("", text).removeprefix("\ufeff"))


def _at_most(cues: list[Cue]) -> list[Cue]:
    """Join neighbours of the same speaker until there are few enough. Raises TranscriptUnreadable."""
    while len(cues) > MOST_ITEMS:
        joined: list[Cue] = []
        pairs = iter(cues)
        for cue in pairs:
            following = next(pairs, None)
            if following is not None and following.speaker == cue.speaker:
                text = f"{cue.text} {following.text}"
                joined.append(Cue(cue.starts_ms, following.ends_ms, text, cue.speaker))
            else:
                joined += [cue] if following is None else [cue, following]
        if len(joined) > 0.9 * len(cues):
            raise TranscriptUnreadable("The transcript has too many cues. Split it into parts.")
        cues = joined
    return cues
