"""Turns a batch into a library: check, parse, split, commit. It can stop between any two pieces of work.

A file is split as soon as it is parsed, while others are still being parsed; the phase is that of the file furthest
behind. Parsed text is kept in the workspace and not parsed again after a pause.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain, repeat
from uuid import UUID

from nexus import logging
from nexus.errors import (
    ApiError,
    ExtractionFailed,
    FileChanged,
    Internal,
    NexusError,
    NotReady,
    WorkError,
    WorkspaceFailed,
    public_code,
)
from nexus.extract import Extraction
from nexus.extract.child import messages
from nexus.extract.registry import extractor_origin
from nexus.extract.sandbox import CancelToken, ReadCancelled, SandboxClosed
from nexus.imports import committing
from nexus.imports.attempts import Registry
from nexus.imports.checking import CHANGED, Candidate, Checked, Standing, check_source, find_candidate
from nexus.imports.committing import Prepared, Storing
from nexus.imports.extracting import extract_text, extractor_of
from nexus.imports.progress import FileOutcome, ImportProgress
from nexus.imports.staging import Batch, StagedSource, Staging
from nexus.imports.workspaces import Workspace
from nexus.media.files import GRACE
from nexus.media.texts import Cut
from nexus.media.workbench import Tools
from nexus.states.attempt import Phase

log = logging.get_logger(__name__)

#: How long a parser may keep running after the user asked to stop; then its process is ended.
GRACE_SECONDS = 1.5
LOOK_SECONDS = 0.05
#: Seconds between two questions to a database that is away.
PAUSES = (0.1, 0.2, 0.5, 1.0)
UNANSWERED = "The database connection was lost while saving. Nexus keeps checking what was saved."
SCAN = "A scan without text; kept as a file."
ORDER = list(Phase)


class ImportStopped(Exception):
    """The user asked to stop, or a file can't be imported."""


