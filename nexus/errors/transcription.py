"""Errors that end the transcription of a recording. What has been heard so far is kept for the next try."""

from __future__ import annotations

from nexus.errors.work import WorkError


class TranscriptionFailed(WorkError):
    """Its speech could not be turned into text. Retry later, or add a transcript."""

    code = "E_TRANSCRIPTION_FAILED"
    stage = "transcribe"

    def __init__(self, message: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        if retry_after is not None:
            self.retry_after = retry_after


class SoundUnreadable(TranscriptionFailed):
    """Its sound is damaged, or in a format that Nexus can't decode. Add a transcript, or play it at its source."""

    code = "E_SOUND_UNREADABLE"


class SoundTooLong(TranscriptionFailed):
    """It is longer than 24 hours, which is more than Nexus transcribes. Add a transcript instead."""

    code = "E_SOUND_TOO_LONG"


class SoundTooLarge(TranscriptionFailed):
    """The file with its sound is larger than Nexus fetches. Raise NEXUS_AUDIO_MIB, then retry, or add a transcript."""

    code = "E_SOUND_TOO_LARGE"


class TranscriptionTurn(TranscriptionFailed):
    """A part of it is transcribed. Nexus continues when others have had their turn."""

    code = "E_TRANSCRIPTION_TURN"
    transient = True
    counted = False
    at_once = True


class TranscriptionBusy(TranscriptionFailed):
    """Nexus is transcribing another recording. This one is next, or soon."""

    code = "E_TRANSCRIPTION_BUSY"
    transient = True
    counted = False
    retry_after = 30.0


class TranscriptionStopped(TranscriptionFailed):
    """The transcription was stopped, because Nexus is ending or the item has changed. It continues on its own."""

    code = "E_TRANSCRIPTION_STOPPED"
    transient = True
    counted = False


class TranscriptionNoModel(TranscriptionFailed):
    """The speech model is not the one that Nexus knows, so it is not used. Run `make speech`, then retry."""

    code = "E_TRANSCRIPTION_NO_MODEL"


class TranscriptionCrashed(TranscriptionFailed):
    """The process that listens to it ended. Retry; if it happens again, look at the worker's log."""

    code = "E_TRANSCRIPTION_CRASHED"
    transient = True


class TranscriptionMemory(TranscriptionFailed):
    """There was not enough memory to transcribe it. Free some, then retry."""

    code = "E_TRANSCRIPTION_MEMORY"
    transient = True


class TranscriptionSlow(TranscriptionFailed):
    """The speech model took too long. Retry later; if it stays slow, raise NEXUS_SPEECH_SECONDS."""

    code = "E_TRANSCRIPTION_SLOW"
    transient = True


class TranscriptionUnreachable(TranscriptionFailed):
    """The speech model can't be reached. Check that its server runs, then retry."""

    code = "E_TRANSCRIPTION_UNREACHABLE"
    transient = True


class TranscriptionRateLimited(TranscriptionFailed):
    """The speech model is getting too many requests. Nexus continues when it accepts them again."""

    code = "E_TRANSCRIPTION_RATE_LIMITED"
    transient = True
    #: Many recordings at once reach this limit as a matter of course, and none of them is to blame.
    counted = False
    retry_after = 20.0


class TranscriptionKeyRefused(TranscriptionFailed):
    """The speech model does not accept the key. Set a valid NEXUS_SPEECH_API_KEY, then retry."""

    code = "E_TRANSCRIPTION_KEY_REFUSED"


class TranscriptionNoCredit(TranscriptionFailed):
    """The speech model's account has no credit left. Add some, or set another key, then retry."""

    code = "E_TRANSCRIPTION_NO_CREDIT"


class TranscriptionRefused(TranscriptionFailed):
    """The speech model's server refused the request. Check NEXUS_SPEECH_MODEL and NEXUS_SPEECH_BASE_URL, then retry."""

    code = "E_TRANSCRIPTION_REFUSED"


class TranscriptionUnusable(TranscriptionFailed):
    """The speech model's answer can't be used. Check NEXUS_SPEECH_MODEL and NEXUS_SPEECH_BASE_URL, then retry."""

    code = "E_TRANSCRIPTION_UNUSABLE"
