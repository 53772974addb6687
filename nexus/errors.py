"""Every way in which Nexus says no.

    NexusError
    ├── ApiError                      answers a request: code, HTTP status, a sentence
    │   ├── InvalidRequest            E_INVALID_REQUEST                400
    │   │   ├── InvalidUrl            E_INVALID_URL                    400
    │   │   ├── InvalidKind           E_INVALID_KIND                   400
    │   │   ├── InvalidFileType       E_INVALID_FILE_TYPE              400
    │   │   ├── StorageMissing        E_STORAGE_MISSING                400
    │   │   ├── UploadExpired         E_UPLOAD_EXPIRED                 400
    │   │   └── FileTooLarge          E_FILE_TOO_LARGE                 413
    │   ├── Unauthorized              E_UNAUTHORIZED                   401
    │   ├── Forbidden                 E_FORBIDDEN                      403
    │   │   └── DefaultLibrary        E_DEFAULT_LIBRARY_CANNOT_SHARE   403
    │   ├── NotFound                  E_NOT_FOUND                      404
    │   ├── Conflict                  E_CONFLICT                       409
    │   │   └── InvalidState          E_INVALID_STATE                  409
    │   ├── RateLimited               E_RATE_LIMITED                   429
    │   ├── Internal                  E_INTERNAL                       500
    │   ├── SignUploadFailed          E_SIGN_UPLOAD_FAILED             502
    │   ├── NotReady                  E_NOT_READY                      503
    │   └── IngestTimeout             E_INGEST_TIMEOUT                 504
    └── WorkError                     ends an attempt: kept in last_error_code, never answers a request
        ├── ExtractionFailed          E_EXTRACTION_FAILED
        ├── ExtractorNotImplemented   E_EXTRACTOR_NOT_IMPLEMENTED
        ├── TranscriptUnavailable     E_TRANSCRIPT_UNAVAILABLE
        ├── JobTimeout                E_JOB_TIMEOUT
        ├── FetchFailed               E_FETCH_FAILED                   transient
        ├── UploadFailed              E_UPLOAD_FAILED
        └── EmbeddingFailed           E_EMBEDDING_FAILED
            └── EmbeddingTimeout      E_EMBEDDING_TIMEOUT

A class's docstring is its default message: what happened, then what to do next.
"""

from __future__ import annotations

import inspect
from typing import ClassVar, TypeVar

E = TypeVar("E", bound="NexusError")


class NexusError(Exception):
    """Something went wrong."""

    code: ClassVar[str]

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or describe(type(self)))

    @property
    def message(self) -> str:
        return str(self.args[0])


def describe(error: type[NexusError]) -> str:
    return " ".join((inspect.getdoc(error) or "").split())


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


class RateLimited(ApiError):
    """You have used up your allowance for this. Wait until tomorrow or ask for a higher limit."""

    code = "E_RATE_LIMITED"
    status = 429


class Internal(ApiError):
    """Something broke on our side. Try again; if it stays, look for the request id in the server's log."""

    code = "E_INTERNAL"
    status = 500


class NotReady(ApiError):
    """The server can't reach one of its parts. Try again in a moment."""

    code = "E_NOT_READY"
    status = 503


class SignUploadFailed(ApiError):
    """The file store did not give a place to upload to. Try again in a moment."""

    code = "E_SIGN_UPLOAD_FAILED"
    status = 502


class IngestTimeout(ApiError):
    """The file store was too slow to check the file. Nothing has changed: confirm it again."""

    code = "E_INGEST_TIMEOUT"
    status = 504


class WorkError(NexusError):
    """The work ended without a result."""

    #: Whether the same work may succeed a little later, by itself.
    transient: ClassVar[bool] = False
    #: Where it happened, as `failure_stage` says it.
    stage: ClassVar[str] = "extract"


class ExtractionFailed(WorkError):
    """Its text could not be taken out. Retry once; if it fails again, the source can't be read by Nexus."""

    code = "E_EXTRACTION_FAILED"


class ExtractorNotImplemented(WorkError):
    """Nexus has no processor for this kind yet. Retry after one is installed."""

    code = "E_EXTRACTOR_NOT_IMPLEMENTED"


class TranscriptUnavailable(WorkError):
    """It has no transcript, so there is no text to read. It can still be played."""

    code = "E_TRANSCRIPT_UNAVAILABLE"
    stage = "transcribe"


class JobTimeout(WorkError):
    """The worker stopped in the middle of it three times. Retry; if it happens again, look at the worker's log."""

    code = "E_JOB_TIMEOUT"


class FetchFailed(WorkError):
    """The source could not be reached. Check that it opens in a browser, then retry."""

    code = "E_FETCH_FAILED"
    transient = True


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


def tree(root: type[E]) -> list[type[E]]:
    """Every error below a root that has a code, in the order of definition."""
    found = [root] if "code" in root.__dict__ else []
    for child in root.__subclasses__():
        found += tree(child)
    return found
