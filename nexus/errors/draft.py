"""Errors that end the drafting of a story."""

from __future__ import annotations

from nexus.errors.work import WorkError


class DraftFailed(WorkError):
    """The story could not be drafted. Generate it again."""

    code = "E_DRAFT_FAILED"
    stage = "generate"

    def __init__(self, message: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        #: What it cost nevertheless.
        self.tokens_used = 0


class DraftUnreachable(DraftFailed):
    """The model can't be reached. Generate again in a few minutes."""

    code = "E_DRAFT_UNREACHABLE"
    transient = True


class DraftTimeout(DraftFailed):
    """The model took too long to answer. Generate again; if it stays slow, set a faster model."""

    code = "E_DRAFT_TIMEOUT"
    transient = True


class DraftRateLimited(DraftFailed):
    """The model is getting too many requests. Generate again in a minute."""

    code = "E_DRAFT_RATE_LIMITED"
    transient = True


class DraftKeyRefused(DraftFailed):
    """The model does not accept the key. Set one that is valid for this model, then generate again."""

    code = "E_DRAFT_KEY_REFUSED"


class DraftNoCredit(DraftFailed):
    """The model's account has no credit left. Add some, or set another key, then generate again."""

    code = "E_DRAFT_NO_CREDIT"


class DraftRefused(DraftFailed):
    """The model's server refused the request. Check the model's name and address, and whether the model can read a
    text of this length."""

    code = "E_DRAFT_REFUSED"


class DraftUnusable(DraftFailed):
    """The model gave no usable draft, even after it was told what was wrong. Generate again, or set a more capable
    model."""

    code = "E_DRAFT_UNUSABLE"


class DraftTooShort(DraftFailed):
    """There is too little text for a story. Enter the article's text by hand, then generate again."""

    code = "E_DRAFT_TOO_SHORT"
