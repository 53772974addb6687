"""Errors that end the embedding of a text: it stays readable, and is found by its words."""

from __future__ import annotations

from nexus.errors.work import WorkError


class EmbeddingFailed(WorkError):
    """You can read its text, but it could not be prepared for search. Retry later."""

    code = "E_EMBEDDING_FAILED"
    stage = "embed"

    def __init__(self, message: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        if retry_after is not None:
            self.retry_after = retry_after
        #: What it cost nevertheless.
        self.tokens_used = 0


class EmbeddingTimeout(EmbeddingFailed):
    """You can read its text, but the worker stopped three times while preparing it for search. Retry later."""

    code = "E_EMBEDDING_TIMEOUT"


class EmbeddingNoModel(EmbeddingFailed):
    """The model for search by meaning is not installed, or its files are damaged. Run `nexus models install`, and Nexus
    continues."""

    code = "E_EMBEDDING_NO_MODEL"
    transient = True
    #: Nothing can begin before somebody has installed it.
    counted = False
    retry_after = 60.0


class EmbeddingBadModel(EmbeddingFailed):
    """The folder that NEXUS_EMBED_FOLDER names holds no model that Nexus can use. Check its files, then retry."""

    code = "E_EMBEDDING_BAD_MODEL"


class EmbeddingCrashed(EmbeddingFailed):
    """The process that prepares texts for search ended. Retry; if it happens again, look at the worker's log."""

    code = "E_EMBEDDING_CRASHED"
    transient = True


class EmbeddingStopped(EmbeddingFailed):
    """Nexus was stopped while it prepared this for search. It continues on its own."""

    code = "E_EMBEDDING_STOPPED"
    transient = True
    counted = False


class EmbeddingMemory(EmbeddingFailed):
    """There was not enough memory to prepare it for search. Free some, or set a smaller model, then retry."""

    code = "E_EMBEDDING_MEMORY"
    transient = True


class EmbeddingSlow(EmbeddingFailed):
    """The model for search by meaning took too long. Retry later; if it stays slow, raise NEXUS_EMBED_SECONDS."""

    code = "E_EMBEDDING_SLOW"
    transient = True


class EmbeddingUnreachable(EmbeddingFailed):
    """The embedding model can't be reached. Check that its server runs, then retry."""

    code = "E_EMBEDDING_UNREACHABLE"
    transient = True


class EmbeddingRateLimited(EmbeddingFailed):
    """The embedding model is getting too many requests. Nexus continues when it accepts them again."""

    code = "E_EMBEDDING_RATE_LIMITED"
    transient = True
    #: Many items at once reach this limit as a matter of course, and none of them is to blame.
    counted = False
    retry_after = 20.0


class EmbeddingKeyRefused(EmbeddingFailed):
    """The embedding model does not accept the key. Set a valid NEXUS_EMBED_API_KEY, then retry."""

    code = "E_EMBEDDING_KEY_REFUSED"


class EmbeddingNoCredit(EmbeddingFailed):
    """The embedding model's account has no credit left. Add some, or set another key, then retry."""

    code = "E_EMBEDDING_NO_CREDIT"


class EmbeddingRefused(EmbeddingFailed):
    """The embedding model's server refused the request. Check NEXUS_EMBED_MODEL and NEXUS_EMBED_BASE_URL, then
    retry."""

    code = "E_EMBEDDING_REFUSED"


class EmbeddingUnusable(EmbeddingFailed):
    """The embedding model's answer can't be used. Check NEXUS_EMBED_MODEL and NEXUS_EMBED_BASE_URL, then retry."""

    code = "E_EMBEDDING_UNUSABLE"


class EmbeddingQuota(EmbeddingFailed):
    """Your allowance for search by meaning is used up for today. Nexus continues when you have some again."""

    code = "E_EMBEDDING_QUOTA"
    transient = True
    counted = False
    #: It can take a day, so there is no use in asking more often.
    retry_after = 3600.0
