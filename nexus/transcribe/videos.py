"""The extractors of videos and episodes: what is known about one, then each source of a transcript in turn.

What is found out about a video is kept at once, so a retry resumes with the transcript and asks nothing a second time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import msgspec

from nexus import logging, urls
from nexus.errors import (
    ExtractionFailed,
    FetchFailed,
    FetchTooLarge,
    FetchWrongType,
    ProviderBlocked,
    TranscriptUnavailable,
    WorkError,
)
from nexus.extract import Extraction, Hints, Source, Workbench
from nexus.extract.recording import SOUND_TYPES, Recording
from nexus.transcribe import Transcript
from nexus.transcribe.chapters import named_chapters
from nexus.transcribe.merging import fill_in
from nexus.transcribe.named_transcripts import TRANSCRIPT_READER, named_transcript
from nexus.transcribe.page_recording import PageRecording
from nexus.transcribe.paragraphs import transcript_extraction
from nexus.transcribe.peertube import look_at_peertube
from nexus.transcribe.vimeo import ask_vimeo, caption_source, vimeo_oembed
from nexus.transcribe.youtube import YouTubeAnswers, ask_youtube, youtube_oembed
from nexus.transcribe.youtube_facts import embed_address

log = logging.get_logger(__name__)

OEMBED = "nexus.transcribe.oembed:read_oembed"
PAGE = "nexus.transcribe.page_recording:read_recording_page"
PLAYER = "nexus.transcribe.youtube_facts:read_player"
WATCH_PAGE = "nexus.transcribe.youtube_facts:read_watch_page"
JSON = "application/json"
#: Where providers say what a video is, even while they give no captions to this address.
OEMBEDS = {"youtube": youtube_oembed, "vimeo": vimeo_oembed}


NO_SOUND = "It has no transcript, and its site does not give Nexus its sound. Add a transcript."


@dataclass
class _Finding:
    """What is known about a recording so far, and what else came with it."""

    recording: Recording
    #: A transcript without times, which stood in a page.
    page_text: str | None = None
    captions: Transcript | None = None
    #: Why its provider gave no captions.
    error: WorkError | None = None


def video(source: Source) -> Extraction:
    """Return the transcript of a video as a text.

    Raises TranscriptUnavailable if it has none, ProviderBlocked if its site blocks this address, and FetchFailed.
    """
    known = source.bench.recording()
    finding = _look(source) if known is None else _Finding(known)
    if source.provider == "youtube":
        _ask_youtube(source, finding)
    elif source.provider == "vimeo":
        _ask_vimeo(source, finding)
    return _text_of(source.bench, finding)


def podcast_episode(source: Source) -> Extraction:
    """Return the transcript of an episode as a text. What is known about it comes from its feed. Raises as `video`."""
    known = source.bench.recording() or Recording()
    return _text_of(source.bench, _Finding(_with_chapters(source.bench, known)))


def _with_chapters(bench: Workbench, known: Recording) -> Recording:
    """Read the chapters that a feed names by their address. An episode can do without them."""
    if known.chapters or known.chapters_url is None:
        return known
    try:
        chapters = named_chapters(bench, known.chapters_url)
    except (FetchFailed, ExtractionFailed):
        return known
    found = msgspec.structs.replace(known, chapters=chapters)
    if chapters:
        bench.keep_recording(found)
    return found


def _text_of(bench: Workbench, finding: _Finding) -> Extraction:
    transcript = finding.captions or _named(bench, finding) or _heard(bench, finding)
    if transcript is None:
        raise finding.error or TranscriptUnavailable()
    return transcript_extraction(finding.recording.title, transcript, finding.recording)


def _heard(bench: Workbench, finding: _Finding) -> Transcript | None:
    """A recording whose sound is gone may still be played, and be given a transcript."""
    try:
        return bench.listen(finding.recording)
    except FetchFailed as error:
        if error.transient:
            raise
        log.info("sound_not_fetched", error_code=error.code)
        raise finding.error or TranscriptUnavailable(NO_SOUND) from error


def _named(bench: Workbench, finding: _Finding) -> Transcript | None:
    try:
        found = named_transcript(bench, finding.recording, bench.languages)
    except FetchFailed:
        if finding.page_text is None:
            raise
        found = None
    if found is None and finding.page_text is not None:
        return _read(bench, finding.page_text.encode(), "text/plain", "Transcript on the page", None)
    return found


def _read(
    bench: Workbench, data: bytes, content_type: str, source: str, language: str | None
) -> Transcript | None:
    """Return a transcript; None if it can't be read."""
    try:
        found = bench.read_as(Transcript, TRANSCRIPT_READER, data, Hints(content_type=content_type))
    except ExtractionFailed:
        return None
    return msgspec.structs.replace(found, source=source, language=language or found.language)


