"""What ends an attempt."""

from __future__ import annotations

from typing import ClassVar

from nexus.errors.base import NexusError, tree


class WorkError(NexusError):
    """The work ended without a result."""

    #: Whether the same work may succeed a little later, by itself.
    transient: ClassVar[bool] = False
    #: Whether it counts towards the automatic tries. What nobody could begin with does not.
    counted: ClassVar[bool] = True
    #: Where it happened, as `failure_stage` says it.
    stage: ClassVar[str] = "extract"
    #: The code that clients see instead of its own.
    shown_as: ClassVar[str | None] = None
    #: How many seconds the other side asked to be left alone.
    retry_after: float | None = None


class ExtractionFailed(WorkError):
    """Its text could not be taken out. Retry once; if it fails again, the source can't be read by Nexus."""

    code = "E_EXTRACTION_FAILED"


class EmptyContent(ExtractionFailed):
    """There is hardly any text in it. Open the original; if you see text there, paste it into a story."""

    code = "E_EMPTY_CONTENT"


class BlockedPage(ExtractionFailed):
    """The site answered with a check for robots instead of the page. Open the original, or paste its text into a
    story."""

    code = "E_BLOCKED_PAGE"


class LoginWall(ExtractionFailed):
    """The page is behind a login or a paywall. Open the original, or paste its text into a story."""

    code = "E_LOGIN_WALL"


class PageTooLarge(ExtractionFailed):
    """The page has more than 2 MiB of HTML, and Nexus reads no more than that. Open the original."""

    code = "E_PAGE_TOO_LARGE"


class PdfEncrypted(ExtractionFailed):
    """The PDF is locked with a password. Save a copy without one, and add that."""

    code = "E_PDF_ENCRYPTED"


class PdfNoText(ExtractionFailed):
    """The PDF has pictures of pages and no text. It can be read as a file; to search it, run it through OCR first."""

    code = "E_PDF_NO_TEXT"


class PdfDamaged(ExtractionFailed):
    """The PDF is damaged and can't be read. Get it again from its source, and add that copy."""

    code = "E_PDF_DAMAGED"


class EpubDrm(ExtractionFailed):
    """The book is locked by copy protection. Nexus reads only books without it."""

    code = "E_EPUB_DRM"


class EpubDamaged(ExtractionFailed):
    """The EPUB is damaged and can't be read. Get it again from its source, and add that copy."""

    code = "E_EPUB_DAMAGED"


class EpubTooLarge(ExtractionFailed):
    """The EPUB unpacks to more than Nexus takes. Split it, or get an edition with smaller pictures."""

    code = "E_EPUB_TOO_LARGE"


class TextUnreadable(ExtractionFailed):
    """The file is not text. Save it as plain text or Markdown in UTF-8, and add that."""

    code = "E_TEXT_UNREADABLE"


class ParserTimeout(ExtractionFailed):
    """Reading it took too long and was stopped. Retry once; if it happens again, Nexus can't read this source."""

    code = "E_PARSER_TIMEOUT"


class ParserMemory(ExtractionFailed):
    """Reading it needed more memory than it may have. Nexus can't read this source."""

    code = "E_PARSER_MEMORY"


class ParserOutput(ExtractionFailed):
    """There is more text in it than Nexus takes. Split it into parts."""

    code = "E_PARSER_OUTPUT"


class ParserCrashed(ExtractionFailed):
    """The parser broke down on it. Retry once; if it happens again, the source is damaged."""

    code = "E_PARSER_CRASHED"


class ExtractorNotImplemented(WorkError):
    """Nexus has no processor for this kind yet. Retry after one is installed."""

    code = "E_EXTRACTOR_NOT_IMPLEMENTED"
    shown_as = ExtractionFailed.code


class FileMissing(WorkError):
    """The file is not in the store any more. Delete this, and add the file again."""

    code = "E_FILE_MISSING"


class FileChanged(WorkError):
    """The file in the store is not the one that was checked. Delete this, and add the file again."""

    code = "E_FILE_CHANGED"


class FileUnreachable(WorkError):
    """The file store can't be reached at the moment. Retry later."""

    code = "E_FILE_UNREACHABLE"
    transient = True