@dataclass
class ImportRun:
    """One attempt at one batch, through every pause."""

    tools: Tools
    registry: Registry
    staging: Staging
    progress: ImportProgress
    viewer: UUID
    attempt_id: UUID
    batch_id: UUID
    #: The library that holds the batch, once it is committed.
    library_id: UUID | None = None
    #: Whether a COMMIT was sent and its outcome is not known yet.
    in_doubt: bool = False
    _checked: dict[UUID, Checked] = field(default_factory=dict)
    _seen: set[UUID] = field(default_factory=set)

    def run_until_stopped(self) -> None:
        """Work until the import is complete or stopped. Never raises: if the end can't be reported, `settle` can."""
        try:
            self._go()
            self.settle()
        except Exception as error:
            self._broke(error)

    def settle(self) -> None:
        """Report how it ended."""
        if self.library_id is not None:
            self.staging.finish(self.batch_id)
            # If the user asked to stop during the commit, there is nothing left to resume.
            if not self.registry.complete(self.attempt_id):
                self.registry.finish_stop(self.attempt_id, staged_work=False)
        elif self.registry.is_closed:
            log.info("import_ends_with_the_process", attempt_id=str(self.attempt_id))
        else:
            self.registry.finish_stop(self.attempt_id, staged_work=True)

    def _go(self) -> None:
        """Work until everything is in the library or the user asks to stop."""
        try:
            self._work()
        except (ImportStopped, SandboxClosed):
            pass
        except Exception as error:
            self._broke(error)
            self._stumble(Internal())

    def _broke(self, error: Exception) -> None:
        """No traceback: it may name a file."""
        where = logging.place_of(error)
        log.error("import_broke", attempt_id=str(self.attempt_id), reason=type(error).__name__, at=where)

    def _work(self) -> None:
        batch = self.staging.get(self.batch_id)
        self.progress.begin(batch.sources)
        self._begin_again_for_new(batch)
        while self.library_id is None:
            with suppress(committing.Overtaken):  # check again; what is parsed stays parsed
                candidates = self._preflight(batch)
                left = [one for one in candidates if one.standing is not Standing.KNOWN]
                self._parse(left)
                self._split([one.source for one in left])
                with committing.storing(self.tools.files, left, self._look_for_stop) as storing:
                    self._commit(batch, candidates, storing)

    # ── Preflight ──

    def _preflight(self, batch: Batch) -> list[Candidate]:
        """Check every file before any is parsed, and name every problem."""
        self._advance(Phase.PREFLIGHT)
        for source in batch.sources:
            self._look_for_stop()
            self._check(source)
        self._stop_for_failures()
        with self.tools.sessions.read() as session:
            found = [find_candidate(session, self.viewer, one) for one in self._once_each(batch.sources)]
        for one in found:
            if one.standing is Standing.KNOWN:
                self._skip(one.source, "You already have this. It is added to the library as it is.")
        return found

    def _check(self, source: StagedSource) -> None:
        """Check a file, again if it has changed since it was checked before a pause."""
        checked = self._checked.get(source.id)
        try:
            if checked is None or not checked.is_same:
                self._forget(source)
                extractor_of(source.kind)  # raises, if there is none
                checked = check_source(source, self.tools.files, self._asked_to_stop)
        except NexusError as error:
            self._fail(source, error)
        else:
            self._look_for_stop()  # if so, the file was not read to its end
            self._checked[source.id] = checked
            self.progress.set(source.id, self._how_far(source))

    def _forget(self, source: StagedSource) -> None:
        self._checked.pop(source.id, None)
        self._workspace.drop(_text(source))
        self._workspace.drop(_cut(source))

    def _how_far(self, source: StagedSource) -> FileOutcome:
        if self._workspace.has(_cut(source)):
            return FileOutcome.SPLIT
        return FileOutcome.PARSED if self._workspace.has(_text(source)) else FileOutcome.CHECKED

    def _once_each(self, sources: Iterable[StagedSource]) -> Iterator[Checked]:
        seen = set()
        for source in sources:
            checked = self._checked[source.id]
            if (source.kind, checked.sha256) in seen:
                self._skip(source, "This file is in the import twice.")
            else:
                seen.add((source.kind, checked.sha256))
                yield checked

    def _skip(self, source: StagedSource, why: str) -> None:
        self.progress.set(source.id, FileOutcome.DUPLICATE, message=why)

    # ── Parsing ──

    def _parse(self, candidates: list[Candidate]) -> None:
        self._advance(Phase.PARSING)
        self._parse_all(deque(one for one in candidates if not self._workspace.has(_text(one.source))))
        self._look_for_stop()
        self._stop_for_failures()

    def _parse_all(self, left: deque[Candidate]) -> None:
        """Use a thread for each parser process. After a stop, begin no file, and end parsers that take too long."""
        tokens = [CancelToken() for _ in range(self.tools.sandbox.processes)]
        with ThreadPoolExecutor(len(tokens), thread_name_prefix="nexus-import") as threads:
            working = [threads.submit(self._parse_some, left, token) for token in tokens]
            stopped_at: float | None = None
            while wait(working, LOOK_SECONDS).not_done:
                if stopped_at is None and self._asked_to_stop():
                    stopped_at = time.monotonic()
                if stopped_at is not None and time.monotonic() > stopped_at + GRACE_SECONDS:
                    for token in tokens:
                        token.cancel()
        for one in working:
            one.result()

    def _parse_some(self, left: deque[Candidate], cancel: CancelToken) -> None:
        while not self._asked_to_stop():
            try:
                one = left.popleft()
            except IndexError:
                return
            found = self._parse_one(one, cancel)
            if found is not None and not self._asked_to_stop():
                self._split_one(one.source, found)

    def _parse_one(self, one: Candidate, cancel: CancelToken) -> Extraction | None:
        source = one.source
        try:
            self.progress.set(source.id, FileOutcome.PARSING)
            found = self._extract(one, cancel)
            self._keep(_text(source), messages.pack_extraction(found))
        except (ReadCancelled, ImportStopped):
            self.progress.set(source.id, FileOutcome.CHECKED)
        except (ApiError, WorkError) as error:
            self._fail(source, error)
        else:
            self.progress.set(source.id, FileOutcome.PARSED)
            return found
        return None

    def _extract(self, one: Candidate, cancel: CancelToken) -> Extraction:
        """Raises FileChanged if the extractor may have read something else than what was checked."""
        try:
            found = extract_text(self.tools, self.viewer, one, cancel)
        except ExtractionFailed as error:
            raise error if one.checked.is_same else FileChanged(CHANGED) from error
        if not one.checked.is_same:
            raise FileChanged(CHANGED)
        return found

    # ── Splitting ──

    def _split(self, sources: list[StagedSource]) -> None:
        """Split what a stop left unsplit: other files were split as soon as they were parsed."""
        self._advance(Phase.SPLITTING)
        for source in sources:
            self._look_for_stop()
            if not self._workspace.has(_cut(source)):
                self._split_one(source, self._kept(source))
        self._stop_for_failures()

    def _split_one(self, source: StagedSource, found: Extraction) -> None:
        try:
            self._keep(_cut(source), Cut.of(found).to_json())
        except Internal as error:
            self._fail(source, error)
        else:
            self.progress.set(source.id, FileOutcome.SPLIT, message=None if found.fragments else SCAN)

    # ── Workspace ──

    @property
    def _workspace(self) -> Workspace:
        """Raises WorkspaceFailed if its folder is gone."""
        found = self.registry.workspaces.find(self.attempt_id)
        if found is None:
            self._look_for_stop()
            raise WorkspaceFailed
        return found

    def _keep(self, name: str, piece: bytes) -> None:
        """Raises Internal if the disk is full."""
        try:
            self._workspace.put(name, piece)
        except OSError as error:
            raise Internal(
                "The disk is too full for the text of this file. Free some disk space, then resume."
            ) from error

    def _kept(self, source: StagedSource) -> Extraction:
        return messages.unpack_extraction(self._workspace.get(_text(source)) or b"")

    # ── Commit ──

    def _commit(self, batch: Batch, candidates: list[Candidate], storing: Storing) -> None:
        clock = self.tools.sessions.clock
        began = clock()
        self._advance(Phase.ATOMIC_TEXT_COMMIT)
        for source, error in storing.failures():
            self._fail(source, error)
        self._stop_for_failures()
        ready = (self._prepared(one) for one in candidates if one.standing is not Standing.KNOWN)
        try:
            with ExitStack() as after, self.tools.sessions.begin() as session:
                library_id = committing.write_batch(
                    session, self.tools.files, self.viewer, batch, candidates, ready
                )
                if clock() - began > GRACE / 2:  # a very large import, or a laptop that slept
                    storing.require_stored()
                if not after.enter_context(self.registry.committing(self.attempt_id)):
                    raise ImportStopped
                storing.keep()
                self.in_doubt = True
        except (ApiError, WorkError) as error:
            self._stumble(error)
            raise ImportStopped from error
        except Exception as error:
            if not self.in_doubt:
                raise
            log.warning(
                "import_commit_unanswered", attempt_id=str(self.attempt_id), reason=type(error).__name__
            )
            if not self._is_committed(library_id, candidates):
                self.in_doubt = False
                storing.take_back()
                raise
        self.library_id, self.in_doubt = library_id, False
        if self.registry.state.phase is not Phase.TEXT_COMMITTED:
            self.registry.advance(self.attempt_id, Phase.TEXT_COMMITTED)
        for line in self.progress.of(FileOutcome.SPLIT):
            self.progress.set(line.source_id, FileOutcome.COMMITTED, message=line.message)

    def _is_committed(self, library_id: UUID, candidates: list[Candidate]) -> bool:
        """Ask the database about a commit whose answer was lost, for as long as it is away.

        Raises ImportStopped if the process ends first.
        """
        pauses = chain(PAUSES, repeat(PAUSES[-1]))
        while (
            found := committing.was_committed(self.tools.sessions, self.viewer, library_id, candidates)
        ) is None:
            if self.registry.is_closed:
                raise ImportStopped
            self.progress.stumble(NotReady(UNANSWERED))
            time.sleep(next(pauses))
        log.info("import_commit_looked_up", attempt_id=str(self.attempt_id), committed=found)
        return found

    def _prepared(self, one: Candidate) -> Prepared:
        self._look_for_stop()
        cut = Cut.from_json(self._workspace.get(_cut(one.source)) or b"")
        found = self._kept(one.source)
        if not found.fragments:
            self.progress.set(one.source.id, FileOutcome.SPLIT, message=SCAN)
        return Prepared(one, found, cut, extractor_origin(extractor_of(one.source.kind)))

    # ── Stopping ──

    def _asked_to_stop(self) -> bool:
        return self.registry.flags.is_raised(self.attempt_id)

    def _look_for_stop(self) -> None:
        if self._asked_to_stop():
            raise ImportStopped

    def _begin_again_for_new(self, batch: Batch) -> None:
        """Go back to preflight if files were added during a pause."""
        ids = {source.id for source in batch.sources}
        if self._seen and not ids <= self._seen:
            self._report(Phase.PREFLIGHT)
        self._seen |= ids

    def _advance(self, phase: Phase) -> None:
        """Never goes back: a resumed attempt keeps its phase while it checks what it has done."""
        self._look_for_stop()
        if ORDER.index(phase) > ORDER.index(self.registry.state.phase):
            self._report(phase)

    def _report(self, phase: Phase) -> None:
        if not self.registry.advance(self.attempt_id, phase):
            raise ImportStopped
        self.progress.tell()

    def _fail(self, source: StagedSource, error: NexusError) -> None:
        """Forget what is known of it: when the user resumes, it may be another file."""
        self._forget(source)
        self.progress.set(source.id, FileOutcome.FAILED, public_code(error.code), error.message)

    def _stumble(self, error: NexusError) -> None:
        """Stop for a reason that is not the fault of a file: the user can resume without taking one out."""
        self.progress.stumble(error)
        self.registry.stop()

    def _stop_for_failures(self) -> None:
        """Let the user decide: import without these files, or not at all."""
        if self.progress.of(FileOutcome.FAILED):
            self.registry.stop()
            raise ImportStopped


def _text(source: StagedSource) -> str:
    return f"{source.id.hex}.text"


def _cut(source: StagedSource) -> str:
    return f"{source.id.hex}.cut"