# ── What is known about a video ──


def _look(source: Source) -> _Finding:
    """Find out what there is to know, and keep it."""
    if source.provider in OEMBEDS:
        said = _oembed(source.bench, OEMBEDS[source.provider](source)).recording
        if source.provider == "youtube" and said.title is not None:
            said = msgspec.structs.replace(said, embed_url=embed_address(source.provider_id or ""))
        finding = _Finding(said)
    else:
        peertube = look_at_peertube(source)
        finding = _look_at_page(source) if peertube is None else _Finding(peertube)
    if finding.recording != Recording():
        source.bench.keep_recording(finding.recording)
    return finding


def _oembed(bench: Workbench, url: str) -> PageRecording:
    """Return what oEmbed says, if anything: it only adds to other sources."""
    try:
        answer = bench.fetch_data(url, JSON)
        return bench.read_as(PageRecording, OEMBED, answer.body, answer.hints())
    except (FetchFailed, ExtractionFailed):
        return PageRecording(Recording())


def _look_at_page(source: Source) -> _Finding:
    """Look at a page that plays something, or at the file itself."""
    url = source.url or ""
    try:
        page = source.bench.fetch(url)
    except (FetchWrongType, FetchTooLarge) as error:
        said = (error.content_type or "").partition(";")[0].strip().lower()
        kind = said if said.startswith(SOUND_TYPES) else urls.recording_type(url)
        if kind is None:
            raise
        return _Finding(_file(url, kind))
    found = source.bench.read_as(PageRecording, PAGE, page.body, page.hints())
    text, known = found.text, found.recording
    if found.oembed_url is not None:
        more = _oembed(source.bench, found.oembed_url)
        known, text = fill_in(known, more.recording), text or more.text
    return _Finding(known, text)


def _file(url: str, kind: str) -> Recording:
    """Name a file after the last part of its address."""
    parts = urlsplit(url)
    name = PurePosixPath(unquote(parts.path)).stem.replace("_", " ").strip()
    return Recording(title=name or None, site=parts.hostname, audio_url=url, audio_type=kind)


# ── Captions of providers ──


def _ask_youtube(source: Source, finding: _Finding) -> None:
    answers = ask_youtube(source.bench, source.provider_id or "")
    _learn(source.bench, finding, _youtube_facts(source, finding.recording, answers))
    finding.error = answers.error
    if answers.captions is not None:
        sheet = answers.captions
        told = "Captions from YouTube, automatic" if sheet.is_automatic else "Captions from YouTube"
        finding.captions = _read(source.bench, sheet.data, "text/xml", told, sheet.language)


def _youtube_facts(source: Source, known: Recording, answers: YouTubeAnswers) -> Recording:
    """Read what came with the captions, unless an earlier attempt has done so."""
    more = Recording(site="YouTube", embed_url=embed_address(source.provider_id or ""))
    for data, reader in ((answers.player, PLAYER), (answers.page, WATCH_PAGE)):
        if data is not None and known.seconds is None:
            try:
                found = source.bench.read_as(Recording, reader, data)
            except ExtractionFailed:
                continue
            # The chapters of the page are those that YouTube shows.
            more = fill_in(found, more) if reader == WATCH_PAGE else fill_in(more, found)
    return more


def _ask_vimeo(source: Source, finding: _Finding) -> None:
    """Its captions can be fetched only for a short time, so each attempt asks for them again."""
    try:
        found = ask_vimeo(source.bench, source.provider_id or "")
    except (ProviderBlocked, TranscriptUnavailable) as error:
        finding.error = error
        return
    _learn(source.bench, finding, msgspec.structs.replace(found, transcripts=()))
    for track in found.transcripts:
        alone = Recording(transcripts=(track,))
        transcript = named_transcript(source.bench, alone, source.bench.languages)
        if transcript is not None:
            finding.captions = msgspec.structs.replace(transcript, source=caption_source(track))
            return


def _learn(bench: Workbench, finding: _Finding, more: Recording) -> None:
    """Add to what is known, and keep it if it is new."""
    known = fill_in(finding.recording, more)
    if known != finding.recording:
        finding.recording = known
        bench.keep_recording(known)
