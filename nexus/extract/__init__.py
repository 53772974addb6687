"""How bytes become text: what an extractor is, what it is given, what it gives back, and which kinds have one.

An extractor registers itself, with `AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract_article` or as an entry point of
the group `nexus.extractors`. Nothing in the lifecycle changes for it. Media of a kind without one stay pending, and
nothing is announced for them.

An extractor runs in a worker. Bytes that strangers made are parsed by a *reader*: a function that the workbench runs
in a process of its own, with limits on time, memory and output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol
from uuid import UUID

from nexus.states.media import Kind

if TYPE_CHECKING:
    from nexus.extract.recording import Recording
    from nexus.extract.results import P, ParserResult
    from nexus.extract.transcript import Transcript


#: What people read who have not said anything else.
DEFAULT_LANGUAGES = ("en",)


class TimeSpan(NamedTuple):
    """When the characters from `start` to `end` of a fragment are spoken, in milliseconds from the beginning."""

    start: int
    end: int
    starts_ms: int
    ends_ms: int


@dataclass(frozen=True)
class Fragment:
    """A piece of a text, in reading order: an article, a page of a PDF, a chapter of a book or of a recording.

    `html` is clean, and its text content is exactly `text`, so an offset in one is an offset in the other. Without
    html, the text is shown as it is. A transcript has times, in the order of its characters.
    """

    text: str
    html: str | None = None
    times: tuple[TimeSpan, ...] = ()


@dataclass(frozen=True)
class Heading:
    """A line of the table of contents.

    `anchor` is `f{position}` for a fragment, or the id of an element in its html, which begins with `f{position}-`.
    """

    title: str
    level: int
    anchor: str


@dataclass(frozen=True)
class Asset:
    """A picture from inside the file. The html of the document refers to it as `asset:{name}`."""

    name: str
    content_type: str
    data: bytes


@dataclass(frozen=True)
class Facts:
    """What a document says about itself. `published` is an ISO date, with the time if that is known."""

    byline: str | None = None
    site: str | None = None
    published: str | None = None
    language: str | None = None
    lead_image: str | None = None
    excerpt: str | None = None
    #: Where a transcript comes from, for a person: "Captions from YouTube, automatic".
    source: str | None = None


@dataclass(frozen=True)
class Extraction:
    """What an extractor gives back: a title, if there is one, and the text in reading order."""

    title: str | None
    fragments: tuple[Fragment, ...]
    facts: Facts = Facts()
    outline: tuple[Heading, ...] = ()
    assets: tuple[Asset, ...] = ()
    #: What the page says is its address. A site may say so of its own pages only.
    canonical_url: str | None = None

    @classmethod
    def plain(cls, title: str | None, *texts: str) -> Extraction:
        """Make an extraction of plain text, one fragment for each text."""
        return cls(title, tuple(map(Fragment, texts)))


@dataclass(frozen=True)
class Hints:
    """What is known about a document from outside. Any of it may be wrong."""

    url: str | None = None
    content_type: str | None = None
    #: From the Content-Type header.
    charset: str | None = None
    filename: str | None = None


class Reader(Protocol):
    def __call__(self, data: bytes, hints: Hints) -> Extraction | ParserResult:
        """Parse a document. Runs in a parser process: no network, files or secrets. Raises ExtractionFailed."""
        ...


@dataclass(frozen=True)
class Fetched:
    """What an address answered, complete and decoded."""

    #: Where the redirects ended; empty for a file from disk.
    url: str
    status: int
    content_type: str
    charset: str | None
    body: bytes
    etag: str | None = None
    last_modified: str | None = None
    #: The complete header as the site sent it; None if it sent none.
    content_type_header: str | None = None

    def hints(self) -> Hints:
        return Hints(self.url or None, self.content_type, self.charset)


@dataclass(frozen=True)
class StoredFile:
    """A media's file, open for reading. It may be too large to hold in memory."""

    stream: BinaryIO
    name: str

    def hints(self) -> Hints:
        return Hints(filename=self.name)


class Workbench(Protocol):
    """What an extractor works with."""

    def fetch(self, url: str) -> Fetched:
        """Fetch an address with a guarded GET. Raises FetchFailed or a kind of it."""
        ...

    def fetch_data(self, url: str, accept: str, headers: Mapping[str, str] = ...) -> Fetched:
        """Fetch an address whose answer is not a page, such as captions; any type is accepted, and
        `content_type_header` names it. More headers go to its own site only. Raises FetchFailed or a kind of it."""
        ...

    def post_data(self, url: str, body: bytes, accept: str, headers: Mapping[str, str] = ...) -> Fetched:
        """Post a short question to a site's API. Raises as `fetch_data` does."""
        ...

    def asking(self, provider: str) -> AbstractContextManager[None]:
        """Ask a provider that blocks addresses. Raises ProviderBlocked, before anything is asked, while it blocks this
        one. What is raised inside is remembered for all items of the provider."""
        ...

    def file(self) -> AbstractContextManager[StoredFile]:
        """Open the media's file, checked against its hash."""
        ...

    def read(self, reader: str, data: bytes | BinaryIO, hints: Hints = ...) -> Extraction:
        """Run a reader, named as `module:function`, in a parser process. Raises ExtractionFailed or a kind of it."""
        ...

    def read_as(self, kind: type[P], reader: str, data: bytes | BinaryIO, hints: Hints = ...) -> P:
        """Run a reader that gives back something else than a text. Any html in it still has to be cleaned. Raises as
        `read` does."""
        ...

    @property
    def languages(self) -> Sequence[str]:
        """The languages that people here read, as in `en` or `pt-BR`, the best first."""
        ...

    def recording(self) -> Recording | None:
        """Return what an earlier attempt found out about this video or episode; None if there was none."""
        ...

    def keep_recording(self, found: Recording) -> None:
        """Write at once what was found out, so that no later attempt has to look again."""
        ...

    def know_as(self, provider: str, provider_id: str) -> None:
        """Write which video of a provider this is, unless another item is known as that."""
        ...

    def listen(self, recording: Recording) -> Transcript | None:
        """Transcribe the sound of a recording, which has to be kept first. None if there is none, if no model that
        knows its language can be used, or if nobody speaks. Raises TranscriptionFailed or FetchFailed, or a kind of
        them: one that is not counted lets others have their turn, and the next attempt continues."""
        ...

    def require_transcription(self, seconds: float) -> None:
        """Ask before this much audio is transcribed. Raises TranscriptionQuota, which leaves the media waiting and
        uses up no try."""
        ...

    def record_transcription(self, seconds: float) -> None:
        """Count the audio that was really transcribed, whatever becomes of the text."""
        ...

    def keep(self, fetched: Fetched) -> None:
        """Make the answer of an address the media's file, once the media is readable."""
        ...


@dataclass(frozen=True)
class Source:
    """What an extractor is given."""

    media_id: UUID
    kind: Kind
    url: str | None
    provider: str | None
    provider_id: str | None
    attempt: int
    bench: Workbench = field(repr=False)


class Extractor(Protocol):
    def __call__(self, source: Source) -> Extraction:
        """Raises WorkError if there is no text to be had. Any other exception counts as a failed extraction."""
        ...


AVAILABLE_EXTRACTORS: dict[Kind, Extractor] = {}


def can_extract(kind: Kind) -> bool:
    """Whether media of this kind have an extractor."""
    return kind in AVAILABLE_EXTRACTORS
