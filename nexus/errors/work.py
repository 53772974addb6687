"""Errors that end an attempt."""

from __future__ import annotations

from typing import ClassVar

from nexus.errors.base import NexusError, tree


class WorkError(NexusError):
    """The work ended without a result."""

    #: Whether the same work may succeed a little later.
    transient: ClassVar[bool] = False
    #: Whether it uses up one of the automatic tries. Work that could not even begin does not.
    counted: ClassVar[bool] = True
    #: Whether the work goes on at once, without a wait: it only lets others have their turn.
    at_once: ClassVar[bool] = False
    #: The `failure_stage`.
    stage: ClassVar[str] = "extract"
    #: The code that clients see instead of its own.
    shown_as: ClassVar[str | None] = None
    #: How many seconds the other side asked to wait.
    retry_after: float | None = None
    #: Whether the other side may ask to wait for a day, and not for an hour at most.
    lasting: ClassVar[bool] = False


class ExtractionFailed(WorkError):
    """Its text could not be extracted. Retry once; if it fails again, Nexus can't read this source."""

    code = "E_EXTRACTION_FAILED"


class EmptyContent(ExtractionFailed):
    """It has hardly any text. Open the original; if you see text there, paste it."""

    code = "E_EMPTY_CONTENT"


class BlockedPage(ExtractionFailed):
    """The site answered with a bot check (CAPTCHA) instead of the page. Open the original, or paste its text."""

    code = "E_BLOCKED_PAGE"


class LoginWall(ExtractionFailed):
    """The page is behind a login or a paywall. Open the original, or paste its text."""

    code = "E_LOGIN_WALL"


class PageTooLarge(ExtractionFailed):
    """The page has more than 2 MiB of HTML, which is more than Nexus reads. Open the original."""

    code = "E_PAGE_TOO_LARGE"


class PdfEncrypted(ExtractionFailed):
    """The PDF is locked with a password. Save a copy without one, and add that copy."""

    code = "E_PDF_ENCRYPTED"


class PdfNoText(ExtractionFailed):
    """The PDF is a scan without text. You can read its pages; to search it, run it through OCR."""

    code = "E_PDF_NO_TEXT"


class PdfDamaged(ExtractionFailed):
    """The PDF is damaged and can't be read. Download it again from its source, and add that copy."""

    code = "E_PDF_DAMAGED"


class EpubDrm(ExtractionFailed):
    """The book is locked by copy protection. Nexus reads only books without it."""

    code = "E_EPUB_DRM"


class EpubDamaged(ExtractionFailed):
    """The EPUB is damaged and can't be read. Download it again from its source, and add that copy."""

    code = "E_EPUB_DAMAGED"


class EpubTooLarge(ExtractionFailed):
    """The EPUB is too large when unpacked. Split it, or get an edition with smaller pictures."""

    code = "E_EPUB_TOO_LARGE"


class TextUnreadable(ExtractionFailed):
    """The file is not text. Save it as plain text or Markdown in UTF-8, and add that copy."""

    code = "E_TEXT_UNREADABLE"


class TranscriptUnreadable(ExtractionFailed):
    """This is not a transcript that Nexus can read. Save it as WebVTT, SRT, JSON or plain text in UTF-8."""

    code = "E_TRANSCRIPT_UNREADABLE"
    stage = "transcribe"


class FeedUnreadable(ExtractionFailed):
    """This address does not lead to a feed. Open it in a browser, and look for the feed on its site."""

    code = "E_FEED_UNREADABLE"


class FeedIsPage(FeedUnreadable):
    """This address answers with a web page instead of a feed. Look on its site for the feed's new address."""

    code = "E_FEED_IS_PAGE"


class ParserTimeout(ExtractionFailed):
    """Reading it took too long and was stopped. Retry once; if it happens again, Nexus can't read this source."""

    code = "E_PARSER_TIMEOUT"


class ParserMemory(ExtractionFailed):
    """Reading it took too much memory. Nexus can't read this source."""

    code = "E_PARSER_MEMORY"


class ParserOutput(ExtractionFailed):
    """It has more text than Nexus can store. Split it into parts."""

    code = "E_PARSER_OUTPUT"


class ParserCrashed(ExtractionFailed):
    """The parser crashed on it. Retry once; if it happens again, the source may be damaged."""

    code = "E_PARSER_CRASHED"


class ExtractorNotImplemented(WorkError):
    """Nexus has no processor for this kind yet. Retry after one is installed."""

    code = "E_EXTRACTOR_NOT_IMPLEMENTED"
    shown_as = ExtractionFailed.code


class FileMissing(WorkError):
    """The file is no longer in the store. Remove this item, and add the file again."""

    code = "E_FILE_MISSING"


class FileChanged(WorkError):
    """The file in the store is not the one that was uploaded. Remove this item, and add the file again."""

    code = "E_FILE_CHANGED"


class FileUnreachable(WorkError):
    """The file store can't be reached at the moment. Retry later."""

    code = "E_FILE_UNREACHABLE"
    transient = True


class TranscriptUnavailable(WorkError):
    """It has no transcript, so there is no text to read. You can still play it."""

    code = "E_TRANSCRIPT_UNAVAILABLE"
    stage = "transcribe"


class VideoUnavailable(TranscriptUnavailable):
    """This video is private or was removed. Check that it opens in a browser, or add a transcript."""

    code = "E_VIDEO_UNAVAILABLE"


class VideoAgeRestricted(TranscriptUnavailable):
    """This video is for adults who are signed in, so Nexus can't get its captions. Add a transcript."""

    code = "E_VIDEO_AGE_RESTRICTED"


