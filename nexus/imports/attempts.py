"""A user's one import attempt: its state, how far it is, and which results still count.

Kept in memory only. A verb returns what it found: one that makes no sense in the current state changes nothing and logs
a warning; one that fails unexpectedly changes nothing either, logs an error and raises. A closed registry refuses every
verb, so that a late result can't revive it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from nexus import logging
from nexus.errors import CancellationFailed, WorkspaceFailed
from nexus.imports.workspaces import Workspaces
from nexus.states import attempt as edges
from nexus.states.attempt import AttemptStatus, Phase
from nexus.states.machine import Edge, Verdict

log = logging.get_logger(__name__)


@dataclass(frozen=True)
class AttemptState:
    status: AttemptStatus = AttemptStatus.IDLE
    phase: Phase = Phase.NOT_STARTED
    attempt_id: UUID | None = None
    has_staged_work: bool = False


IDLE = AttemptState()


@dataclass(frozen=True)
class AttemptAnswer:
    """What a verb found, and the state after it. It is true unless the verb was refused."""

    verdict: Verdict
    state: AttemptState
    #: Whether the verb was meant for another attempt than the current one.
    stale: bool = False

    def __bool__(self) -> bool:
        return self.verdict is not Verdict.REFUSE


class StopFlags:
    """Which attempts have been asked to stop. An unknown attempt counts as asked: its work is over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[UUID, bool] = {}

    def lower(self, attempt_id: UUID) -> None:
        """Let an attempt start, or resume."""
        with self._lock:
            self._asked[attempt_id] = False

    def raise_(self, attempt_id: UUID) -> None:
        """Ask an attempt to stop. Raises KeyError if it is unknown."""
        with self._lock:
            if attempt_id not in self._asked:
                raise KeyError(attempt_id)
            self._asked[attempt_id] = True

    def is_raised(self, attempt_id: UUID) -> bool:
        """Whether to stop. The runner asks between any two pieces of work, and before the commit."""
        with self._lock:
            return self._asked.get(attempt_id, True)

    def forget(self, attempt_id: UUID) -> None:
        with self._lock:
            self._asked.pop(attempt_id, None)


