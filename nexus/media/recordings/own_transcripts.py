"""Transcripts that people bring for a video or an episode: each becomes a version of their own, with its times."""

from __future__ import annotations

from uuid import UUID

import msgspec

from nexus.errors import (
    EmptyContent,
    ExtractionFailed,
    FileTooLarge,
    InvalidFileType,
    InvalidRequest,
    TranscriptUnavailable,
)
from nexus.extract import Hints
from nexus.media import queries, versions
from nexus.media.recordings.facts import find_recording
from nexus.media.texts import storable
from nexus.media.workbench import Tools
from nexus.states.capabilities import PLAYABLE
from nexus.transcribe import Transcript
from nexus.transcribe.named_transcripts import TRANSCRIPT_READER
from nexus.transcribe.paragraphs import transcript_extraction

#: Far more than the words of the longest recording take.
MOST_TRANSCRIPT = 10 * 1024 * 1024
BROUGHT = "Transcript entered by hand"


def bring_transcript(tools: Tools, media_id: UUID, viewer: UUID, data: bytes, hints: Hints) -> int:
    """Make a transcript that the viewer brings their own version of an item; return its number.

    Nobody else can read it. Raises NotFound, InvalidRequest if the item is neither a video nor an episode,
    FileTooLarge, and InvalidFileType for what can't be read as a transcript.
    """
    with tools.sessions.read() as session:
        held = queries.get_media(session, media_id, viewer)
        known = find_recording(session, media_id)
    if held.row.kind not in PLAYABLE:
        raise InvalidRequest(
            "Only videos and episodes have transcripts. Paste the text of this item instead."
        )
    if len(data) > MOST_TRANSCRIPT:
        raise FileTooLarge(f"A transcript has at most {MOST_TRANSCRIPT // 2**20} MiB. Use a smaller one.")
    recording = None if known is None else known.recording
    try:
        found = tools.read_at_once(viewer, Transcript, TRANSCRIPT_READER, data, hints)
        brought = msgspec.structs.replace(found, source=BROUGHT)
        entered = storable(transcript_extraction(held.row.original_title, brought, recording))
    except (ExtractionFailed, TranscriptUnavailable) as error:
        nothing = isinstance(error, EmptyContent | TranscriptUnavailable)
        raise InvalidFileType(
            "The transcript is empty. Paste its text." if nothing else error.message
        ) from error
    return versions.hold_own_text(tools.sessions, media_id, viewer, entered)
