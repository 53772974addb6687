"""Turns a batch into a library: check, parse, split, commit. It can stop between any two pieces of work.

A file is split as soon as it is parsed, while others are being parsed: the phase is that of the one furthest behind.
What is parsed lies in the workspace, and is not parsed again after a pause.
"""

from __future__ import annotations

import json
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain, repeat
from uuid import UUID

from nexus import logging
from nexus.errors import ApiError, ExtractionFailed, FileChanged, Internal, NexusError, NotReady, WorkError
from nexus.extract import Extraction, Hints
from nexus.extract.builtin import EPUB, PDF, TEXT
from nexus.extract.child import wire
from nexus.extract.sandbox import Reading, ReadingEnded, SandboxClosed
from nexus.imports import committing
from nexus.imports.attempts import Registry
from nexus.imports.checking import CHANGED, Candidate, Checked, Standing, candidate, check, opened
from nexus.imports.committing import Prepared, Storing
from nexus.imports.progress import Outcome, Progress
from nexus.imports.staging import Batch, Source, Staging
from nexus.imports.workspaces import Workspace, WorkspaceFailed
from nexus.media.documents import Cut
from nexus.media.extraction import storable
from nexus.media.files import GRACE
from nexus.media.workbench import Tools
from nexus.states.attempt import Phase
from nexus.states.media import Kind

log = logging.get(__name__)