class Registry:
    """Moves the attempt along the edges of its machine."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._lock = threading.RLock()
        self._state = IDLE
        self._closed = False
        self.flags = StopFlags()
        self.workspaces = workspaces

    @property
    def state(self) -> AttemptState:
        """The current state. Never waits, not even during a commit."""
        return self._state

    @property
    def is_closed(self) -> bool:
        return self._closed

    def start(self) -> AttemptAnswer:
        """Begin a new attempt with its own workspace. Raises WorkspaceFailed, and then nothing has changed."""
        with self._verb(edges.START):
            if not self._may(edges.START):
                return self._refused(edges.START)
            attempt_id = uuid4()
            try:
                self.workspaces.create(attempt_id)
                self.flags.lower(attempt_id)
            except BaseException:
                self.workspaces.remove(attempt_id)
                raise
            return self._moved(
                edges.START, AttemptState(AttemptStatus.RUNNING, Phase.PREFLIGHT, attempt_id, True)
            )

    def advance(self, attempt_id: UUID, phase: Phase) -> AttemptAnswer:
        """Report that the attempt has reached a phase."""
        with self._verb(edges.ADVANCE):
            if not self._may(edges.ADVANCE, attempt_id):
                return self._refused(edges.ADVANCE, attempt_id)
            return self._moved(edges.ADVANCE, replace(self._state, phase=phase))

    def stop(self) -> AttemptAnswer:
        """Ask the runner to stop. Raises the flag before it changes the state.

        Raises CancellationFailed if the flag can't be raised; then the attempt keeps running.
        """
        with self._verb(edges.STOP):
            attempt_id = self._state.attempt_id
            if attempt_id is None or not self._may(edges.STOP):
                return self._refused(edges.STOP)
            self._raise_flag(attempt_id)
            return self._moved(edges.STOP, replace(self._state, status=AttemptStatus.STOPPING))

    def finish_stop(self, attempt_id: UUID, *, staged_work: bool) -> AttemptAnswer:
        """Report that the runner has stopped: PAUSED if it left work to resume, else IDLE."""
        edge = edges.PAUSED if staged_work else edges.STOPPED
        with self._verb(edge):
            if not self._may(edge, attempt_id):
                return self._refused(edge, attempt_id)
            if staged_work:
                answer = self._moved(edge, replace(self._state, status=AttemptStatus.PAUSED))
            else:
                answer = self._ended(edge, attempt_id, IDLE)
            log.info("import_stop_finished", attempt_id=str(attempt_id), staged_work=staged_work)
            return answer

    def resume(self) -> AttemptAnswer:
        """Let a paused attempt continue with its workspace and phase. Refused if its workspace is gone."""
        with self._verb(edges.RESUME):
            attempt_id = self._state.attempt_id
            if attempt_id is None or not self._may(edges.RESUME) or self.workspaces.find(attempt_id) is None:
                return self._refused(edges.RESUME)
            self.flags.lower(attempt_id)
            return self._moved(edges.RESUME, replace(self._state, status=AttemptStatus.RUNNING))

    def discard(self) -> AttemptAnswer:
        """Throw away a paused attempt."""
        with self._verb(edges.DISCARD):
            attempt_id = self._state.attempt_id
            if attempt_id is None or not self._may(edges.DISCARD):
                return self._refused(edges.DISCARD)
            return self._ended(edges.DISCARD, attempt_id, IDLE)

    @contextmanager
    def committing(self, attempt_id: UUID) -> Iterator[bool]:
        """Whether the attempt may commit. Until the block ends, anybody who wants to stop it waits.

        Reports the text as committed when the block ends, unless it raises.
        """
        with self._lock:
            with self._verb(edges.ADVANCE):
                allowed = self._may(edges.ADVANCE, attempt_id) and not self.flags.is_raised(attempt_id)
            yield allowed
            if allowed:
                self.advance(attempt_id, Phase.TEXT_COMMITTED)

    def complete(self, attempt_id: UUID) -> AttemptAnswer:
        """Report that everything is in the library."""
        with self._verb(edges.COMPLETE):
            if not self._may(edges.COMPLETE, attempt_id):
                return self._refused(edges.COMPLETE, attempt_id)
            return self._ended(edges.COMPLETE, attempt_id, replace(IDLE, status=AttemptStatus.COMPLETE))

    def forbid(self) -> None:
        """Refuse every verb but `close` from now on. Does not wait for one that is running."""
        self._closed = True

    def close(self) -> AttemptAnswer:
        """The process is ending: tell the attempt to stop, and leave its folder to the next process.

        Even if this fails, the registry refuses every other verb from now on, so nothing is committed any more.
        """
        with self._verb(edges.CLOSE):
            attempt_id = self._state.attempt_id
            self._closed = True
            if attempt_id is None:
                return AttemptAnswer(Verdict.SKIP, self._state)
            self._raise_flag(attempt_id)
            self.workspaces.abandon(attempt_id)
            log.info("import_closed", attempt_id=str(attempt_id), phase=self._state.phase)
            self._state = replace(self._state, status=AttemptStatus.STOPPING)
            return AttemptAnswer(Verdict.APPLY, self._state)

    @contextmanager
    def _verb(self, edge: Edge[AttemptStatus]) -> Iterator[None]:
        """Run one verb at a time; log and raise unexpected failures.

        A verb changes the state in its last step, so a failure leaves the state as it was.
        """
        with self._lock:
            try:
                yield
            except Exception as error:
                event = (
                    "import_workspace_failed" if isinstance(error, WorkspaceFailed) else "import_verb_failed"
                )
                # No traceback: it may name a file.
                log.error(event, verb=edge.verb, status=self._state.status, reason=type(error).__name__)  # noqa: TRY400
                raise

    def _raise_flag(self, attempt_id: UUID) -> None:
        """Raises CancellationFailed."""
        try:
            self.flags.raise_(attempt_id)
        except Exception as error:
            raise CancellationFailed from error

    def _may(self, edge: Edge[AttemptStatus], attempt_id: UUID | None = None) -> bool:
        ours = attempt_id is None or attempt_id == self._state.attempt_id
        return not self._closed and ours and edge.decide(self._state.status) is Verdict.APPLY

    def _moved(self, edge: Edge[AttemptStatus], state: AttemptState) -> AttemptAnswer:
        log.info(
            "import_moved",
            verb=edge.verb,
            attempt_id=str(state.attempt_id or self._state.attempt_id),
            before=self._state.status,
            after=state.status,
            phase=state.phase,
        )
        self._state = state
        return AttemptAnswer(Verdict.APPLY, state)

    def _ended(self, edge: Edge[AttemptStatus], attempt_id: UUID, state: AttemptState) -> AttemptAnswer:
        """Move to a state without an attempt, and remove everything it had.

        The workspace first: if that fails, the attempt is unchanged and the verb can be repeated.
        """
        self.workspaces.remove(attempt_id)
        self.flags.forget(attempt_id)
        return self._moved(edge, state)

    def _refused(self, edge: Edge[AttemptStatus], attempt_id: UUID | None = None) -> AttemptAnswer:
        stale = attempt_id is not None and attempt_id != self._state.attempt_id
        verdict = Verdict.REFUSE if stale or self._closed else edge.decide(self._state.status)
        if verdict is Verdict.APPLY:
            verdict = Verdict.REFUSE
        log.warning(
            "import_refused", verb=edge.verb, status=self._state.status, stale=stale, closed=self._closed
        )
        return AttemptAnswer(verdict, self._state, stale)
