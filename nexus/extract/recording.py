"""What is known about a video or an episode, with or without a transcript."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from nexus.extract.results import MANY, ParserResult

#: How the media types of recordings begin.
SOUND_TYPES = ("audio/", "video/")


class TimedChapter(NamedTuple):
    seconds: float
    title: str


class NamedTranscript(NamedTuple):
    """A transcript that a feed or a page names."""

    url: str
    #: Its media type, if that was said.
    type: str | None = None
    language: str | None = None
    #: As a page says it: `captions`, `subtitles` or nothing.
    kind: str | None = None


class Recording(ParserResult, frozen=True):
    title: str | None = None
    author: str | None = None
    site: str | None = None
    #: An ISO date, with the time if that is known.
    published: str | None = None
    language: str | None = None
    seconds: float | None = None
    #: The address of its picture, outside of Nexus.
    picture_url: str | None = None
    #: What a page may show in a frame to play it.
    embed_url: str | None = None
    #: Show notes: html. It is kept only if it is clean.
    notes: str | None = None
    #: The address of its chapters, if they are not known yet.
    chapters_url: str | None = None
    chapters: Annotated[tuple[TimedChapter, ...], MANY] = ()
    transcripts: Annotated[tuple[NamedTranscript, ...], MANY] = ()
    #: The address of its sound, the type of that, and its size in bytes, as far as they are known.
    audio_url: str | None = None
    audio_type: str | None = None
    audio_bytes: int | None = None
