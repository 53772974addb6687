"""Transcripts that a feed or a page names: the second of the sources, after a provider's own captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import msgspec

from nexus import logging
from nexus.errors import ExtractionFailed, FetchFailed
from nexus.extract import Hints, Workbench
from nexus.extract.recording import NamedTranscript, Recording
from nexus.transcribe import Transcript
from nexus.transcribe.choosing import rank_language

log = logging.get_logger(__name__)

TRANSCRIPT_READER = "nexus.transcribe.transcript_files:read_transcript"
ACCEPT = "text/vtt, application/x-subrip, application/srt, application/json, text/html;q=0.8, */*;q=0.5"
#: A feed may name any number of them; this many are tried.
MOST_TRIED = 6
#: The best first: with times and speakers, with times, with few times, without any.
_FORMATS = ("vtt", "srt", "json", "xml", "html", "txt")
_TYPES = {
    "text/vtt": "vtt",
    "application/srt": "srt",
    "application/x-subrip": "srt",
    "text/srt": "srt",
    "application/json": "json",
    "application/ttml+xml": "xml",
    "text/xml": "xml",
    "text/html": "html",
    "text/plain": "txt",
}
_ENDINGS = {"htm": "html", "ttml": "xml"}


def named_transcript(bench: Workbench, recording: Recording, languages: Sequence[str]) -> Transcript | None:
    """Return the best transcript that is named for a recording: in the first of the languages, and in the best format.

    None if none of them can be had. Raises FetchFailed if one of them may be had a little later.
    """
    later: FetchFailed | None = None
    for named in in_order(recording, languages)[:MOST_TRIED]:
        try:
            return _read(bench, named, recording)
        except FetchFailed as error:
            later = later or (error if error.transient else None)
            log.info("transcript_not_fetched", error_code=error.code)
        except ExtractionFailed as error:
            log.info("transcript_not_read", error_code=error.code)
    if later is not None:
        raise later
    return None


def in_order(recording: Recording, languages: Sequence[str]) -> list[NamedTranscript]:
    """Return the transcripts that are named for a recording, each address once, the best first."""

    def rank(named: NamedTranscript) -> tuple[int, int]:
        language = named.language or recording.language or ""
        known = rank_language(language, languages)
        # One whose language nobody named may be in the right one.
        unknown = 2 * len(languages) + bool(language)
        kind = format_of(named)
        return unknown if known is None else known, _FORMATS.index(kind) if kind else len(_FORMATS)

    first: dict[str, NamedTranscript] = {}
    for named in recording.transcripts:
        first.setdefault(named.url, named)
    return sorted(first.values(), key=rank)


def format_of(named: NamedTranscript) -> str | None:
    """Return the format of a transcript, by its type or by the ending of its address; None if neither tells."""
    given = _TYPES.get((named.type or "").partition(";")[0].strip().lower())
    if given is not None and given != "txt":
        return given
    ending = _name_of(named.url).rpartition(".")[2].lower()
    ending = _ENDINGS.get(ending, ending)
    return ending if ending in _FORMATS else given


def _read(bench: Workbench, named: NamedTranscript, recording: Recording) -> Transcript:
    fetched = bench.fetch_data(named.url, ACCEPT)
    # The feed is believed before the server: many serve everything as plain text.
    said = (named.type or fetched.content_type_header or "").partition(";")[0].strip().lower()
    hints = Hints(fetched.url, said or None, fetched.charset, _name_of(named.url))
    found = bench.read_as(Transcript, TRANSCRIPT_READER, fetched.body, hints)
    source = "Captions of the page" if named.kind else "Transcript from the podcast"
    language = named.language or found.language or recording.language
    return msgspec.structs.replace(found, source=source, language=language)


def _name_of(url: str) -> str:
    return PurePosixPath(unquote(urlsplit(url).path)).name
