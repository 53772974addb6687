"""Every error that Nexus answers with or stores.

    NexusError
    ├── ApiError                      answers a request: code, HTTP status, message
    │   ├── InvalidRequest            E_INVALID_REQUEST                400
    │   │   ├── InvalidUrl            E_INVALID_URL                    400
    │   │   ├── NoFeed                E_NO_FEED                        400
    │   │   ├── FeedUnreachable       E_FEED_UNREACHABLE               400
    │   │   ├── InvalidKind           E_INVALID_KIND                   400
    │   │   ├── InvalidFileType       E_INVALID_FILE_TYPE              400
    │   │   ├── StorageMissing        E_STORAGE_MISSING                400
    │   │   ├── UploadExpired         E_UPLOAD_EXPIRED                 400
    │   │   ├── FileTooLarge          E_FILE_TOO_LARGE                 413
    │   │   └── InfectedFile          E_INFECTED_FILE                  400
    │   ├── Unauthorized              E_UNAUTHORIZED                   401
    │   ├── Forbidden                 E_FORBIDDEN                      403
    │   │   └── DefaultLibrary        E_DEFAULT_LIBRARY_CANNOT_SHARE   403
    │   ├── NotFound                  E_NOT_FOUND                      404
    │   ├── Conflict                  E_CONFLICT                       409
    │   │   ├── TooManySubscriptions  E_TOO_MANY_SUBSCRIPTIONS         409
    │   │   ├── InvalidState          E_INVALID_STATE                  409
    │   │   ├── Unsupported           E_UNSUPPORTED                    409
    │   │   └── JobNotReady           NOT_READY                        409
    │   ├── RateLimited               E_RATE_LIMITED                   429
    │   ├── Internal                  E_INTERNAL                       500
    │   │   └── CancellationFailed    E_CANCELLATION_FAILED            500
    │   ├── SignUploadFailed          E_SIGN_UPLOAD_FAILED             502
    │   ├── SourceUnavailable         E_SOURCE_UNAVAILABLE             502
    │   ├── NotReady                  E_NOT_READY                      503
    │   │   └── WorkspaceFailed       E_NOT_READY                      503
    │   ├── IngestTimeout             E_INGEST_TIMEOUT                 504
    │   └── StorageFull               E_STORAGE_FULL                   507
    └── WorkError                     ends an attempt: stored in last_error_code, never answers a request
        ├── ExtractionFailed          E_EXTRACTION_FAILED
        │   ├── EmptyContent          E_EMPTY_CONTENT
        │   ├── BlockedPage           E_BLOCKED_PAGE
        │   ├── LoginWall             E_LOGIN_WALL
        │   ├── PageTooLarge          E_PAGE_TOO_LARGE
        │   ├── PdfEncrypted          E_PDF_ENCRYPTED
        │   ├── PdfNoText             E_PDF_NO_TEXT
        │   ├── PdfDamaged            E_PDF_DAMAGED
        │   ├── EpubDrm               E_EPUB_DRM
        │   ├── EpubDamaged           E_EPUB_DAMAGED
        │   ├── EpubTooLarge          E_EPUB_TOO_LARGE
        │   ├── TextUnreadable        E_TEXT_UNREADABLE
        │   ├── TranscriptUnreadable  E_TRANSCRIPT_UNREADABLE
        │   ├── FeedUnreadable        E_FEED_UNREADABLE
        │   │   └── FeedIsPage        E_FEED_IS_PAGE
        │   ├── ParserTimeout         E_PARSER_TIMEOUT
        │   ├── ParserMemory          E_PARSER_MEMORY
        │   ├── ParserOutput          E_PARSER_OUTPUT
        │   └── ParserCrashed         E_PARSER_CRASHED
        ├── ExtractorNotImplemented   E_EXTRACTOR_NOT_IMPLEMENTED
        ├── FileMissing               E_FILE_MISSING
        ├── FileChanged               E_FILE_CHANGED
        ├── FileUnreachable           E_FILE_UNREACHABLE               transient
        ├── TranscriptUnavailable     E_TRANSCRIPT_UNAVAILABLE
        │   ├── VideoUnavailable      E_VIDEO_UNAVAILABLE
        │   └── VideoAgeRestricted    E_VIDEO_AGE_RESTRICTED
        ├── ProviderBlocked           E_PROVIDER_BLOCKED               transient, not counted
        ├── TranscriptionQuota        E_TRANSCRIPTION_QUOTA            transient, not counted
        ├── JobTimeout                E_JOB_TIMEOUT                    transient
        ├── FetchFailed               E_FETCH_FAILED                   transient
        │   ├── FetchTimeout          E_FETCH_TIMEOUT                  transient
        │   ├── FetchBusy             E_FETCH_BUSY                     transient, not counted
        │   ├── FetchUnknownHost      E_FETCH_UNKNOWN_HOST             transient
        │   ├── FetchHttp5xx          E_FETCH_HTTP_5XX                 transient
        │   ├── FetchRateLimited      E_FETCH_RATE_LIMITED             transient
        │   ├── FetchHttp4xx          E_FETCH_HTTP_4XX
        │   │   └── FeedGone          E_FEED_GONE
        │   ├── FetchBlockedAddress   E_FETCH_BLOCKED_ADDRESS
        │   ├── FetchTooLarge         E_FETCH_TOO_LARGE
        │   ├── FetchRedirects        E_FETCH_REDIRECTS
        │   ├── FetchWrongType        E_FETCH_WRONG_TYPE
        │   ├── FetchInsecure         E_FETCH_INSECURE
        │   ├── FetchBadAnswer        E_FETCH_BAD_ANSWER
        │   ├── FetchGivenUp          E_FETCH_GIVEN_UP
        │   ├── FetchInfected         E_FETCH_INFECTED
        │   └── FetchNoRoom           E_FETCH_NO_ROOM
        ├── ScannerUnreachable        E_SCANNER_UNREACHABLE            transient
        ├── PictureRefused            E_PICTURE_REFUSED
        │   ├── PictureWrongType      E_PICTURE_WRONG_TYPE
        │   ├── PictureTooLarge       E_PICTURE_TOO_LARGE
        │   ├── PicturesTooMany       E_PICTURES_TOO_MANY
        │   └── PictureNoRoom         E_PICTURE_NO_ROOM
        ├── UploadFailed              E_UPLOAD_FAILED
        ├── DraftFailed               E_DRAFT_FAILED
        │   ├── DraftUnreachable      E_DRAFT_UNREACHABLE              transient
        │   ├── DraftTimeout          E_DRAFT_TIMEOUT                  transient
        │   ├── DraftRateLimited      E_DRAFT_RATE_LIMITED             transient
        │   ├── DraftKeyRefused       E_DRAFT_KEY_REFUSED
        │   ├── DraftNoCredit         E_DRAFT_NO_CREDIT
        │   ├── DraftRefused          E_DRAFT_REFUSED
        │   ├── DraftUnusable         E_DRAFT_UNUSABLE
        │   └── DraftTooShort         E_DRAFT_TOO_SHORT
        ├── EmbeddingFailed           E_EMBEDDING_FAILED
        │   ├── EmbeddingTimeout      E_EMBEDDING_TIMEOUT
        │   ├── EmbeddingNoModel      E_EMBEDDING_NO_MODEL             transient, not counted
        │   ├── EmbeddingBadModel     E_EMBEDDING_BAD_MODEL
        │   ├── EmbeddingCrashed      E_EMBEDDING_CRASHED              transient
        │   ├── EmbeddingStopped      E_EMBEDDING_STOPPED              transient, not counted
        │   ├── EmbeddingMemory       E_EMBEDDING_MEMORY               transient
        │   ├── EmbeddingSlow         E_EMBEDDING_SLOW                 transient
        │   ├── EmbeddingUnreachable  E_EMBEDDING_UNREACHABLE          transient
        │   ├── EmbeddingRateLimited  E_EMBEDDING_RATE_LIMITED         transient, not counted
        │   ├── EmbeddingKeyRefused   E_EMBEDDING_KEY_REFUSED
        │   ├── EmbeddingNoCredit     E_EMBEDDING_NO_CREDIT
        │   ├── EmbeddingRefused      E_EMBEDDING_REFUSED
        │   ├── EmbeddingUnusable     E_EMBEDDING_UNUSABLE
        │   └── EmbeddingQuota        E_EMBEDDING_QUOTA                transient, not counted
        └── TranscriptionFailed       E_TRANSCRIPTION_FAILED
            ├── SoundUnreadable       E_SOUND_UNREADABLE
            ├── SoundTooLong          E_SOUND_TOO_LONG
            ├── SoundTooLarge         E_SOUND_TOO_LARGE
            ├── TranscriptionTurn     E_TRANSCRIPTION_TURN             transient, not counted
            ├── TranscriptionBusy     E_TRANSCRIPTION_BUSY             transient, not counted
            ├── TranscriptionStopped  E_TRANSCRIPTION_STOPPED          transient, not counted
            ├── TranscriptionNoModel  E_TRANSCRIPTION_NO_MODEL
            ├── TranscriptionCrashed  E_TRANSCRIPTION_CRASHED          transient
            ├── TranscriptionMemory   E_TRANSCRIPTION_MEMORY           transient
            ├── TranscriptionSlow     E_TRANSCRIPTION_SLOW             transient
            ├── TranscriptionUnreachable E_TRANSCRIPTION_UNREACHABLE   transient
            ├── TranscriptionRateLimited E_TRANSCRIPTION_RATE_LIMITED  transient, not counted
            ├── TranscriptionKeyRefused E_TRANSCRIPTION_KEY_REFUSED
            ├── TranscriptionNoCredit E_TRANSCRIPTION_NO_CREDIT
            ├── TranscriptionRefused  E_TRANSCRIPTION_REFUSED
            └── TranscriptionUnusable E_TRANSCRIPTION_UNUSABLE

The docstring of a class is its default message: what happened, then what to do next.
"""

# ruff: noqa: F403 the tree above lists every class, and a test compares it with the code

from nexus.errors.api import *
from nexus.errors.base import *
from nexus.errors.draft import *
from nexus.errors.embedding import *
from nexus.errors.transcription import *
from nexus.errors.work import *
