"""`nexus extract`: prints what Nexus reads from addresses and files, without a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

import typer
from rich.text import Text

from nexus import app, urls
from nexus.cli import say
from nexus.cli.add import is_file
from nexus.cli.context import unopened
from nexus.cli.failures import FAILED
from nexus.cli.loose_bench import PAGES, Loose
from nexus.errors import EmptyContent, ExtractorNotImplemented, NexusError, WorkError, public_code
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Extractor, Source
from nexus.media.add import guess_kind, identify_url
from nexus.media.inspect import looks_like
from nexus.media.texts import count_words
from nexus.settings import Settings
from nexus.states.media import Kind
from nexus.storage.digest import HEAD

#: How long an address waits while others on the same site are fetched, in seconds.
PATIENCE = 3600.0


def extract_sources(sources: Sequence[str], kind: str | None, *, as_json: bool) -> None:
    chosen = unopened()
    failed = False
    for result in _read_all(chosen, sources, kind):
        failed = failed or "error" in result
        say.as_json(result) if as_json else _show(result)
    if failed:
        raise typer.Exit(FAILED)


def _read_all(chosen: Settings, sources: Sequence[str], kind: str | None) -> Iterator[dict[str, Any]]:
    """Read several sources at once; yield the results in the order of the sources."""
    fetcher, sandbox, ears = app.fetcher(chosen, PATIENCE), app.sandbox(chosen), app.build_ears(chosen)

    def read(given: str) -> dict[str, Any]:
        path = Path(given).expanduser() if is_file(given) else None
        return read_source(Loose(fetcher, sandbox, ears, path, chosen.languages), given, kind)

    try:
        with ThreadPoolExecutor(chosen.worker_threads) as threads:
            try:
                yield from threads.map(read, sources)
            finally:
                ears.stop()  # after Ctrl-C, nobody waits for the end of a recording
    finally:
        ears.close()
        sandbox.close()
        fetcher.close()


def read_source(bench: Loose, given: str, kind: str | None) -> dict[str, Any]:
    name = {"url": given} if bench.path is None else {"file": given}
    try:
        found = _extract_file(bench) if bench.path is not None else _extract_address(bench, given, kind)
    except NexusError as error:
        return {**name, "error": {"code": public_code(error.code), "message": error.message}}
    text = "\n\n".join(fragment.text for fragment in found.fragments)
    facts = {**asdict(found.facts), "words": count_words(text), "outline": [vars(h) for h in found.outline]}
    if bench.found is not None:
        facts["seconds"] = bench.found.seconds
    html = "\n\n".join(fragment.html or "" for fragment in found.fragments)
    return {**name, "title": found.title, "text": text, "html": html, "metadata": facts}


def _extract_file(bench: Loose) -> Extraction:
    kind = _kind_of(bench)
    if kind is Kind.VIDEO:
        with bench.file() as file:
            return bench.read_recording(file)
    return _extractor(kind)(Source(uuid4(), kind, None, None, None, 1, bench))


def _extract_address(bench: Loose, given: str, kind: str | None) -> Extraction:
    """A page without a text may play something instead."""
    address = urls.with_scheme(given)
    guessed = guess_kind(address) if kind is None else Kind(kind)
    try:
        return _read_address(bench, address, guessed)
    except EmptyContent as nothing:
        if guessed is Kind.VIDEO or kind is not None:
            raise
        try:
            return _read_address(bench, address, Kind.VIDEO)
        except WorkError:
            raise nothing from None


def _read_address(bench: Loose, address: str, kind: Kind) -> Extraction:
    found = identify_url(kind, address)
    return _extractor(kind)(
        Source(uuid4(), kind, found.canonical_url, found.provider, found.provider_id, 1, bench)
    )


def _extractor(kind: Kind) -> Extractor:
    extractor = AVAILABLE_EXTRACTORS.get(kind)
    if extractor is None:
        raise ExtractorNotImplemented
    return extractor


def _kind_of(bench: Loose) -> Kind:
    """Judge a file by its content first, then by its name."""
    with bench.file() as file:
        head, suffix = file.stream.read(HEAD), Path(file.name).suffix.lower()
    for kind in (Kind.PDF, Kind.EPUB):
        if looks_like(kind, head) or suffix == f".{kind}":
            return kind
    if bench.is_recording():
        return Kind.VIDEO
    is_page = suffix in PAGES or b"<html" in head.lower() or b"<!doctype html" in head.lower()
    return Kind.WEB_ARTICLE if is_page else Kind.TEXT


def _show(result: dict[str, Any]) -> None:
    given = result.get("url") or result.get("file")
    if "error" in result:
        say.problem(f"{given}: {result['error']['message']} ({result['error']['code']})")
        return
    facts = result["metadata"]
    told = [facts["byline"], facts["site"], facts["published"], facts["source"], f"{facts['words']} words"]
    out = say.out()
    out.print(Text(say.printable(result["title"] or str(given)), "bold"), soft_wrap=True)
    out.print(Text(" · ".join(say.printable(fact) for fact in told if fact), "dim"), soft_wrap=True)
    out.print()
    for line in result["text"].splitlines():
        out.print(Text(say.printable(line)), soft_wrap=True)
    out.print()
