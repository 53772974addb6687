"""Turns transcripts into texts: paragraphs by pause, speaker and sentence, chapters as headings, times for every
sentence.

The html has exactly the characters of the text. The same transcript always becomes the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import NamedTuple

from nexus.errors import TranscriptUnavailable
from nexus.extract import Extraction, Facts, Fragment, Heading, TimeSpan
from nexus.extract.recording import Recording, TimedChapter
from nexus.transcribe import UNTIMED, Cue, Transcript
from nexus.transcribe.turns import LATEST_MS, SpokenTurn, put_in_order, take_turns, tidy

#: About as much as people read in one sitting.
FRAGMENT_LENGTH = 20_000
#: A paragraph ends with a sentence once it is this long.
LONG_PARAGRAPH = 600
#: It also ends after a shorter sentence if a pause follows.
PAUSE_MS = 1500
SHORT_PARAGRAPH = 120
LONGEST_TITLE = 200
UNNAMED = "Transcript"


class Paragraph(NamedTuple):
    """A paragraph, the person who begins to speak with it, and where its sentences are in it."""

    text: str
    speaker: str | None
    times: tuple[TimeSpan, ...]


class _Section(NamedTuple):
    """A chapter, or what comes before the first one."""

    chapter: TimedChapter | None
    #: When it begins, or the first word in it if that is earlier.
    starts_ms: int
    cues: list[Cue]


class _GrowingFragment:
    """One fragment, as it grows."""

    def __init__(self, position: int) -> None:
        self.position = position
        self._text: list[str] = []
        self._html: list[str] = []
        self._times: list[TimeSpan] = []
        self.length = 0

    def put(self, html: str, *texts: str) -> int:
        """Add a block; return where its text begins."""
        gap = "\n\n" if self._text else ""
        start = self.length + len(gap)
        self._text += [gap, *texts]
        self._html += [gap, html]
        self.length = start + sum(map(len, texts))
        return start

    def put_heading(self, title: str, starts_ms: int) -> Heading:
        anchor = f"f{self.position}-c"
        start = self.put(f'<h2 id="{anchor}">{_escaped(title)}</h2>', title)
        self._times.append(TimeSpan(start, self.length, starts_ms, starts_ms))
        return Heading(title, 2, anchor)

    def put_paragraph(self, one: Paragraph) -> None:
        if one.speaker is None:
            start = self.put(f"<p>{_escaped(one.text)}</p>", one.text)
        else:
            name = f"{one.speaker}:"
            html = f"<p><strong>{_escaped(name)}</strong> {_escaped(one.text)}</p>"
            start = self.put(html, name, " ", one.text) + len(name) + 1
        self._times += [time._replace(start=start + time.start, end=start + time.end) for time in one.times]

    def fragment(self) -> Fragment:
        return Fragment("".join(self._text), "".join(self._html), tuple(self._times))


def transcript_extraction(
    title: str | None, transcript: Transcript, recording: Recording | None
) -> Extraction:
    """Make the text of a recording from its transcript and from what is known about it.

    Raises TranscriptUnavailable if nothing is said in it.
    """
    known = recording or Recording()
    cues = put_in_order(transcript.cues)
    if not cues:
        raise TranscriptUnavailable
    fragments, outline = list[Fragment](), list[Heading]()
    for section in _sections(cues, known.chapters):
        page = _GrowingFragment(len(fragments))
        if section.chapter is not None:
            outline.append(page.put_heading(section.chapter.title, section.starts_ms))
        for paragraph in cut_paragraphs(take_turns(section.cues)):
            if page.length and page.length + len(paragraph.text) > FRAGMENT_LENGTH:
                fragments.append(page.fragment())
                page = _GrowingFragment(len(fragments))
            page.put_paragraph(paragraph)
        fragments.append(page.fragment())
    facts = Facts(
        byline=known.author,
        site=known.site,
        published=known.published,
        language=transcript.language or known.language,
        lead_image=known.picture_url,
        source=transcript.source or UNNAMED,
    )
    return Extraction(title or known.title, tuple(fragments), facts, tuple(outline))


def cut_paragraphs(turns: Iterable[SpokenTurn]) -> Iterator[Paragraph]:
    """Cut what is said into paragraphs. The speaker is named with the first one of several."""
    before: str | None = None
    for turn in turns:
        speaker = turn.speaker if turn.speaker != before else None
        before = turn.speaker
        for sentences in _grouped(turn):
            first, last = sentences[0].start, sentences[-1].end
            times = [time._replace(start=time.start - first, end=time.end - first) for time in sentences]
            yield Paragraph(turn.text[first:last], speaker, tuple(times if turn.is_timed else ()))
            speaker = None


def _grouped(turn: SpokenTurn) -> Iterator[list[TimeSpan]]:
    """The sentences of each paragraph. Without times, the paragraphs are those of the source."""
    group: list[TimeSpan] = []
    for sentence in turn.sentences():
        if group and _paragraph_ends(turn, group, sentence):
            yield group
            group = []
        group.append(sentence)
    if group:
        yield group


def _paragraph_ends(turn: SpokenTurn, group: list[TimeSpan], following: TimeSpan) -> bool:
    length = group[-1].end - group[0].start
    if not turn.is_timed:
        return length + following.end - following.start > FRAGMENT_LENGTH // 2
    pause = following.starts_ms - group[-1].ends_ms
    return length >= LONG_PARAGRAPH or (length >= SHORT_PARAGRAPH and pause >= PAUSE_MS)


def _sections(cues: list[Cue], chapters: Iterable[TimedChapter]) -> list[_Section]:
    """A cue belongs to the chapter in which its middle lies: chapters are seldom cut at the very word."""
    named = [one._replace(title=tidy(one.title)[:LONGEST_TITLE]) for one in chapters]
    timed = sorted((one for one in named if one.title and one.seconds >= 0), key=lambda one: one.seconds)
    if not timed or cues[0].starts_ms == UNTIMED:
        return [_Section(None, 0, cues)]
    spoken = [list[Cue]() for _ in range(len(timed) + 1)]
    at = 0
    for cue in cues:
        while at < len(timed) and _chapter_ms(timed[at]) <= (cue.starts_ms + cue.ends_ms) // 2:
            at += 1
        spoken[at].append(cue)
    sections, latest = list[_Section](), LATEST_MS
    for chapter, said in zip(reversed(timed), reversed(spoken), strict=False):
        latest = min(latest, _chapter_ms(chapter), *(cue.starts_ms for cue in said[:1]))
        sections.append(_Section(chapter, latest, said))
    before = [_Section(None, 0, spoken[0])] if spoken[0] else []
    return before + sections[::-1]


def _chapter_ms(chapter: TimedChapter) -> int:
    return round(min(chapter.seconds, LATEST_MS / 1000) * 1000)


def _escaped(text: str) -> str:
    return escape(text, quote=False)
