"""Extractors that do what the URL says, for tests with real processes: NEXUS_PLUGINS=tests.kit.plugins.extract_by_url.

    https://example.com/ok/…          has text at once
    https://example.com/nap/…         has text after a moment
    https://example.com/gated/…       has text as soon as the gate is open
    https://example.com/freezing/…    the same at the first attempt, and at once at every later one
    https://example.com/fail/…        has none, for good
    https://example.com/crash/…       ends in an exception of no known kind
    https://example.com/transient/…   can't be reached, however often it is tried
    https://example.com/second/…      can't be reached at first, and then can
    https://example.com/blocked/…     belongs to a site that blocks this address

Each start is a line in a file of the folder that NEXUS_TEST_FOLDER names; the gate is a file beside it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from nexus.errors import ExtractionFailed, FetchFailed, ProviderBlocked
from nexus.extract import AVAILABLE_EXTRACTORS, Extraction, Source
from nexus.states.media import Kind

FOLDER = "NEXUS_TEST_FOLDER"
GLANCE = 0.01
NAP = 0.01


class Start(NamedTuple):
    """One line: an extractor began to work."""

    media_id: UUID
    attempt: int
    pid: int


def starts(folder: Path) -> list[Start]:
    """Every start so far, in order."""
    path = folder / "started"
    lines = path.read_text().splitlines() if path.exists() else []
    return [Start(UUID(media_id), int(attempt), int(pid)) for media_id, attempt, pid in map(str.split, lines)]


def open_gate(folder: Path) -> None:
    (folder / "gate").touch()


def texts(attempt: int) -> list[str]:
    """The texts of an attempt, with its number, so that a mixture of two would show."""
    return [f"piece {place} of attempt {attempt}" for place in range(3)]


def register() -> None:
    """Make this the only extractor, for web articles."""
    AVAILABLE_EXTRACTORS.clear()
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = extract


def extract(source: Source) -> Extraction:
    folder = Path(os.environ[FOLDER])
    _note(folder / "started", f"{source.media_id} {source.attempt} {os.getpid()}\n")
    _BEHAVIOURS[str(source.url).split("/")[3]](source.attempt, folder)
    return Extraction.plain(f"Attempt {source.attempt}", *texts(source.attempt))


def _note(path: Path, line: str) -> None:
    """Append in one write, which stays whole even if several processes append at once."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, line.encode())
    os.close(handle)


def _ok(attempt: int, folder: Path) -> None:
    pass


def _nap(attempt: int, folder: Path) -> None:
    time.sleep(NAP)


def _gated(attempt: int, folder: Path) -> None:
    while not (folder / "gate").exists():
        time.sleep(GLANCE)


def _freezing(attempt: int, folder: Path) -> None:
    if attempt == 1:
        _gated(attempt, folder)


def _fail(attempt: int, folder: Path) -> None:
    raise ExtractionFailed("There is no text in it.")


def _crash(attempt: int, folder: Path) -> None:
    raise RuntimeError("a message that may hold the source's text")


def _transient(attempt: int, folder: Path) -> None:
    raise FetchFailed


def _second(attempt: int, folder: Path) -> None:
    if attempt == 1:
        raise FetchFailed


def _blocked(attempt: int, folder: Path) -> None:
    raise ProviderBlocked


_BEHAVIOURS: dict[str, Callable[[int, Path], None]] = {
    "ok": _ok,
    "nap": _nap,
    "gated": _gated,
    "freezing": _freezing,
    "fail": _fail,
    "crash": _crash,
    "transient": _transient,
    "second": _second,
    "blocked": _blocked,
}

register()
