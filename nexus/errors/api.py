"""What answers a request with no."""

from __future__ import annotations

from typing import ClassVar

from nexus.errors.base import NexusError


class ApiError(NexusError):
    """The request can't be answered."""

    status: ClassVar[int]


class InvalidRequest(ApiError):
    """The request is not well-formed. Check its fields against /docs."""

    code = "E_INVALID_REQUEST"
    status = 400


class InvalidUrl(InvalidRequest):
    """This is not a web address. Give it in full, beginning with http:// or https://, and one at a time."""

    code = "E_INVALID_URL"


class InvalidKind(InvalidRequest):
    """This kind can't be made here. A URL makes a web_article or a video; files are uploaded."""

    code = "E_INVALID_KIND"


class InvalidFileType(InvalidRequest):
    """This file is not of the kind that was said. Upload a PDF as pdf and an EPUB as epub."""

    code = "E_INVALID_FILE_TYPE"


class StorageMissing(InvalidRequest):
    """The file has not arrived yet. Finish the upload, then confirm it again."""

    code = "E_STORAGE_MISSING"


class UploadExpired(InvalidRequest):
    """The upload took too long and its link is over. Retry to get a new place to upload to."""

    code = "E_UPLOAD_EXPIRED"


class FileTooLarge(InvalidRequest):
    """This file is too large. Nexus takes PDFs of up to 100 MiB and EPUBs of up to 50 MiB unless set otherwise."""

    code = "E_FILE_TOO_LARGE"
    status = 413


class Unauthorized(ApiError):
    """You are not signed in. Send a valid bearer token and the internal secret, or sign in again."""

    code = "E_UNAUTHORIZED"
    status = 401


class Forbidden(ApiError):
    """You may see this but not change it. Ask its creator or an admin of a library that holds it."""

    code = "E_FORBIDDEN"
    status = 403


class DefaultLibrary(Forbidden):
    """A default library is its owner's alone. Make another library to share things."""

    code = "E_DEFAULT_LIBRARY_CANNOT_SHARE"


class NotFound(ApiError):
    """There is no such thing, or you may not see it."""

    code = "E_NOT_FOUND"
    status = 404


class Conflict(ApiError):
    """This contradicts what is there. Look at its present state and try again."""

    code = "E_CONFLICT"
    status = 409


class InvalidState(Conflict):
    """This can't be done in the present state. Only something that has failed can be retried."""

    code = "E_INVALID_STATE"


class JobNotReady(Conflict):
    """There is no title and text yet. Wait until the page is read, or enter them by hand."""

    code = "NOT_READY"


class RateLimited(ApiError):
    """You have used up your allowance for this. Wait until tomorrow or ask for a higher limit."""

    code = "E_RATE_LIMITED"
    status = 429

    def __init__(self, message: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        #: Seconds, where it is known when the same would be answered.
        self.retry_after = retry_after


class Internal(ApiError):
    """Something broke on our side. Try again; if it stays, look for the request id in the server's log."""

    code = "E_INTERNAL"
    status = 500


class CancellationFailed(Internal):
    """The import could not be told to stop, and is still running. Try to pause it again."""

    code = "E_CANCELLATION_FAILED"


class NotReady(ApiError):
    """The server can't reach one of its parts. Try again in a moment."""

    code = "E_NOT_READY"
    status = 503


class StorageFull(ApiError):
    """There is no room left for files. Free some disk space, then try again; nothing was kept of this one."""

    code = "E_STORAGE_FULL"
    status = 507


class SignUploadFailed(ApiError):
    """The file store did not give a place to upload to. Try again in a moment."""

    code = "E_SIGN_UPLOAD_FAILED"
    status = 502


class IngestTimeout(ApiError):
    """The file store was too slow to check the file. Nothing has changed: confirm it again."""

    code = "E_INGEST_TIMEOUT"
    status = 504
