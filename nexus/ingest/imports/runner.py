"""Turns a batch into a library: check, parse, split, commit. It can stop between any two pieces of work.

What is parsed lies in the workspace, and is not parsed again after a pause.
"""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from uuid import UUID

from nexus import logging
from nexus.errors import ApiError, Internal, NexusError, WorkError
from nexus.extract import Extraction, Hints
from nexus.extract.builtin import EPUB, PDF, TEXT
from nexus.extract.child import wire
from nexus.extract.chunks import split
from nexus.extract.sandbox import Reading, ReadingEnded, SandboxClosed
from nexus.ingest.extraction import storable
from nexus.ingest.imports import committing
from nexus.ingest.imports.attempts import Registry
from nexus.ingest.imports.checking import Checked, check, twin_of
from nexus.ingest.imports.committing import Prepared
from nexus.ingest.imports.progress import Outcome, Progress
from nexus.ingest.imports.staging import Batch, Source, Staging
from nexus.ingest.imports.workspaces import Workspace
from nexus.ingest.workbench import Tools
from nexus.states.attempt import Phase
from nexus.states.media import Kind

log = logging.get(__name__)

READERS = {Kind.PDF: PDF, Kind.EPUB: EPUB, Kind.TEXT: TEXT}
#: How long a parser may go on after a stop was asked for, before its process is ended.
GRACE_SECONDS = 1.5
LOOK_SECONDS = 0.05


class Stopped(Exception):
    """Somebody asked for it, or a file can't be imported."""


