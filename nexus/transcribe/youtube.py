"""YouTube's captions, and what its player is told about a video.

youtube-transcript-api knows how to ask; every request of it goes through the guarded fetcher. YouTube blocks addresses
as a matter of course, so that is an outcome of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from nexus import logging
from nexus.errors import (
    FetchBadAnswer,
    FetchFailed,
    FetchHttp4xx,
    FetchRateLimited,
    FetchRedirects,
    FetchTooLarge,
    ProviderBlocked,
    TranscriptUnavailable,
    VideoAgeRestricted,
    VideoUnavailable,
    WorkError,
)
from nexus.extract import Fetched, Source, Workbench
from nexus.transcribe.choosing import choose_captions

if TYPE_CHECKING:
    from youtube_transcript_api import CouldNotRetrieveTranscript

log = logging.get_logger(__name__)

#: The library parses pages and answers in this process. The usual page has 1.5 MB.
MOST_BYTES = 4 * 1024 * 1024
REFUSED = frozenset({401, 403})
GONE = frozenset({404, 410})
PAGE, JSON, CAPTIONS = "text/html", "application/json", "text/xml, application/xml, */*;q=0.1"
#: The library would parse what it fetches. It gets this: what strangers wrote is read in a parser process.
NO_CAPTIONS = "<transcript/>"

BLOCKED = "YouTube blocks requests from this address at the moment. Nexus tries again later on its own."
UNREADABLE = "YouTube's answer can't be read. Look for a newer Nexus, or add a transcript."
FOR_ITS_PLAYER = "YouTube gives the captions of this video to its own player only. Add a transcript."
NOT_SHOWN = (
    "YouTube does not play this video here: it may be for members or for some countries only, or not have begun. "
    "Retry later, or add a transcript."
)
#: Looked for in what YouTube says. The library asks for English.
_REASONS: tuple[tuple[str, type[WorkError], str | None], ...] = (
    ("not a bot", ProviderBlocked, BLOCKED),
    ("your age", VideoAgeRestricted, None),
    ("inappropriate", VideoAgeRestricted, None),
    ("private", VideoUnavailable, None),
    ("removed", VideoUnavailable, None),
    ("terminated", VideoUnavailable, None),
    ("no longer available", VideoUnavailable, None),
    ("video unavailable", VideoUnavailable, None),
    ("video is unavailable", VideoUnavailable, None),
)


class CaptionSheet(NamedTuple):
    """The captions in one language, as YouTube sends them."""

    data: bytes
    language: str
    #: Whether a machine made them.
    is_automatic: bool


@dataclass
class YouTubeAnswers:
    """What YouTube answered. Any of it may be missing."""

    #: The page of the video.
    page: bytes | None = None
    #: What its player is told, in JSON.
    player: bytes | None = None
    captions: CaptionSheet | None = None
    #: Why there are no captions.
    error: WorkError | None = None


def ask_youtube(bench: Workbench, video_id: str) -> YouTubeAnswers:
    """Ask for the best captions of a video. Raises FetchFailed if YouTube can't be reached at the moment."""
    answers = YouTubeAnswers()
    try:
        with bench.asking("youtube"), _explained():
            answers.captions = _captions(_CaptionClient(bench, answers), video_id)
    except (ProviderBlocked, TranscriptUnavailable) as error:
        answers.error = error
    return answers


def youtube_oembed(source: Source) -> str:
    return f"https://www.youtube.com/oembed?format=json&url={quote(source.url or '', safe='')}"


def _captions(client: _CaptionClient, video_id: str) -> CaptionSheet:
    from youtube_transcript_api import YouTubeTranscriptApi  # noqa: PLC0415 slow to load

    session: Any = client  # the library uses little of a session of requests
    tracks = list(YouTubeTranscriptApi(http_client=session).list(video_id))
    chosen = choose_captions([(one.language_code, one.is_generated) for one in tracks], client.languages)
    if chosen is None:
        raise TranscriptUnavailable
    track = tracks[chosen]
    client.fetches_captions = True
    track.fetch()
    return CaptionSheet(client.captions, track.language_code, track.is_generated)


