"""Reads transcripts with elements: YouTube's timed text, TTML, and the html of the podcast namespace."""

from __future__ import annotations

from html import unescape

from lxml import etree

from nexus.extract.elements import DROPPED, KEPT_BLOCKS, LOOSE_BLOCKS
from nexus.extract.epub.xml import parse_html, parse_xml
from nexus.extract.writer import HEADINGS
from nexus.transcribe import UNTIMED, Cue, Transcript
from nexus.transcribe.moments import clock_ms, moment_ms, with_ends

_BLOCKS = KEPT_BLOCKS | LOOSE_BLOCKS | {"br", "body"}
#: What each form calls the beginning, the end and the length of a cue, and how many milliseconds its numbers stand for:
#: YouTube's older form seconds, its newer one milliseconds, TTML clocks or seconds.
_FORMS = (("start", "end", "dur", 1000), ("t", "end", "d", 1), ("begin", "end", "dur", 1000))
#: What nobody says.
_UNSPOKEN = DROPPED | HEADINGS | {"head"}


def read_timed_xml(data: bytes) -> Transcript | None:
    """Read YouTube's timed text in either form, or TTML. None if it is not XML, or has no cues with times."""
    root = parse_xml(data)
    if root is None:
        return None
    cues = [_timed(one) for one in root.iter("text", "p")]
    spoken = [cue for cue in cues if cue.text.strip() and cue.starts_ms != UNTIMED]
    return Transcript(tuple(with_ends(spoken)), language=root.get("lang")) if spoken else None


def _timed(element: etree._Element) -> Cue:
    starts, ends = next((span for form in _FORMS if (span := _span(element, *form))), (UNTIMED, UNTIMED))
    for line_break in element.iter("br"):
        line_break.tail = f" {line_break.tail or ''}"
    # YouTube escapes its text once more before it writes XML.
    return Cue(starts, ends, unescape("".join(map(str, element.itertext()))))


def _span(element: etree._Element, begin: str, end: str, length: str, unit: int) -> tuple[int, int] | None:
    starts = moment_ms(element.get(begin), unit)
    if starts is None:
        return None
    ends, lasts = moment_ms(element.get(end), unit), moment_ms(element.get(length), unit)
    if ends is None:
        ends = UNTIMED if lasts is None else starts + lasts
    return starts, ends


def read_cue_html(data: bytes) -> Transcript | None:
    """Read html in which `cite` names the speaker and `time` the moment. None if it has no text."""
    root = parse_html(data)
    if root is None:
        return None
    page = _SpokenPage()
    page.walk(root)
    cues = page.cues
    return Transcript(tuple(with_ends(_with_starts(cues))), language=root.get("lang")) if cues else None


def _with_starts(cues: list[Cue]) -> list[Cue]:
    """Paragraphs that follow one with a time are said with it: they share what is left until the next."""
    if all(cue.starts_ms == UNTIMED for cue in cues):
        return cues
    done, moment = list[Cue](), 0
    for cue in cues:
        moment = moment if cue.starts_ms == UNTIMED else cue.starts_ms
        done.append(cue._replace(starts_ms=moment))
    return done


class _SpokenPage:
    """One walk over html."""

    def __init__(self) -> None:
        self.cues: list[Cue] = []
        self._speaker: str | None = None
        self._moment: int | None = None
        self._words: list[str] = []
        #: What `cite` or `time` holds, while one is open.
        self._aside: list[str] | None = None

    def walk(self, root: etree._Element) -> None:
        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            if event == "end":
                self._leave(element)
            elif element.tag in _UNSPOKEN:
                walker.skip_subtree()
            else:
                self._enter(element)
        self._finish()

    def _enter(self, element: etree._Element) -> None:
        if element.tag in _BLOCKS:
            self._finish()
        elif element.tag in {"cite", "time"} and self._aside is None:
            self._finish()
            self._aside = []
        self._put(element.text)

    def _leave(self, element: etree._Element) -> None:
        if element.tag in _BLOCKS:
            self._finish()
        elif element.tag in {"cite", "time"} and self._aside is not None:
            said, self._aside = " ".join("".join(self._aside).split()), None
            if element.tag == "cite":
                self._speaker = said.strip(" :") or None
            else:
                self._moment = clock_ms(said) if clock_ms(said) is not None else moment_ms(said)
        self._put(element.tail)

    def _put(self, text: str | None) -> None:
        if text is not None:
            (self._words if self._aside is None else self._aside).append(text)

    def _finish(self) -> None:
        text, self._words = " ".join("".join(self._words).split()), []
        if text:
            starts = UNTIMED if self._moment is None else self._moment
            self.cues.append(Cue(starts, UNTIMED, text, self._speaker))
            self._moment = None