class TranscriptUnavailable(WorkError):
    """It has no transcript, so there is no text to read. It can still be played."""

    code = "E_TRANSCRIPT_UNAVAILABLE"
    stage = "transcribe"


class TranscriptionQuota(WorkError):
    """The day's allowance of transcription is used up. It goes on by itself when there is some again."""

    code = "E_TRANSCRIPTION_QUOTA"
    stage = "transcribe"
    transient = True
    counted = False
    #: It can take a day: asking more often would help nobody.
    retry_after = 3600.0


class JobTimeout(WorkError):
    """The worker stopped in the middle of it three times. Retry; if it happens again, look at the worker's log."""

    code = "E_JOB_TIMEOUT"


class FetchFailed(WorkError):
    """The source could not be reached. Check that it opens in a browser, then retry."""

    code = "E_FETCH_FAILED"
    transient = True
    #: What the site answered with, if it answered: its status and its whole Content-Type header.
    http_status: int | None = None
    content_type: str | None = None


class FetchTimeout(FetchFailed):
    """The source was too slow to answer. Check that it opens in a browser, then retry."""

    code = "E_FETCH_TIMEOUT"


class FetchBusy(FetchFailed):
    """Other pages of this site are being fetched, and it gets few requests at once. Retry in a moment."""

    code = "E_FETCH_BUSY"
    counted = False


class FetchUnknownHost(FetchFailed):
    """There is no site of this name. Check the address for a typing error, then retry or add it anew."""

    code = "E_FETCH_UNKNOWN_HOST"


class FetchHttp5xx(FetchFailed):
    """The site has a fault of its own at the moment. Retry later."""

    code = "E_FETCH_HTTP_5XX"


class FetchRateLimited(FetchFailed):
    """The site asks for fewer requests. Retry later."""

    code = "E_FETCH_RATE_LIMITED"


class FetchHttp4xx(FetchFailed):
    """The site does not give out this page. Open the original to see whether it is still there."""

    code = "E_FETCH_HTTP_4XX"
    transient = False


class FetchBlockedAddress(FetchFailed):
    """The address leads into a private network, where Nexus does not go. Add a public address."""

    code = "E_FETCH_BLOCKED_ADDRESS"
    transient = False


class FetchTooLarge(FetchFailed):
    """The source is larger than Nexus takes from an address. Download it, and add it as a file."""

    code = "E_FETCH_TOO_LARGE"
    transient = False


class FetchRedirects(FetchFailed):
    """The address only leads from one place to the next. Open it in a browser, and add the address it ends at."""

    code = "E_FETCH_REDIRECTS"
    transient = False


class FetchWrongType(FetchFailed):
    """There is no page or PDF at this address. Add the address of an article."""

    code = "E_FETCH_WRONG_TYPE"
    transient = False


class FetchInsecure(FetchFailed):
    """The site could not prove who it is. Check the address in a browser; Nexus does not go on without proof."""

    code = "E_FETCH_INSECURE"
    transient = False


class FetchBadAnswer(FetchFailed):
    """The site's answer makes no sense. Check that it opens in a browser, then retry."""

    code = "E_FETCH_BAD_ANSWER"
    transient = False


class FetchGivenUp(FetchFailed):
    """Title and text were entered by hand before the page arrived."""

    code = "E_FETCH_GIVEN_UP"
    transient = False


class UploadFailed(WorkError):
    """The file did not arrive whole. Upload it again."""

    code = "E_UPLOAD_FAILED"
    stage = "upload"


class EmbeddingFailed(WorkError):
    """Its text is there to read, but could not be prepared for search by meaning. Retry later."""

    code = "E_EMBEDDING_FAILED"
    stage = "embed"


class EmbeddingTimeout(EmbeddingFailed):
    """Its text is there to read, but the worker stopped three times while preparing it for search. Retry later."""

    code = "E_EMBEDDING_TIMEOUT"


_SHOWN_AS = {error.code: error.shown_as for error in tree(WorkError) if error.shown_as is not None}


def public_code(code: str | None) -> str | None:
    """A kept error code as clients see it: one that is only Nexus's own affair shows as another."""
    return None if code is None else _SHOWN_AS.get(code, code)
