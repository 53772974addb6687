"""`nexus extract`: prints what Nexus reads from addresses and files, without a database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import typer
from rich.text import Text

from nexus import app, urls
from nexus.cli import say
from nexus.cli.add import is_file
from nexus.cli.context import unopened
from nexus.cli.failures import FAILED
from nexus.errors import ExtractorNotImplemented, InvalidRequest, NexusError, public_code
from nexus.extract import (
    AVAILABLE_EXTRACTORS,
    DEFAULT_LANGUAGES,
    Extraction,
    Fetched,
    Hints,
    Source,
    StoredFile,
)
from nexus.extract.recording import Recording
from nexus.extract.results import P
from nexus.extract.sandbox import Sandbox
from nexus.fetch import NO_HEADERS, Fetcher
from nexus.media.add import guess_kind
from nexus.media.inspect import looks_like
from nexus.media.texts import count_words
from nexus.media.workbench import as_fetched
from nexus.settings import Settings
from nexus.states.media import Kind
from nexus.storage.digest import HEAD

#: How long an address waits while others on the same site are fetched, in seconds.
PATIENCE = 3600.0
PAGES = {".htm": "text/html", ".html": "text/html", ".xhtml": "application/xhtml+xml"}


@dataclass(frozen=True)
class Loose:
    """A workbench for something that is in no library: a file on disk, or an address."""

    fetcher: Fetcher
    sandbox: Sandbox
    path: Path | None
    languages: Sequence[str] = DEFAULT_LANGUAGES

    def fetch(self, url: str) -> Fetched:
        if self.path is not None:
            with self.file() as file:
                kind = PAGES.get(self.path.suffix.lower(), "text/html")
                return Fetched("", 200, kind, None, file.stream.read())
        return as_fetched(self.fetcher.get(url))

    def fetch_data(self, url: str, accept: str, headers: Mapping[str, str] = NO_HEADERS) -> Fetched:
        return as_fetched(self.fetcher.get_data(url, accept, headers=headers))

    def post_data(
        self, url: str, body: bytes, accept: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> Fetched:
        return as_fetched(self.fetcher.post_data(url, body, accept, headers=headers))

    def asking(self, provider: str) -> AbstractContextManager[None]:
        return self.fetcher.asking(provider)

    @contextmanager
    def file(self) -> Iterator[StoredFile]:
        if self.path is None:
            raise InvalidRequest("File not found.")
        try:
            stream = self.path.open("rb")
        except OSError as error:
            raise InvalidRequest(f"This file can't be read: {error.strerror}.") from error
        with stream:
            yield StoredFile(stream, self.path.name)

    def read(self, reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> Extraction:
        named = hints if self.path is None else Hints(hints.url, hints.content_type, None, self.path.name)
        return self.sandbox.read(reader, data, named)

    def read_as(self, kind: type[P], reader: str, data: bytes | BinaryIO, hints: Hints = Hints()) -> P:
        return self.sandbox.read_as(kind, reader, data, hints)

    def recording(self) -> None:
        """Nothing is known: there is no database."""

    def keep_recording(self, found: Recording) -> None:
        """Keep nothing."""

    def know_as(self, provider: str, provider_id: str) -> None:
        """Keep nothing."""

    def listen(self, recording: Recording) -> None:
        """Hear nothing: a transcription is kept piece by piece, in a database."""

    def require_transcription(self, seconds: float) -> None:
        """Count nothing: there is no account."""

    def record_transcription(self, seconds: float) -> None:
        """Count nothing."""

    def keep(self, fetched: Fetched) -> None:
        """Keep nothing."""


def extract_sources(sources: Sequence[str], *, as_json: bool) -> None:
    chosen = unopened()
    failed = False
    for result in _read_all(chosen, sources):
        failed = failed or "error" in result
        say.as_json(result) if as_json else _show(result)
    if failed:
        raise typer.Exit(FAILED)


def _read_all(chosen: Settings, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Read several sources at once; yield the results in the order of the sources."""
    fetcher, sandbox = app.fetcher(chosen, PATIENCE), app.sandbox(chosen)
    try:
        with ThreadPoolExecutor(chosen.worker_threads) as threads:
            yield from threads.map(lambda given: _read(fetcher, sandbox, given, chosen.languages), sources)
    finally:
        sandbox.close()
        fetcher.close()


def _read(fetcher: Fetcher, sandbox: Sandbox, given: str, languages: Sequence[str]) -> dict[str, Any]:
    path = Path(given).expanduser() if is_file(given) else None
    name = {"url": given} if path is None else {"file": given}
    try:
        found = _extract(Loose(fetcher, sandbox, path, languages), given)
    except NexusError as error:
        return {**name, "error": {"code": public_code(error.code), "message": error.message}}
    text = "\n\n".join(fragment.text for fragment in found.fragments)
    facts = {**asdict(found.facts), "words": count_words(text), "outline": [vars(h) for h in found.outline]}
    html = "\n\n".join(fragment.html or "" for fragment in found.fragments)
    return {**name, "title": found.title, "text": text, "html": html, "metadata": facts}


def _extract(bench: Loose, given: str) -> Extraction:
    if bench.path is None:
        source = _address(bench, given)
    else:
        source = Source(uuid4(), _kind_of(bench), None, None, None, 1, bench)
    extractor = AVAILABLE_EXTRACTORS.get(source.kind)
    if extractor is None:
        raise ExtractorNotImplemented
    return extractor(source)


def _address(bench: Loose, given: str) -> Source:
    address = urls.with_scheme(given)
    kind = guess_kind(address)
    found = (urls.identify_video if kind is Kind.VIDEO else urls.identify_article)(address)
    return Source(uuid4(), kind, found.canonical_url, found.provider, found.provider_id, 1, bench)


def _kind_of(bench: Loose) -> Kind:
    """Judge a file by its content first, then by its name."""
    with bench.file() as file:
        head, suffix = file.stream.read(HEAD), Path(file.name).suffix.lower()
    for kind in (Kind.PDF, Kind.EPUB):
        if looks_like(kind, head) or suffix == f".{kind}":
            return kind
    is_page = suffix in PAGES or b"<html" in head.lower() or b"<!doctype html" in head.lower()
    return Kind.WEB_ARTICLE if is_page else Kind.TEXT


def _show(result: dict[str, Any]) -> None:
    given = result.get("url") or result.get("file")
    if "error" in result:
        say.problem(f"{given}: {result['error']['message']} ({result['error']['code']})")
        return
    facts = result["metadata"]
    told = [facts["byline"], facts["site"], facts["published"], f"{facts['words']} words"]
    out = say.out()
    out.print(Text(say.printable(result["title"] or str(given)), "bold"), soft_wrap=True)
    out.print(Text(" · ".join(say.printable(fact) for fact in told if fact), "dim"), soft_wrap=True)
    out.print()
    for line in result["text"].splitlines():
        out.print(Text(say.printable(line)), soft_wrap=True)
    out.print()