@dataclass
class Run:
    """One attempt at one batch. It lives as long as the attempt, through every pause."""

    tools: Tools
    registry: Registry
    staging: Staging
    progress: Progress
    viewer: UUID
    attempt_id: UUID
    batch_id: UUID
    at_once: int = 2
    #: Where the batch has gone to, once it is there.
    library_id: UUID | None = None
    _checked: dict[UUID, Checked] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._turns = threading.Semaphore(self.at_once)

    def go(self) -> None:
        """Until it is complete, or stopped. Never raises."""
        try:
            self._work()
        except Stopped:
            self._stopped()
        except SandboxClosed:
            log.info("import_ends_with_the_process", attempt_id=str(self.attempt_id))
        except Exception as error:
            log.error(  # noqa: TRY400 - a traceback may name a file
                "import_broke", attempt_id=str(self.attempt_id), reason=type(error).__name__, at=_place(error)
            )
            self._fail_all(self.staging.get(self.batch_id).sources, Internal())
            self._stopped()
        else:
            self.staging.done(self.batch_id)
            self.registry.complete(self.attempt_id)

    def _work(self) -> None:
        batch = self.staging.get(self.batch_id)
        self.progress.begin(batch.sources)
        workspace = self.registry.workspaces.find(self.attempt_id)
        if workspace is None:
            raise Stopped
        self._preflight(batch)
        sources = [source for source in batch.sources if source.id in self._checked and self._is_new(source)]
        self._parse(sources, workspace)
        self._split(sources, workspace)
        self._commit(batch, sources, workspace)

    def _stopped(self) -> None:
        """A commit that was quicker than the stop leaves nothing to resume."""
        committed = self.library_id is not None
        if committed:
            self.staging.done(self.batch_id)
        self.registry.finish_stop(self.attempt_id, staged_work=not committed)

    def _is_new(self, source: Source) -> bool:
        return self._checked[source.id].twin is None

    # ── Preflight ──

    def _preflight(self, batch: Batch) -> None:
        """Every file is looked at before anything runs, and every problem is named."""
        self._advance(Phase.PREFLIGHT)
        seen: dict[tuple[Kind, str], UUID] = {}
        for source in batch.sources:
            self._look_for_stop()
            self._check(source, seen)
        self._stop_for_failures()

    def _check(self, source: Source, seen: dict[tuple[Kind, str], UUID]) -> None:
        try:
            found = self._checked.get(source.id) or check(source, self.tools.files, self._asked_to_stop)
        except NexusError as error:
            self._fail(source, error)
            return
        self._look_for_stop()  # before what was not read to its end counts
        first = seen.setdefault((source.kind, found.sha256), source.id)
        if first != source.id:
            self._checked.pop(source.id, None)
            self.progress.set(source.id, Outcome.DUPLICATE, message="It is in this import twice.")
            return
        self._checked[source.id] = self._with_twin(found)
        self._show_checked(self._checked[source.id])

    def _with_twin(self, found: Checked) -> Checked:
        with self.tools.sessions.read() as session:
            twin = twin_of(session, self.viewer, found)
        return replace(found, twin=None if twin is None else twin.id)

    def _show_checked(self, found: Checked) -> None:
        if found.twin is not None:
            message = "You have this already; it is put into the library as it is."
            self.progress.set(found.source.id, Outcome.DUPLICATE, message=message)
        else:
            self.progress.set(found.source.id, Outcome.CHECKED)

    # ── Parsing ──

    def _parse(self, sources: list[Source], workspace: Workspace) -> None:
        self._advance(Phase.PARSING)
        left = []
        for source in sources:
            if workspace.has(_text(source)):
                self.progress.set(source.id, Outcome.PARSED)
            else:
                left.append(source)
        with ThreadPoolExecutor(2 * self.at_once, thread_name_prefix="nexus-import") as threads:
            self._parse_all(left, workspace, threads)
        self._look_for_stop()
        self._stop_for_failures()

    def _parse_all(self, left: list[Source], workspace: Workspace, threads: ThreadPoolExecutor) -> None:
        """Twice as many as there are parsers, so that one reads while another keeps what it has read. After a stop none
        is begun, and what runs too long is ended."""
        running: dict[Future[None], Reading] = {}
        waiting = iter(left)
        patience: float | None = None
        while True:
            if self._asked_to_stop():
                patience = patience or time.monotonic() + GRACE_SECONDS
                if time.monotonic() > patience:
                    for reading in running.values():
                        reading.end()
            else:
                self._fill(running, waiting, workspace, threads)
            if not running:
                return
            done, _ = wait(running, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                del running[future]
                future.result()

    def _fill(
        self,
        running: dict[Future[None], Reading],
        waiting: Iterator[Source],
        workspace: Workspace,
        threads: ThreadPoolExecutor,
    ) -> None:
        while len(running) < 2 * self.at_once and (source := next(waiting, None)) is not None:
            reading = Reading()
            running[threads.submit(self._parse_one, source, workspace, reading)] = reading

    def _parse_one(self, source: Source, workspace: Workspace, reading: Reading) -> None:
        try:
            _keep(workspace, source, self._read(source, reading))
        except ReadingEnded:
            self.progress.set(source.id, Outcome.CHECKED)
        except (ApiError, WorkError) as error:
            self._fail(source, error)
        except OSError:
            self._fail(source, Internal("This file can't be read any more. Check that it is still there."))
        else:
            self.progress.set(source.id, Outcome.PARSED)

    def _read(self, source: Source, reading: Reading) -> Extraction:
        """Raises ReadingEnded where a stop was asked for before its turn came."""
        with self._turns:
            if self._asked_to_stop():
                raise ReadingEnded
            self.progress.set(source.id, Outcome.PARSING)
            with source.path.open("rb") as file:
                return self.tools.sandbox.read(
                    READERS[source.kind], file, Hints(filename=source.name), reading=reading
                )

    # ── Splitting ──

    def _split(self, sources: list[Source], workspace: Workspace) -> None:
        self._advance(Phase.SPLITTING)
        for source in sources:
            self._look_for_stop()
            if not workspace.has(_chunks(source)):
                found = _extraction(workspace, source)
                workspace.put(_chunks(source), json.dumps(list(_cut(found))).encode())
            self.progress.set(source.id, Outcome.SPLIT)

    # ── Commit ──

    def _commit(self, batch: Batch, sources: list[Source], workspace: Workspace) -> None:
        self._advance(Phase.ATOMIC_TEXT_COMMIT)
        checked = [self._checked[source.id] for source in sources]
        ready = (self._prepared(source, workspace) for source in sources)
        found = (self._checked.get(source.id) for source in batch.sources)
        twins = [one.twin for one in found if one is not None and one.twin is not None]
        try:
            with (
                committing.stored(self.tools.files, checked, self._look_for_stop) as ids,
                self.registry.committing(self.attempt_id) as allowed,
            ):
                if not allowed:
                    raise Stopped
                with self.tools.sessions.begin() as session:
                    library_id = committing.write(session, self.tools.files, self.viewer, batch, ready, ids)
                    committing.put_twins(session, library_id, twins)
                self.library_id = library_id
        except (ApiError, WorkError) as error:
            self._fail_all(sources, error)
            raise Stopped from error
        for line in self.progress.of(Outcome.SPLIT):
            self.progress.set(line.source_id, Outcome.COMMITTED)

    def _prepared(self, source: Source, workspace: Workspace) -> Prepared:
        chunks = json.loads(workspace.get(_chunks(source)) or b"[]")
        return Prepared(
            self._checked[source.id],
            _extraction(workspace, source),
            [tuple(chunk) for chunk in chunks],
            f"{READERS[source.kind].partition(':')[0]} import",
        )

    # ── Stopping ──

    def _asked_to_stop(self) -> bool:
        return self.registry.flags.is_raised(self.attempt_id)

    def _look_for_stop(self) -> None:
        if self._asked_to_stop():
            raise Stopped

    def _advance(self, phase: Phase) -> None:
        self._look_for_stop()
        if not self.registry.advance(self.attempt_id, phase):
            raise Stopped
        self.progress.tell()

    def _fail(self, source: Source, error: NexusError) -> None:
        self._checked.pop(source.id, None)
        self.progress.set(source.id, Outcome.FAILED, code=error.code, message=error.message)

    def _fail_all(self, sources: Iterable[Source], error: NexusError) -> None:
        for source in sources:
            self.progress.set(source.id, Outcome.FAILED, code=error.code, message=error.message)
        self.registry.stop()

    def _stop_for_failures(self) -> None:
        """The user decides: without the file, or not at all."""
        if self.progress.of(Outcome.FAILED):
            self.registry.stop()
            raise Stopped


def _place(error: BaseException) -> str:
    """Where it came from in the code; never its message, which may name a file."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.name}:{frame.lineno}"


def _cut(found: Extraction) -> Iterator[tuple[int, int, int]]:
    for position, fragment in enumerate(found.fragments):
        for start, end in split(fragment.text):
            yield position, start, end


def _keep(workspace: Workspace, source: Source, found: Extraction) -> None:
    """Raises Internal where there is no room for it."""
    try:
        workspace.put(_text(source), wire.frame(wire.extraction_values(storable(found))))
    except OSError as error:
        raise Internal(
            "There is no room for the text of this file. Free some disk space, then go on."
        ) from error


def _extraction(workspace: Workspace, source: Source) -> Extraction:
    return wire.extraction_of(wire.values_of(workspace.get(_text(source)) or b""))


def _text(source: Source) -> str:
    return f"{source.id.hex}.text"


def _chunks(source: Source) -> str:
    return f"{source.id.hex}.chunks"