READERS = {Kind.PDF: PDF, Kind.EPUB: EPUB, Kind.TEXT: TEXT}
#: How long a parser may go on after a stop was asked for, before its process is ended.
GRACE_SECONDS = 1.5
LOOK_SECONDS = 0.05
#: Between two questions to a database that is away, in seconds.
PAUSES = (0.1, 0.2, 0.5, 1.0)
UNANSWERED = "The database went away during the commit. Nexus asks it again what was committed."
ORDER = list(Phase)


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
    #: Where the batch has gone to, once it is there.
    library_id: UUID | None = None
    #: Whether the transaction is being committed, or was, and its outcome is not known.
    in_doubt: bool = False
    _checked: dict[UUID, Checked] = field(default_factory=dict)
    _seen: set[UUID] = field(default_factory=set)

    def go(self) -> None:
        """Until it is complete, or stopped. Never raises: if its end can't be told now, `settle` tells it later."""
        try:
            self._go()
            self.settle()
        except Exception as error:
            self._broke(error)

    def settle(self) -> None:
        """Say how it ended."""
        if self.library_id is not None:
            self._done()
        elif self.registry.is_closed:
            log.info("import_ends_with_the_process", attempt_id=str(self.attempt_id))
        else:
            self.registry.finish_stop(self.attempt_id, staged_work=True)

    def _done(self) -> None:
        """Somebody may have asked for a stop while it was committed: then there is nothing left to resume."""
        self.staging.done(self.batch_id)
        if not self.registry.complete(self.attempt_id):
            self.registry.finish_stop(self.attempt_id, staged_work=False)

    def _go(self) -> None:
        """Until everything is in the library, or a stop is asked for."""
        try:
            self._work()
        except (Stopped, SandboxClosed):
            pass
        except Exception as error:
            self._broke(error)
            self._stumble(Internal())

    def _broke(self, error: Exception) -> None:
        """Without the traceback, which may name a file."""
        log.error(
            "import_broke", attempt_id=str(self.attempt_id), reason=type(error).__name__, at=_place(error)
        )

    def _work(self) -> None:
        batch = self.staging.get(self.batch_id)
        self.progress.begin(batch.sources)
        self._begin_again_for_new(batch)
        while self.library_id is None:
            with suppress(committing.Overtaken):
                self._try(batch, self._preflight(batch))

    def _try(self, batch: Batch, candidates: list[Candidate]) -> None:
        """Raises Overtaken where it has to begin again; what is parsed stays parsed."""
        left = [one for one in candidates if one.standing is not Standing.KNOWN]
        sources = [one.source for one in left]
        self._parse(sources)
        self._split(sources)
        with committing.storing(self.tools.files, left, self._look_for_stop) as storing:
            self._commit(batch, candidates, storing)

    # ── Preflight ──

    def _preflight(self, batch: Batch) -> list[Candidate]:
        """Every file is looked at before anything runs, and every problem is named."""
        self._advance(Phase.PREFLIGHT)
        for source in batch.sources:
            self._look_for_stop()
            self._check(source)
        self._stop_for_failures()
        with self.tools.sessions.read() as session:
            found = [candidate(session, self.viewer, one) for one in self._once_each(batch.sources)]
        for one in found:
            if one.standing is Standing.KNOWN:
                self._skip(one.source, "You have this already. It goes into the library as it is.")
        return found

    def _check(self, source: Source) -> None:
        """Also what was checked before a pause, in which somebody may have changed it."""
        checked = self._checked.get(source.id)
        try:
            if checked is None or not checked.is_same:
                self._forget(source)
                checked = check(source, self.tools.files, self._asked_to_stop)
        except NexusError as error:
            self._fail(source, error)
        else:
            self._look_for_stop()  # before what was not read to its end counts
            self._checked[source.id] = checked
            self.progress.set(source.id, self._how_far(source))

    def _forget(self, source: Source) -> None:
        self._checked.pop(source.id, None)
        self._workspace.drop(_text(source))
        self._workspace.drop(_cut(source))

    def _how_far(self, source: Source) -> Outcome:
        if self._workspace.has(_cut(source)):
            return Outcome.SPLIT
        return Outcome.PARSED if self._workspace.has(_text(source)) else Outcome.CHECKED

    def _once_each(self, sources: Iterable[Source]) -> Iterator[Checked]:
        seen = set()
        for source in sources:
            checked = self._checked[source.id]
            if (source.kind, checked.sha256) in seen:
                self._skip(source, "It is in this import twice.")
            else:
                seen.add((source.kind, checked.sha256))
                yield checked

    def _skip(self, source: Source, why: str) -> None:
        self.progress.set(source.id, Outcome.DUPLICATE, message=why)

    # ── Parsing ──

    def _parse(self, sources: list[Source]) -> None:
        self._advance(Phase.PARSING)
        self._parse_all(deque(source for source in sources if not self._workspace.has(_text(source))))
        self._look_for_stop()
        self._stop_for_failures()

    def _parse_all(self, left: deque[Source]) -> None:
        """With a thread for each parser. After a stop none is begun, and what runs too long is ended."""
        readings = [Reading() for _ in range(self.tools.sandbox.processes)]
        with ThreadPoolExecutor(len(readings), thread_name_prefix="nexus-import") as threads:
            working = [threads.submit(self._parse_some, left, reading) for reading in readings]
            stopped_at: float | None = None
            while wait(working, LOOK_SECONDS).not_done:
                if stopped_at is None and self._asked_to_stop():
                    stopped_at = time.monotonic()
                if stopped_at is not None and time.monotonic() > stopped_at + GRACE_SECONDS:
                    for reading in readings:
                        reading.end()
        for one in working:
            one.result()

    def _parse_some(self, left: deque[Source], reading: Reading) -> None:
        while not self._asked_to_stop():
            try:
                source = left.popleft()
            except IndexError:
                return
            found = self._parse_one(source, reading)
            if found is not None and not self._asked_to_stop():
                self._split_one(source, found)

    def _parse_one(self, source: Source, reading: Reading) -> Extraction | None:
        try:
            self.progress.set(source.id, Outcome.PARSING)
            found = storable(self._read(source, reading))
            self._keep(_text(source), wire.frame(wire.extraction_values(found)))
        except (ReadingEnded, Stopped):
            self.progress.set(source.id, Outcome.CHECKED)
        except (ApiError, WorkError) as error:
            self._fail(source, error)
        else:
            self.progress.set(source.id, Outcome.PARSED)
            return found
        return None

    def _read(self, source: Source, reading: Reading) -> Extraction:
        """Raises FileChanged where the parser may have seen something else than what was checked."""
        checked, hints = self._checked[source.id], Hints(filename=source.name)
        try:
            with opened(source.path) as file:
                found = self.tools.sandbox.read(READERS[source.kind], file, hints, reading=reading)
        except ExtractionFailed as error:
            raise error if checked.is_same else FileChanged(CHANGED) from error
        if not checked.is_same:
            raise FileChanged(CHANGED)
        return found

    # ── Splitting ──

    def _split(self, sources: list[Source]) -> None:
        """What a stop has left unsplit: everything else was split as soon as it was parsed."""
        self._advance(Phase.SPLITTING)
        for source in sources:
            self._look_for_stop()
            if not self._workspace.has(_cut(source)):
                self._split_one(source, self._kept(source))
        self._stop_for_failures()

    def _split_one(self, source: Source, found: Extraction) -> None:
        try:
            self._keep(_cut(source), json.dumps(vars(Cut.of(found))).encode())
        except Internal as error:
            self._fail(source, error)
        else:
            self.progress.set(source.id, Outcome.SPLIT)

    # ── Workspace ──

    @property
    def _workspace(self) -> Workspace:
        """Raises WorkspaceFailed where somebody took its folder away."""
        found = self.registry.workspaces.find(self.attempt_id)
        if found is None:
            self._look_for_stop()
            raise WorkspaceFailed
        return found

    def _keep(self, name: str, piece: bytes) -> None:
        """Raises Internal where there is no room for it."""
        try:
            self._workspace.put(name, piece)
        except OSError as error:
            raise Internal(
                "There is no room for the text of this file. Free some disk space, then go on."
            ) from error

    def _kept(self, source: Source) -> Extraction:
        return wire.extraction_of(wire.values_of(self._workspace.get(_text(source)) or b""))

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
                library_id = committing.write(
                    session, self.tools.files, self.viewer, batch, candidates, ready
                )
                if clock() - began > GRACE / 2:  # a very large import, or a laptop that slept
                    storing.require_stored()
                if not after.enter_context(self.registry.committing(self.attempt_id)):
                    raise Stopped
                storing.keep()
                self.in_doubt = True
        except (ApiError, WorkError) as error:
            self._stumble(error)
            raise Stopped from error
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
        for line in self.progress.of(Outcome.SPLIT):
            self.progress.set(line.source_id, Outcome.COMMITTED)

    def _is_committed(self, library_id: UUID, candidates: list[Candidate]) -> bool:
        """What the database says of a commit whose answer was lost. Asks for as long as the database is away.

        Raises Stopped when the process ends before that is known.
        """
        pauses = chain(PAUSES, repeat(PAUSES[-1]))
        while (found := committing.look_up(self.tools.sessions, self.viewer, library_id, candidates)) is None:
            if self.registry.is_closed:
                raise Stopped
            self.progress.stumble(NotReady(UNANSWERED))
            time.sleep(next(pauses))
        log.info("import_commit_looked_up", attempt_id=str(self.attempt_id), committed=found)
        return found

    def _prepared(self, one: Candidate) -> Prepared:
        self._look_for_stop()
        cut = Cut(**json.loads(self._workspace.get(_cut(one.source)) or b""))
        extractor = f"{READERS[one.source.kind].partition(':')[0]} import"
        return Prepared(one, self._kept(one.source), cut, extractor)

    # ── Stopping ──

    def _asked_to_stop(self) -> bool:
        return self.registry.flags.is_raised(self.attempt_id)

    def _look_for_stop(self) -> None:
        if self._asked_to_stop():
            raise Stopped

    def _begin_again_for_new(self, batch: Batch) -> None:
        """Files that were added in a pause are checked and parsed from the beginning, and the phase says so."""
        ids = {source.id for source in batch.sources}
        if self._seen and not ids <= self._seen:
            self._report(Phase.PREFLIGHT)
        self._seen |= ids

    def _advance(self, phase: Phase) -> None:
        """Never back: a resumed attempt keeps its phase while it looks again at what it has done."""
        self._look_for_stop()
        if ORDER.index(phase) > ORDER.index(self.registry.state.phase):
            self._report(phase)

    def _report(self, phase: Phase) -> None:
        if not self.registry.advance(self.attempt_id, phase):
            raise Stopped
        self.progress.tell()

    def _fail(self, source: Source, error: NexusError) -> None:
        """Whoever goes on with it has it checked and parsed anew: it may be another file by then."""
        self._forget(source)
        self.progress.set(source.id, Outcome.FAILED, code=error.code, message=error.message)

    def _stumble(self, error: NexusError) -> None:
        """Over what is no file's fault: nothing has to be taken out to go on."""
        self.progress.stumble(error)
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


def _text(source: Source) -> str:
    return f"{source.id.hex}.text"


def _cut(source: Source) -> str:
    return f"{source.id.hex}.cut"
