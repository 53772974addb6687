"""The text of a staged file, read by the extractor of its kind: the same one that reads uploads, or a user's plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import BinaryIO
from uuid import UUID

from nexus import logging
from nexus.errors import ExtractionFailed, ExtractorNotImplemented, PdfNoText, WorkError
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Extractor, Fetched, Hints, Source, StoredFile
from nexus.extract.recording import Recording
from nexus.extract.results import P
from nexus.extract.sandbox import CancelToken, ReadCancelled, SandboxClosed
from nexus.fetch import NO_HEADERS
from nexus.imports.checking import Candidate, open_source
from nexus.libraries import quota
from nexus.media.texts import storable
from nexus.media.workbench import Tools, as_fetched
from nexus.states.media import Kind

log = logging.get_logger(__name__)


@dataclass(frozen=True)
class ImportBench:
    """The workbench of one staged file. There is no media yet: `file` opens the staged file itself."""

    tools: Tools
    viewer: UUID
    candidate: Candidate
    #: Ended when the user pauses the import and the parser does not finish in time.
    cancel: CancelToken

    def fetch(self, url: str) -> Fetched:
        if self.cancel.cancelled:
            raise ReadCancelled
        return as_fetched(self.tools.fetcher.get(url))

    def fetch_data(self, url: str, accept: str, headers: Mapping[str, str] = NO_HEADERS) -> Fetched:
        if self.cancel.cancelled:
            raise ReadCancelled
        return as_fetched(self.tools.fetcher.get_data(url, accept, headers=headers))

    def post_data(
        self, url: str, body: bytes, accept: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> Fetched:
        if self.cancel.cancelled:
            raise ReadCancelled
        return as_fetched(self.tools.fetcher.post_data(url, body, accept, headers=headers))

    def asking(self, provider: str) -> AbstractContextManager[None]:
        return self.tools.fetcher.asking(provider)

    @contextmanager
    def file(self) -> Iterator[StoredFile]:
        source = self.candidate.source
        with open_source(source.path) as file:
            yield StoredFile(file, source.name)

    def read(self, reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> Extraction:
        return self.tools.sandbox.read(reader, data, hints, cancel=self.cancel, user=self.viewer)

    def read_as(self, kind: type[P], reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> P:
        return self.tools.sandbox.read_as(kind, reader, data, hints, cancel=self.cancel, user=self.viewer)

    @property
    def languages(self) -> Sequence[str]:
        return self.tools.languages

    def recording(self) -> None:
        """Nothing is known about a staged file before it is read."""

    def keep_recording(self, found: Recording) -> None:
        """Keep nothing: there is no media yet."""

    def know_as(self, provider: str, provider_id: str) -> None:
        """Keep nothing: there is no media yet."""

    def listen(self, recording: Recording) -> None:
        """Hear nothing: recordings are no files."""

    def require_transcription(self, seconds: float) -> None:
        quota.require_transcription(self.tools.sessions, self.tools.limits, self.viewer, seconds)

    def record_transcription(self, seconds: float) -> None:
        quota.record_transcription(self.tools.sessions, self.viewer, seconds, self.candidate.media_id)

    def keep(self, fetched: Fetched) -> None:
        """The staged file is the one that is kept."""


def extractor_of(kind: Kind) -> Extractor:
    """Return the registered extractor. Raises ExtractorNotImplemented if there is none.

    NEXUS_EXTRACTION=off does not matter here: it leaves items pending, and an import has no such state.
    """
    found = AVAILABLE_EXTRACTORS.get(kind)
    if found is None:
        raise ExtractorNotImplemented
    return found


def extract_text(tools: Tools, viewer: UUID, candidate: Candidate, cancel: CancelToken) -> Extraction:
    """Return the text of a file, or an empty one for a scan, which is kept as a file.

    Raises WorkError if there is no text to be had, and ReadCancelled or SandboxClosed if the reader was stopped.
    """
    kind = candidate.source.kind
    source = Source(
        media_id=candidate.media_id,
        kind=kind,
        url=None,
        provider=None,
        provider_id=None,
        attempt=1,
        bench=ImportBench(tools, viewer, candidate, cancel),
    )
    try:
        return storable(extractor_of(kind)(source))
    except PdfNoText:
        return Extraction(None, ())
    except (WorkError, ReadCancelled, SandboxClosed):
        raise
    except Exception as error:
        # Its message may hold text of the file, so log only its type and place.
        where = logging.place_of(error)
        log.warning("extractor_crashed", kind=kind.value, reason=type(error).__name__, where=where)
        raise ExtractionFailed from error
