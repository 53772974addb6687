"""Errors that answer a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from nexus.errors.base import NexusError


class ApiError(NexusError):
    """The request can't be answered."""

    status: ClassVar[int]


class InvalidRequest(ApiError):
    """The request is not valid. Check its fields against /docs."""

    code = "E_INVALID_REQUEST"
    status = 400


class InvalidUrl(InvalidRequest):
    """This is not a web address. Enter a full address that starts with http:// or https://."""

    code = "E_INVALID_URL"


class NoFeed(InvalidRequest):
    """No feed was found at this address. Give the address of a feed, or of a page that names its feed."""

    code = "E_NO_FEED"


class FeedUnreachable(InvalidRequest):
    """The site of this feed gave no answer. Check the address, then try again in a moment."""

    code = "E_FEED_UNREACHABLE"


class InvalidKind(InvalidRequest):
    """Items of this kind can't be added here. A URL adds a web_article or a video; files are uploaded."""

    code = "E_INVALID_KIND"


class InvalidFileType(InvalidRequest):
    """This file is not of the given kind. Upload a PDF as pdf and an EPUB as epub."""

    code = "E_INVALID_FILE_TYPE"


class StorageMissing(InvalidRequest):
    """The file has not arrived yet. Finish the upload, then confirm it again."""

    code = "E_STORAGE_MISSING"


class UploadExpired(InvalidRequest):
    """The upload took too long, and its link has expired. Retry to get a new one."""

    code = "E_UPLOAD_EXPIRED"


class FileTooLarge(InvalidRequest):
    """This file is too large. By default, Nexus takes PDFs of up to 100 MiB and EPUBs of up to 50 MiB."""

    code = "E_FILE_TOO_LARGE"
    status = 413


class InfectedFile(InvalidRequest):
    """The malware scanner refused this file, so it was not kept. Get it from its original source."""

    code = "E_INFECTED_FILE"


class Unauthorized(ApiError):
    """You are not signed in. Sign in again; or send a personal token, or a JWT with the internal secret."""

    code = "E_UNAUTHORIZED"
    status = 401


class Forbidden(ApiError):
    """You can see this but not change it. Ask its creator or an admin of a library that holds it."""

    code = "E_FORBIDDEN"
    status = 403


class DefaultLibrary(Forbidden):
    """Your default library can't be shared. Create another library, and share that one."""

    code = "E_DEFAULT_LIBRARY_CANNOT_SHARE"


class NotFound(ApiError):
    """Not found, or you don't have access."""

    code = "E_NOT_FOUND"
    status = 404


class Conflict(ApiError):
    """This has changed in the meantime. Reload it, then try again."""

    code = "E_CONFLICT"
    status = 409


class TooManySubscriptions(Conflict):
    """You have reached the limit of feeds to subscribe to. Unsubscribe from some of them first."""

    code = "E_TOO_MANY_SUBSCRIPTIONS"


class InvalidState(Conflict):
    """This can't be done in the current state. Only what has failed can be retried."""

    code = "E_INVALID_STATE"


class Unsupported(Conflict):
    """The article does not fully support this story. Check it, or confirm that you want to publish it as it is."""

    code = "E_UNSUPPORTED"

    def __init__(self, statements: Sequence[str] = ()) -> None:
        self.statements = list(statements)
        named = ", ".join(self.statements)
        super().__init__(
            f"Not fully supported by the article: {named}. Check this, or confirm that you want to publish it as it is."
            if statements
            else "The whole story is now supported. Publish it without a confirmation."
        )


class JobNotReady(Conflict):
    """There is no title or text yet. Wait until the page has been read, or enter them by hand."""

    code = "NOT_READY"


class RateLimited(ApiError):
    """You have used up your allowance for this. Wait until tomorrow or ask for a higher limit."""

    code = "E_RATE_LIMITED"
    status = 429

    def __init__(self, message: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        #: After how many seconds the same request would be answered, if that is known.
        self.retry_after = retry_after


class Internal(ApiError):
    """Something went wrong in Nexus. Try again; if it keeps failing, look for the request id in the server's log."""

    code = "E_INTERNAL"
    status = 500


class CancellationFailed(Internal):
    """The import could not be paused and is still running. Try to pause it again."""

    code = "E_CANCELLATION_FAILED"


class SignUploadFailed(ApiError):
    """The file store did not provide an upload link. Try again in a moment."""

    code = "E_SIGN_UPLOAD_FAILED"
    status = 502


class SourceUnavailable(ApiError):
    """The recording can't be fetched from its site at the moment. Open the original, or try again later."""

    code = "E_SOURCE_UNAVAILABLE"
    status = 502


class NotReady(ApiError):
    """The server can't reach something it needs. Try again in a moment."""

    code = "E_NOT_READY"
    status = 503


class WorkspaceFailed(NotReady):
    """The disk is full, or the import's folder is gone. Free some disk space, then start again."""


class IngestTimeout(ApiError):
    """The file store was too slow to check the file. Nothing has changed: confirm it again."""

    code = "E_INGEST_TIMEOUT"
    status = 504


class StorageFull(ApiError):
    """The file was not saved because the disk is full. Free some disk space, then try again."""

    code = "E_STORAGE_FULL"
    status = 507
