"""Whether recordings can be transcribed, and what to do if they can't."""

from __future__ import annotations

from nexus.settings import Settings
from nexus.transcribe.speech import make_speech_model
from nexus.upkeep.findings import CheckVerdict, Finding


def check_speech(chosen: Settings) -> Finding:
    """A model that nobody asked for may be missing; one that somebody chose should be there."""
    name, model = "speech.model", make_speech_model(chosen)
    if model is None:
        return Finding(name, CheckVerdict.OK, "Transcription is turned off: NEXUS_SPEECH is off.", "")
    missing, wanted = model.missing, bool(chosen.speech)
    model.close()
    if missing is None:
        says = f"Recordings without a transcript are transcribed by {model.model}."
        return Finding(name, CheckVerdict.OK, says, "")
    says = f"{missing.why} Recordings without a transcript have no text."
    advice = f"Install it with: {missing.command}"
    return Finding(name, CheckVerdict.PROBLEM if wanted else CheckVerdict.NOTE, says, advice)
