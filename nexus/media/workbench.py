"""What the work needs, and the workbench of one attempt: the guarded GET, the item's file, parser processes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import PurePosixPath
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit
from uuid import UUID

from nexus.db.rows import RevisionRow
from nexus.db.session import Sessions
from nexus.draft import Drafter
from nexus.embed import Embedder
from nexus.embed.earlier import EarlierModels
from nexus.errors import FetchBadAnswer, FetchNoRoom, FileChanged, FileMissing, FileUnreachable, NotFound
from nexus.extract import DEFAULT_LANGUAGES, Extraction, Extractor, Fetched, Hints, StoredFile
from nexus.extract.recording import Recording
from nexus.extract.results import P
from nexus.extract.sandbox import Sandbox
from nexus.fetch import NO_HEADERS, Download, Fetcher, NotModified
from nexus.libraries import quota
from nexus.libraries.quota import Allowances
from nexus.media import revisions
from nexus.media.feeds.share import SubscriptionShare
from nexus.media.files import Files, discard_object, temporary_file
from nexus.media.recordings.facts import (
    find_recording,
    keep_recording,
    know_as,
    name_item,
    renew_recording,
)
from nexus.media.recordings.speech import Attempt
from nexus.media.recordings.transcribing import Ears, Hearing
from nexus.media.storage_shares import has_room
from nexus.media.texts import Kept
from nexus.search.codes import SignCodes
from nexus.states.media import Kind
from nexus.storage import ObjectMissing, StorageError
from nexus.storage.names import SUFFIXES, fetched_path
from nexus.transcribe import Transcript
from nexus.work.leases import Leases

NAME_LENGTH = 120
#: How long reading may take while somebody waits for it.
AT_ONCE_SECONDS = 15.0


@dataclass(frozen=True)
class PictureLimits:
    """What the pictures of a text may take."""

    per_text: int
    most_bytes: int
    bytes_per_text: int
    pixels: int
    seconds: float
    #: How long Nexus keeps asking for a picture.
    patience: timedelta


@dataclass(frozen=True)
class Tools:
    """What the work needs."""

    sessions: Sessions
    extractors: Mapping[Kind, Extractor]
    leases: Leases
    backoff_seconds: float
    files: Files
    fetcher: Fetcher
    sandbox: Sandbox
    drafter: Drafter
    #: How long one draft may take.
    draft_seconds: float
    #: What a user may use in a day.
    limits: Allowances
    pictures: PictureLimits
    #: None if texts are not embedded.
    embedder: Embedder | None
    #: What this process keeps in memory to search by meaning.
    codes: SignCodes
    #: What transcribes recordings.
    ears: Ears
    #: How many feeds a user may subscribe to.
    subscription_share: SubscriptionShare
    #: The languages that people here read, the best first.
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    #: Embeds questions while vectors of an earlier model are searched.
    earlier: EarlierModels | None = None

    def read_at_once(
        self, user: UUID, kind: type[P], reader: str, data: bytes | BinaryIO, hints: Hints = Hints()
    ) -> P:
        """Run a reader while a user waits for the answer, in their turn and with less time than a worker has.

        Raises ExtractionFailed or a kind of it.
        """
        seconds = min(self.sandbox.limits.seconds, AT_ONCE_SECONDS)
        limits = replace(self.sandbox.limits, seconds=seconds)
        return self.sandbox.read_as(kind, reader, data, hints, limits, user=user)


class Material(Protocol):
    """What an extractor is told about a thing to read: an item, or the page of a job."""

    @property
    def id(self) -> UUID: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def canonical_url(self) -> str | None: ...
    @property
    def provider(self) -> str | None: ...
    @property
    def provider_id(self) -> str | None: ...
    @property
    def file_sha256(self) -> str | None: ...
    @property
    def created_by_user_id(self) -> UUID: ...


class Unchanged(Exception):
    """The address answers as it did when it was last read."""


class Bench:
    """One attempt at one item. It remembers what was fetched and kept: that is where the text comes from."""

    def __init__(
        self,
        tools: Tools,
        media: Material,
        known: RevisionRow | None = None,
        attempt: int | None = None,
        reader: UUID | None = None,
    ) -> None:
        self._tools = tools
        self._media = media
        #: The item's own attempt; None while it is refreshed.
        self._attempt = attempt
        #: The newest revision, if it is enough to ask whether it has changed.
        self._known = known
        #: Who has the text read: in whose turn, in whose room its file is, and whose allowance is used.
        self._reader = reader or media.created_by_user_id
        #: The item that usage is recorded with.
        self._charged_for: UUID | None = media.id
        self.fetched: Fetched | None = None
        self.kept: Kept | None = None
        #: Where the sound is that a text was heard in. Nobody needs it once the text is written.
        self.sound: str | None = None

    def fetch(self, url: str) -> Fetched:
        answer = self._ask(url)
        if isinstance(answer, NotModified):
            if self._known is not None and answer.url == self._known.fetched_url:
                raise Unchanged
            # The address leads to another page now.
            answer = self._tools.fetcher.get(url)
        self.fetched = as_fetched(answer)
        return self.fetched

    def fetch_data(self, url: str, accept: str, headers: Mapping[str, str] = NO_HEADERS) -> Fetched:
        return as_fetched(self._tools.fetcher.get_data(url, accept, headers=headers))

    def post_data(
        self, url: str, body: bytes, accept: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> Fetched:
        return as_fetched(self._tools.fetcher.post_data(url, body, accept, headers=headers))

    def asking(self, provider: str) -> AbstractContextManager[None]:
        return self._tools.fetcher.asking(provider)

    def _ask(self, url: str) -> Download | NotModified:
        """Ask whether it has changed, if it is the item's own address and there is something to compare with."""
        if self._known is None or url != self._media.canonical_url:
            return self._tools.fetcher.get(url)
        return self._tools.fetcher.get(url, etag=self._known.etag, last_modified=self._known.last_modified)

    @contextmanager
    def file(self) -> Iterator[StoredFile]:
        """Open a temporary copy, which nobody can change after it was checked."""
        with self._tools.sessions.read() as session:
            found = revisions.file_of(session, self._media.id, 0)
        if found is None:
            raise FileMissing
        with temporary_file() as copy:
            self._copy(found.storage_path, copy)
            yield StoredFile(copy, found.filename)

    def _copy(self, path: str, copy: BinaryIO) -> None:
        digest = hashlib.sha256()
        try:
            for piece in self._tools.files.storage.stream(path):
                digest.update(piece)
                copy.write(piece)
            copy.flush()
        except ObjectMissing as error:
            raise FileMissing from error
        except (StorageError, OSError) as error:
            raise FileUnreachable from error
        if digest.hexdigest() != self._media.file_sha256:
            raise FileChanged

    def read(self, reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> Extraction:
        return self._tools.sandbox.read(reader, data, hints, user=self._reader)

    def read_as(self, kind: type[P], reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> P:
        return self._tools.sandbox.read_as(kind, reader, data, hints, user=self._reader)

    @property
    def languages(self) -> Sequence[str]:
        return self._tools.languages

    def recording(self) -> Recording | None:
        if self._attempt is None and self._media.kind is Kind.VIDEO:
            return None  # a refresh looks again; what is known of an episode comes from its feed
        with self._tools.sessions.read() as session:
            found = find_recording(session, self._media.id)
        return None if found is None else found.recording

    def keep_recording(self, found: Recording) -> None:
        with self._tools.sessions.begin() as session:
            if self._attempt is None:
                renew_recording(session, self._media.id, found, self._reader)
            else:
                keep_recording(session, self._media.id, found)
            name_item(session, self._media.id, found)

    def know_as(self, provider: str, provider_id: str) -> None:
        know_as(self._tools.sessions, self._media.id, self._media.kind, provider, provider_id)

    def listen(self, recording: Recording) -> Transcript | None:
        tools = self._tools
        hearing = Hearing(
            tools.sessions,
            tools.files,
            tools.fetcher,
            tools.limits,
            tools.ears,
            Attempt(self._media.id, self._attempt),
            self._reader,
        )
        found = hearing.hear(recording)
        self.sound = None if found is None or hearing.copy is None else hearing.copy.path
        return found

    def require_transcription(self, seconds: float) -> None:
        quota.require_transcription(self._tools.sessions, self._tools.limits, self._reader, seconds)

    def record_transcription(self, seconds: float) -> None:
        quota.record_transcription(self._tools.sessions, self._reader, seconds, self._charged_for)

    def keep(self, fetched: Fetched) -> None:
        """Store an answer under a number of this attempt's own, so that a late one can't overwrite a later one's.

        The scanner sees it first. What the attempt before stored goes, unless it is needed: its result would be
        refused. If its reader has no room for it, a first text has no file: others who hold the item must not lose the
        text, too. A refresh fails then, so that its reader keeps the file that they have.
        """
        self._tools.files.scan_fetched(fetched.body)
        files, sessions, media_id = self._tools.files, self._tools.sessions, self._media.id
        with sessions.read() as session:
            is_room = has_room(session, files.shares, self._reader, len(fetched.body))
        if not is_room:
            if self._attempt is None:
                raise FetchNoRoom
            return
        try:
            with sessions.begin() as session:
                number = revisions.reserve_number(session, media_id)
            extension = SUFFIXES[fetched.content_type][0]
            path = fetched_path(media_id, number, extension, files.prefix)
            files.storage.put(path, [fetched.body], fetched.content_type)
        except (NotFound, StorageError) as error:
            raise FileUnreachable from error
        self.kept = Kept(
            number, path, fetched.content_type, len(fetched.body), file_name(fetched.url, extension)
        )
        if self._attempt is not None and self._attempt > 1:
            for extension in ("pdf", "epub"):
                discard_object(
                    sessions, files, media_id, fetched_path(media_id, number - 1, extension, files.prefix)
                )


def as_fetched(answer: Download | NotModified) -> Fetched:
    """Convert the answer to an unconditional request. Raises FetchBadAnswer for one that makes no sense."""
    if isinstance(answer, NotModified):
        raise FetchBadAnswer
    return Fetched(**{name: value for name, value in vars(answer).items() if name != "moved_to"})


def file_name(url: str, extension: str) -> str:
    """Return the name of a downloaded file: the last part of its address."""
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    safe = "".join(c for c in name if c.isprintable() and c not in '/\\:*?"<>|')[:NAME_LENGTH].strip()
    stem = safe[: -len(extension) - 1] if safe.lower().endswith(f".{extension}") else safe
    return f"{stem or 'document'}.{extension}"
