"""Recordings: a sound that browsers play, and items with what is known about them and with times in their texts."""

from __future__ import annotations

import io
import math
import struct
import wave
from uuid import UUID, uuid4

from nexus.app import App
from nexus.extract import Extraction, Facts, Fragment, Heading, TimeSpan
from nexus.extract.recording import Recording, TimedChapter
from nexus.media.lifecycle import mark_ready_for_reading
from nexus.media.recordings.facts import keep_recording
from nexus.media.texts import Found
from nexus.states.media import Stage
from tests.kit.media import fail_media, new_media, start_extraction

RATE = 8000
#: How long each of the sentences below takes, and where the chapters begin.
SENTENCE_MS = 4000
TITLE = "The ferry at noon"
SENTENCES = (
    ("Nobody remembers who painted the ferry green.", "It was there one morning.", "We asked the captain."),
    ("The captain said nothing at all.", "Then he laughed.", "In winter the harbour freezes."),
    ("Ice is a kind of road.", "You can walk to the island.", "Some did, and stayed."),
    ("At noon the bell rings twice.", "That is all there is to say.", "Goodbye, and thank you."),
)


def tone(seconds: float) -> bytes:
    """A quiet tone as a WAV file, which every browser plays."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        one = b"".join(
            struct.pack("<h", round(800 * math.sin(2 * math.pi * 220 * n / RATE))) for n in range(RATE)
        )
        sound.writeframes(one * int(seconds))
    return file.getvalue()


def transcript(title: str = TITLE, repeats: int = 1) -> Extraction:
    """A text of two chapters, in which each sentence takes four seconds."""
    fragments, outline, clock = list[Fragment](), list[Heading](), 0
    for chapter in range(2 * repeats):
        name, position = f"Part {chapter + 1}", len(fragments)
        text, html, times = name, f'<h2 id="f{position}-c">{name}</h2>', list[TimeSpan]()
        outline.append(Heading(name, 2, f"f{position}-c"))
        for paragraph in SENTENCES[chapter % 2 * 2 :][:2]:
            text, html = f"{text}\n\n", f"{html}\n\n<p>"
            for number, sentence in enumerate(paragraph):
                gap = " " if number else ""
                start = len(text) + len(gap)
                text, html = f"{text}{gap}{sentence}", f"{html}{gap}{sentence}"
                times.append(TimeSpan(start, len(text), clock, clock + SENTENCE_MS))
                clock += SENTENCE_MS
            html += "</p>"
        fragments.append(Fragment(text, html, tuple(times)))
    facts = Facts("Mara Quill", "Harbour Radio", "2026-11-10", "en", source="Captions from Harbour Radio")
    return Extraction(title, tuple(fragments), facts, tuple(outline))


def about(audio_url: str | None, **more: object) -> Recording:
    known = Recording(
        title=TITLE,
        author="Mara Quill",
        site="Harbour Radio",
        published="2026-11-10",
        language="en",
        seconds=48.0,
        chapters=(TimedChapter(0, "The green ferry"), TimedChapter(24, "Ice")),
        audio_url=audio_url,
        audio_type="audio/wav" if audio_url else None,
    )
    return replace_struct(known, **more)


def replace_struct(known: Recording, **more: object) -> Recording:
    values = {name: getattr(known, name) for name in known.__struct_fields__}
    return Recording(**{**values, **more})


def add_recording(
    app: App, user: UUID, known: Recording, text: Extraction | None = None, url: str | None = None
) -> UUID:
    """A video that is ready with this text, or that has failed for lack of a transcript."""
    media_id = new_media(app, user, url or f"https://harbour.example/{uuid4().hex}", "video")
    with app.sessions.begin() as session:
        keep_recording(session, media_id, known)
    attempt = start_extraction(app, media_id)
    if text is None:
        fail_media(app, media_id, attempt, Stage.TRANSCRIBE, "E_TRANSCRIPT_UNAVAILABLE", NO_TRANSCRIPT)
    else:
        with app.sessions.begin() as session:
            assert mark_ready_for_reading(session, media_id, attempt, Found(text, "tests"))
    return media_id


NO_TRANSCRIPT = "It has no transcript, so there is no text to read. You can still play it."
