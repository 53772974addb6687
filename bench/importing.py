"""How fast a folder of documents becomes a library, and how much memory a long list of them needs."""

from __future__ import annotations

import hashlib
import importlib
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from os import getpid, sysconf
from pathlib import Path
from statistics import median
from uuid import uuid4

from bench.places import Place
from bench.scorer import data_folder
from bench.table import Line, Rounds, interleaved, ratio
from bench.uploading import MIB, memory
from nexus import logging
from nexus.app import App, build, load_extractors
from nexus.errors import ApiError, WorkError
from nexus.extract import Extraction, Hints
from nexus.extract.builtin import EPUB, PDF, TEXT
from nexus.imports.service import ImportDesk
from nexus.imports.staging import KINDS, staged_kind
from nexus.settings import Settings
from nexus.states.attempt import AttemptStatus
from nexus.states.media import Kind

ROUNDS = 15
CORES = 2
LEAST = 0.85
MANY = 1000
MOST_MEMORY = 64.0
PATIENCE = 300.0
READERS = {Kind.PDF: PDF, Kind.EPUB: EPUB, Kind.TEXT: TEXT}
SENTENCE = "The ferry left the harbour at noon and came back in the evening, as it does every day. "


def ask(place: Place) -> list[Line]:
    files = _readable(place, data_folder("documents"))
    cores: Rounds = {"nexus": [], "bare pool": []}
    contestants = {
        "nexus": partial(_nexus, place, files, cores["nexus"]),
        "bare pool": partial(_pool, files, cores["bare pool"]),
    }
    figures = interleaved(ROUNDS, contestants, warm_up=False)
    grown = _alone(place)
    return [
        Line(
            f"{len(files)} documents, against a bare pool",
            f"{median(figures['nexus']):.1f}/s",
            f"{median(figures['bare pool']):.1f}/s",
            ratio(figures, "nexus", "bare pool"),
            at_least=LEAST,
        ),
        Line(
            f"of {CORES} cores in use",
            f"{median(cores['nexus']):.2f}",
            f"{median(cores['bare pool']):.2f}",
            ratio(cores, "nexus", "bare pool"),
        ),
        Line(f"memory for {MANY:,} texts, MiB", f"{grown:.0f}", "", grown, at_most=MOST_MEMORY),
    ]


def _readable(place: Place, folder: Path) -> list[Path]:
    """Return the files that both sides can read, without duplicates."""
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in KINDS)
    different = {hashlib.sha256(path.read_bytes()).digest(): path for path in found}
    with closing(_app(place)) as app:
        return [path for path in different.values() if path.parent != folder and _can_be_read(app, path)]


def _can_be_read(app: App, path: Path) -> bool:
    try:
        app.tools.sandbox.read(
            READERS[staged_kind(path.name, path)], path.read_bytes(), Hints(filename=path.name)
        )
    except (ApiError, WorkError):
        return False
    return True


def _nexus(place: Place, files: list[Path], cores: list[float]) -> float:
    """Measure an attempt from its start to its end, in a new library."""
    with closing(_app(place)) as app:
        _warm_up(app, files[: CORES * 2])
        desk = app.imports.of(uuid4())
        return len(files) / _seconds(lambda: _import(desk, files), cores)


def _seconds(work: Callable[[], object], cores: list[float]) -> float:
    """Return how long it took; note how many cores the whole machine used meanwhile."""
    began, busy = time.perf_counter(), _busy_seconds()
    work()
    seconds = time.perf_counter() - began
    cores.append((_busy_seconds() - busy) / seconds)
    return seconds


def _busy_seconds() -> float:
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system) / sysconf("SC_CLK_TCK")


def _import(desk: ImportDesk, files: Iterable[Path]) -> None:
    batch = desk.staging.open(None, "Research")
    for path in files:
        desk.staging.add(batch.id, path.name, path)
    desk.start(batch.id)
    if not desk.wait(PATIENCE) or desk.state.status is not AttemptStatus.COMPLETE:
        raise RuntimeError(f"the import did not end: {desk.state}")


def _app(place: Place) -> App:
    given: dict[str, object] = {
        "env": "test",
        "database_url": place.migrated("sqlite"),
        "data_dir": Path(tempfile.mkdtemp(dir=place.folder)),
        "parser_processes": CORES,
        "session_secret": "bench",
    }
    settings = Settings(_env_file=None, **given)  # type: ignore[arg-type]
    load_extractors(settings)
    return build(settings)


def _warm_up(app: App, files: list[Path]) -> None:
    """Start the parser processes before the clock, and let them read as many files as those of the pool."""
    with ThreadPoolExecutor(CORES) as threads:
        list(threads.map(partial(_can_be_read, app), files))


def _pool(files: list[Path], cores: list[float]) -> float:
    """Run the same readers with nothing but the transfer of files and texts."""
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        list(pool.map(_read, files[: CORES * 2]))
        return len(files) / _seconds(lambda: deque(pool.map(_read, files), maxlen=0), cores)


def _read(path: Path) -> Extraction:
    module, _, name = READERS[staged_kind(path.name, path)].partition(":")
    read = getattr(importlib.import_module(module), name)
    found: Extraction = read(path.read_bytes(), Hints(filename=path.name))
    return found


def _alone(place: Place) -> float:
    """Measure in a process that has done nothing else."""
    folder = Path(tempfile.mkdtemp(dir=place.folder))
    for number in range(MANY):
        (folder / f"{number}.txt").write_text(f"Text {number}. {SENTENCE * 50}")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_grown, place.migrated("sqlite"), folder).result()


def _grown(database: str, folder: Path) -> float:
    """Return by how many MiB the peak exceeds the memory after the first import."""
    logging.configure(json=True, level="warning")
    given: dict[str, object] = {"env": "test", "database_url": database, "data_dir": folder / "data"}
    settings = Settings(_env_file=None, session_secret="bench", **given)  # type: ignore[arg-type]
    load_extractors(settings)
    with closing(build(settings)) as app:
        first, *others = sorted(folder.glob("*.txt"))
        _import(app.imports.of(uuid4()), [first])
        before = memory(getpid())
        _import(app.imports.of(uuid4()), others)
        return (memory(getpid(), peak=True) - before) / MIB
