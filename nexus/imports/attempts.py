"""The one attempt of a user: what state it is in, how far it is, and whose results still count.

In memory only. Every verb answers what it found; one that makes no sense changes nothing and is logged as a warning,
one that fails unexpectedly changes nothing either, is logged as an error and raises. A registry that is closed refuses
everything, so that a late result can't open it again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from nexus import logging
from nexus.errors import CancellationFailed
from nexus.imports.flags import Flags
from nexus.imports.workspaces import WorkspaceFailed, Workspaces
from nexus.states import attempt as edges
from nexus.states.attempt import Phase, Status
from nexus.states.machine import Edge, Verdict

log = logging.get(__name__)


@dataclass(frozen=True)
class State:
    status: Status = Status.IDLE
    phase: Phase = Phase.NOT_STARTED
    attempt_id: UUID | None = None
    has_staged_work: bool = False


IDLE = State()


@dataclass(frozen=True)
class Answer:
    """What a verb found, and the state after it. True unless it was refused."""

    verdict: Verdict
    state: State
    #: The result was of an attempt that is not the present one.
    stale: bool = False

    def __bool__(self) -> bool:
        return self.verdict is not Verdict.REFUSE


class Registry:
    def __init__(self, workspaces: Workspaces) -> None:
        self._lock = threading.RLock()
        self._state = IDLE
        self._closed = False
        self.flags = Flags()
        self.workspaces = workspaces

    @property
    def state(self) -> State:
        """As it is now: nobody waits for it, not even while the commit runs."""
        return self._state

    @property
    def is_closed(self) -> bool:
        return self._closed

    def start(self) -> Answer:
        """A new attempt with a workspace of its own. Raises WorkspaceFailed, and nothing has changed then."""
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
            return self._moved(edges.START, State(Status.RUNNING, Phase.PREFLIGHT, attempt_id, True))

    def advance(self, attempt_id: UUID, phase: Phase) -> Answer:
        with self._verb(edges.ADVANCE):
            if not self._may(edges.ADVANCE, attempt_id):
                return self._refused(edges.ADVANCE, attempt_id)
            return self._moved(edges.ADVANCE, replace(self._state, phase=phase))

    def stop(self) -> Answer:
        """Ask the runner to stop. The flag is up before the state says so.

        Raises CancellationFailed if the flag can't be raised; the attempt is still running then.
        """
        with self._verb(edges.STOP):
            attempt_id = self._state.attempt_id
            if attempt_id is None or not self._may(edges.STOP):
                return self._refused(edges.STOP)
            self._raise_flag(attempt_id)
            return self._moved(edges.STOP, replace(self._state, status=Status.STOPPING))

    def finish_stop(self, attempt_id: UUID, *, staged_work: bool) -> Answer:
        """The runner has stopped: PAUSED if work is left, IDLE if none is."""
        edge = edges.PAUSED if staged_work else edges.STOPPED
        with self._verb(edge):
            if not self._may(edge, attempt_id):
                return self._refused(edge, attempt_id)
            if staged_work:
                answer = self._moved(edge, replace(self._state, status=Status.PAUSED))
            else:
                answer = self._ended(edge, attempt_id, IDLE)
            log.info("import_stop_finished", attempt_id=str(attempt_id), staged_work=staged_work)
            return answer

    def resume(self) -> Answer:
        """The same attempt goes on with its workspace and its phase, if both attempt and workspace are still there."""
        with self._verb(edges.RESUME):
            attempt_id = self._state.attempt_id
            if attempt_id is None or not self._may(edges.RESUME) or self.workspaces.find(attempt_id) is None:
                return self._refused(edges.RESUME)
            self.flags.lower(attempt_id)
            return self._moved(edges.RESUME, replace(self._state, status=Status.RUNNING))

    def discard(self) -> Answer:
        """Throw a paused attempt away."""
        with self._verb(edges.DISCARD):
            attempt_id = self._state.attempt_id
            if attempt_id is None or not self._may(edges.DISCARD):
                return self._refused(edges.DISCARD)
            return self._ended(edges.DISCARD, attempt_id, IDLE)

    @contextmanager
    def committing(self, attempt_id: UUID) -> Iterator[bool]:
        """Whether the attempt may commit, inside; from here on, who wants to stop it waits for the outcome.

        The text is committed when the block ends, unless it raises.
        """
        with self._lock:
            with self._verb(edges.ADVANCE):
                allowed = self._may(edges.ADVANCE, attempt_id) and not self.flags.is_raised(attempt_id)
            yield allowed
            if allowed:
                self.advance(attempt_id, Phase.TEXT_COMMITTED)

    def complete(self, attempt_id: UUID) -> Answer:
        with self._verb(edges.COMPLETE):
            if not self._may(edges.COMPLETE, attempt_id):
                return self._refused(edges.COMPLETE, attempt_id)
            return self._ended(edges.COMPLETE, attempt_id, replace(IDLE, status=Status.COMPLETE))

    def forbid(self) -> None:
        """Refuse every verb but `close` from now on, without waiting for one that is under way."""
        self._closed = True

    def close(self) -> Answer:
        """The process ends: what runs or waits is discarded, its flag stays up, and its folder is the next start's.

        Whatever fails here, the registry refuses every other verb from now on: nothing is committed any more.
        """
        with self._verb(edges.CLOSE):
            attempt_id = self._state.attempt_id
            self._closed = True
            if attempt_id is None:
                return Answer(Verdict.SKIP, self._state)
            self._raise_flag(attempt_id)
            self.workspaces.abandon(attempt_id)
            log.info("import_closed", attempt_id=str(attempt_id), phase=self._state.phase)
            self._state = replace(self._state, status=Status.STOPPING)
            return Answer(Verdict.APPLY, self._state)

    @contextmanager
    def _verb(self, edge: Edge[Status]) -> Iterator[None]:
        """One verb at a time. What fails unexpectedly is logged and raised.

        A verb changes the state in its last step, so a failure has left it as it was.
        """
        with self._lock:
            try:
                yield
            except Exception as error:
                event = (
                    "import_workspace_failed" if isinstance(error, WorkspaceFailed) else "import_verb_failed"
                )
                # Without the traceback, which may name a file.
                log.error(event, verb=edge.verb, status=self._state.status, reason=type(error).__name__)  # noqa: TRY400
                raise

    def _raise_flag(self, attempt_id: UUID) -> None:
        """Raises CancellationFailed."""
        try:
            self.flags.raise_(attempt_id)
        except Exception as error:
            raise CancellationFailed from error

    def _may(self, edge: Edge[Status], attempt_id: UUID | None = None) -> bool:
        ours = attempt_id is None or attempt_id == self._state.attempt_id
        return not self._closed and ours and edge.decide(self._state.status) is Verdict.APPLY

    def _moved(self, edge: Edge[Status], state: State) -> Answer:
        log.info(
            "import_moved",
            verb=edge.verb,
            attempt_id=str(state.attempt_id or self._state.attempt_id),
            before=self._state.status,
            after=state.status,
            phase=state.phase,
        )
        self._state = state
        return Answer(Verdict.APPLY, state)

    def _ended(self, edge: Edge[Status], attempt_id: UUID, state: State) -> Answer:
        """To a state without an attempt: nothing of it is left.

        The workspace goes first: if that fails, the attempt is as it was, and the verb can be asked for again.
        """
        self.workspaces.remove(attempt_id)
        self.flags.forget(attempt_id)
        return self._moved(edge, state)

    def _refused(self, edge: Edge[Status], attempt_id: UUID | None = None) -> Answer:
        stale = attempt_id is not None and attempt_id != self._state.attempt_id
        verdict = Verdict.REFUSE if stale or self._closed else edge.decide(self._state.status)
        if verdict is Verdict.APPLY:
            verdict = Verdict.REFUSE
        log.warning(
            "import_refused", verb=edge.verb, status=self._state.status, stale=stale, closed=self._closed
        )
        return Answer(verdict, self._state, stale)
