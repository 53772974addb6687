"""Reads oEmbed: what a site says about a video, for other sites that show it. Runs in a parser process."""

from __future__ import annotations

import re
from html import unescape

from nexus.errors import ExtractionFailed
from nexus.extract import Hints
from nexus.extract.markup import absolute_url
from nexus.extract.recording import NamedTranscript, Recording
from nexus.transcribe.descriptions import chapters_in, notes_in
from nexus.transcribe.loose_json import dig, number_at, parse_json, text_at
from nexus.transcribe.page_recording import PageRecording, is_address

_FRAME = re.compile(r"<iframe\b[^>]{0,2000}?\bsrc\s*=\s*[\"']([^\"'>]{1,2000})", re.IGNORECASE)


def read_oembed(data: bytes, hints: Hints) -> PageRecording:
    """Raises ExtractionFailed."""
    found = parse_json(data)
    if not isinstance(found, dict):
        raise ExtractionFailed
    description, seconds = text_at(found, "description") or "", number_at(found, "duration")
    frame = _FRAME.search(text_at(found, "html") or "")
    said = text_at(found, "transcript") or ""
    named = (NamedTranscript(said),) if is_address(said) else ()
    known = Recording(
        title=text_at(found, "title"),
        author=text_at(found, "author_name"),
        site=text_at(found, "provider_name"),
        published=(text_at(found, "upload_date") or text_at(found, "published") or "")[:10] or None,
        language=text_at(found, "language"),
        seconds=seconds,
        picture_url=text_at(found, "thumbnail_url"),
        embed_url=absolute_url(unescape(frame[1]), hints.url) if frame else None,
        notes=notes_in(description),
        chapters=chapters_in(description, seconds),
        transcripts=named,
    )
    if dig(found, "title") is None and dig(found, "html") is None and not said:
        raise ExtractionFailed
    return PageRecording(known, said if said and not named else None)