class ProviderBlocked(WorkError):
    """The video's site blocks requests from this address at the moment. Nexus tries again later on its own."""

    code = "E_PROVIDER_BLOCKED"
    stage = "transcribe"
    transient = True
    counted = False
    lasting = True
    retry_after = 900.0

    def __init__(self, message: str | None = None, asked_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = max(asked_seconds or 0.0, ProviderBlocked.retry_after)


class TranscriptionQuota(WorkError):
    """Your transcription allowance for today is used up. Nexus continues when you have some again."""

    code = "E_TRANSCRIPTION_QUOTA"
    stage = "transcribe"
    transient = True
    counted = False
    #: It can take a day, so there is no use in asking more often.
    retry_after = 3600.0


class JobTimeout(WorkError):
    """The worker stopped three times while reading it. Retry; if it happens again, look at the worker's log."""

    code = "E_JOB_TIMEOUT"
    transient = True


class FetchFailed(WorkError):
    """The source could not be reached. Check that it opens in a browser, then retry."""

    code = "E_FETCH_FAILED"
    transient = True
    #: The status and the whole Content-Type header of the site's answer, if there was one.
    http_status: int | None = None
    content_type: str | None = None


class FetchTimeout(FetchFailed):
    """The source was too slow to answer. Check that it opens in a browser, then retry."""

    code = "E_FETCH_TIMEOUT"


class FetchBusy(FetchFailed):
    """Nexus is fetching other pages of this site, and sends it only a few requests at a time. Retry in a moment."""

    code = "E_FETCH_BUSY"
    counted = False


class FetchUnknownHost(FetchFailed):
    """Site not found. Check the address for typos, then retry or add it again."""

    code = "E_FETCH_UNKNOWN_HOST"


class FetchHttp5xx(FetchFailed):
    """The site is down. Retry later."""

    code = "E_FETCH_HTTP_5XX"


class FetchRateLimited(FetchFailed):
    """The site is getting too many requests. Retry later."""

    code = "E_FETCH_RATE_LIMITED"


class FetchHttp4xx(FetchFailed):
    """The site does not have this page, or refuses to show it. Open the original."""

    code = "E_FETCH_HTTP_4XX"
    transient = False


class FeedGone(FetchHttp4xx):
    """The site says that this feed is gone for good. Unsubscribe, or look on the site for its new address."""

    code = "E_FEED_GONE"


class FetchBlockedAddress(FetchFailed):
    """Nexus does not fetch from this address. Add a public address, without a port."""

    code = "E_FETCH_BLOCKED_ADDRESS"
    transient = False


class FetchTooLarge(FetchFailed):
    """The source is too large to fetch. Download it, and add it as a file."""

    code = "E_FETCH_TOO_LARGE"
    transient = False


class FetchRedirects(FetchFailed):
    """The page redirects in a loop. Open it in a browser, and add the address you end up at."""

    code = "E_FETCH_REDIRECTS"
    transient = False


class FetchWrongType(FetchFailed):
    """There is no page, PDF or EPUB at this address. Add the address of an article."""

    code = "E_FETCH_WRONG_TYPE"
    transient = False


class FetchInsecure(FetchFailed):
    """Nexus could not connect to the site securely. Check that it opens in a browser."""

    code = "E_FETCH_INSECURE"
    transient = False


class FetchBadAnswer(FetchFailed):
    """The site sent a response that Nexus can't read. Check that it opens in a browser, then retry."""

    code = "E_FETCH_BAD_ANSWER"
    transient = False


class FetchGivenUp(FetchFailed):
    """Title and text were entered by hand before the page arrived."""

    code = "E_FETCH_GIVEN_UP"
    transient = False


class FetchInfected(FetchFailed):
    """The malware scanner refused what is at this address, so it was not kept."""

    code = "E_FETCH_INFECTED"
    transient = False


class FetchNoRoom(FetchFailed):
    """Your files and pictures use up all your storage. Delete some, then refresh this item."""

    code = "E_FETCH_NO_ROOM"
    transient = False


class ScannerUnreachable(WorkError):
    """The malware scanner gave no answer, so this was not kept. Retry later."""

    code = "E_SCANNER_UNREACHABLE"
    transient = True


class PictureRefused(WorkError):
    """A picture of the text can't be shown. Open the original to see it."""

    code = "E_PICTURE_REFUSED"


class PictureWrongType(PictureRefused):
    """This picture is not a PNG, JPEG, GIF, WebP or AVIF. Open the original to see it."""

    code = "E_PICTURE_WRONG_TYPE"


class PictureTooLarge(PictureRefused):
    """The picture has more pixels than Nexus keeps. Open the original to see it."""

    code = "E_PICTURE_TOO_LARGE"


class PicturesTooMany(PictureRefused):
    """The text has more pictures, or larger ones, than Nexus keeps. Open the original to see them all."""

    code = "E_PICTURES_TOO_MANY"


class PictureNoRoom(PictureRefused):
    """Your files and pictures use up all your storage. Delete some, then refresh this item."""

    code = "E_PICTURE_NO_ROOM"


class UploadFailed(WorkError):
    """The file did not arrive whole. Upload it again."""

    code = "E_UPLOAD_FAILED"
    stage = "upload"


_SHOWN_AS = {error.code: error.shown_as for error in tree(WorkError) if error.shown_as is not None}


def public_code(code: str | None) -> str | None:
    """Return the code that clients see for a stored one: some are internal and are shown as another."""
    return None if code is None else _SHOWN_AS.get(code, code)