class _CaptionClient:
    """The part of a session of requests that the library uses, on the workbench."""

    def __init__(self, bench: Workbench, answers: YouTubeAnswers) -> None:
        self.headers: dict[str, str] = {}
        self.cookies = _Cookies()
        self.languages = bench.languages
        self.fetches_captions = False
        self.captions = b""
        self._bench = bench
        self._answers = answers

    def get(self, url: str) -> _Answer:
        if self.fetches_captions:
            self.captions = self._bench.fetch_data(url, CAPTIONS, self.headers).body
            return _Answer(NO_CAPTIONS)
        found = _bounded(self._bench.fetch_data(url, PAGE, {**self.headers, **self.cookies.header()}))
        self._answers.page = found
        return _Answer(found.decode(errors="replace"))

    def post(self, url: str, json: Mapping[str, Any]) -> _Answer:
        headers = {**self.headers, **self.cookies.header(), "Content-Type": JSON}
        found = _bounded(self._bench.post_data(url, _written(json), JSON, headers))
        self._answers.player = found
        return _Answer(found.decode(errors="replace"))


class _Cookies:
    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def set(self, name: str, value: str, domain: str) -> None:  # noqa: ARG002 they are sent to YouTube alone
        self._values[name] = value

    def header(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self._values.items())}


@dataclass(frozen=True)
class _Answer:
    """The part of an answer of requests that the library uses. The fetcher has raised anything but a success."""

    text: str
    status_code: int = 200

    def raise_for_status(self) -> None:
        """It is a success."""

    def json(self) -> Any:
        return json.loads(self.text)


def _written(question: Mapping[str, Any]) -> bytes:
    return json.dumps(question).encode()


def _bounded(found: Fetched) -> bytes:
    if len(found.body) > MOST_BYTES:
        raise FetchTooLarge
    return found.body


@contextmanager
def _explained() -> Iterator[None]:
    """Turn whatever the library and the fetcher raise into errors that people can act on."""
    from youtube_transcript_api import CouldNotRetrieveTranscript  # noqa: PLC0415 slow to load

    try:
        yield
    except CouldNotRetrieveTranscript as error:
        raise _told(error) from error
    except FetchRateLimited as error:
        raise ProviderBlocked(BLOCKED, error.retry_after) from error
    except FetchHttp4xx as error:
        if error.http_status in REFUSED:
            raise ProviderBlocked(BLOCKED) from error
        gone = error.http_status in GONE
        raise VideoUnavailable() if gone else TranscriptUnavailable(UNREADABLE) from error
    except (FetchBadAnswer, FetchTooLarge, FetchRedirects) as error:
        raise TranscriptUnavailable(UNREADABLE) from error
    except (FetchFailed, TranscriptUnavailable):
        raise
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        # The library expects answers of one shape. Their content is not logged.
        log.warning("youtube_answer_unread", reason=type(error).__name__, where=logging.place_of(error))
        raise TranscriptUnavailable(UNREADABLE) from error


def _told(error: CouldNotRetrieveTranscript) -> WorkError:
    import youtube_transcript_api as library  # noqa: PLC0415 loaded by now

    if isinstance(error, library.VideoUnplayable):
        return _unplayable(str(error.reason))
    if isinstance(error, library.RequestBlocked | library.FailedToCreateConsentCookie):
        return ProviderBlocked(BLOCKED)
    kinds: dict[type[Exception], WorkError] = {
        library.AgeRestricted: VideoAgeRestricted(),
        library.VideoUnavailable: VideoUnavailable(),
        library.InvalidVideoId: VideoUnavailable(),
        library.TranscriptsDisabled: TranscriptUnavailable(),
        library.PoTokenRequired: TranscriptUnavailable(FOR_ITS_PLAYER),
    }
    return kinds.get(type(error)) or TranscriptUnavailable(UNREADABLE)


def _unplayable(reason: str) -> WorkError:
    said = reason.lower()
    kind, message = next(
        ((kind, message) for words, kind, message in _REASONS if words in said),
        (TranscriptUnavailable, NOT_SHOWN),
    )
    return kind(message)
