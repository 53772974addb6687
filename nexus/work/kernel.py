"""All work of a process: every request, thread, task and command that does work comes through here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any
from uuid import uuid4

from nexus import logging
from nexus.db.patience import insist
from nexus.db.session import Sessions
from nexus.errors import JobTimeout
from nexus.queue import Queue, Work
from nexus.work.handler import SWEEP, WORKER, Claim, EndedAttempt, Handler, Hold
from nexus.work.leases import Leases
from nexus.work.retry import Again, decide

log = logging.get_logger(__name__)

#: How many rows a sweep takes back in one transaction.
BATCH = 100
#: How many pieces of due work a sweep announces for each kind.
REMINDERS = 1000


@dataclass(frozen=True)
class Swept:
    released: int
    announced: int


class Kernel:
    """Asks handlers in the order of their registration: the first that has due work is served."""

    def __init__(self, sessions: Sessions, leases: Leases, backoff_seconds: float) -> None:
        self.sessions = sessions
        self.leases = leases
        self.handlers: dict[str, Handler[Any, Any]] = {}
        self._backoff_seconds = backoff_seconds

    def register(self, handler: Handler[Any, Any]) -> None:
        self.handlers[handler.kind] = handler
        self.leases.backlogs[handler.kind] = handler.backlog

    def run(self, work: Work) -> str | None:
        """Do one piece of work here and now; return how it ended, or None if it was not due.

        Raises only if the database fails for longer than `insist` keeps trying.
        """
        handler = self.handlers[work.kind]
        outcome = None
        while (claim := self._claim(handler, work, first=outcome is None)) is not None:
            outcome = self.finish(claim)
            if not handler.repeats:
                break
        return outcome

    def finish(self, claim: Claim[Any]) -> str:
        """Do claimed work and write its result, under a lease that is renewed meanwhile."""
        with self.leases.hold(claim.hold):
            ended = self.attempt(claim)
            (outcome,) = insist(lambda: self.settle([ended]))
        return outcome

    def attempt(self, claim: Claim[Any]) -> EndedAttempt[Any, Any]:
        """Do claimed work. The caller has to settle the result."""
        handler, number = self.handlers[claim.hold.work.kind], claim.hold.attempt
        name = {handler.log_id: str(claim.hold.work.id)}
        with logging.task_log_context(request_id=claim.request_id, **name):
            log.info(f"{handler.log_event}_started", attempt=number, **name)
            return EndedAttempt(claim, handler.do(claim))

    def settle(self, ended: Sequence[EndedAttempt[Any, Any]]) -> list[str]:
        """Write the results of attempts at one kind of work, and say how they ended."""
        handler = self.handlers[ended[0].claim.hold.work.kind]
        outcomes = handler.settle(ended)
        for one, outcome in zip(ended, outcomes, strict=True):
            hold, request_id = one.claim.hold, one.claim.request_id
            name = {handler.log_id: str(hold.work.id)}
            with logging.task_log_context(request_id=request_id):
                log.info(f"{handler.log_event}_ended", attempt=hold.attempt, outcome=str(outcome), **name)
        return outcomes

    def give_back(self, holds: Iterable[Hold]) -> None:
        """Let go of work that this process will not get to: it is due again at once, for other workers."""
        ordered = sorted(holds)
        self.leases.let_go(*ordered)
        for kind in sorted({hold.work.kind for hold in ordered}):
            with self.sessions.begin() as session:
                for hold in ordered:
                    if hold.work.kind == kind:
                        self.handlers[kind].put_down(session, hold, Again(counted=False), None, WORKER)

    def sweep(self, queue: Queue, stopped: Callable[[], bool] = lambda: False) -> Swept:
        """Take back work whose worker is gone, and announce due work if workers don't look for it themselves.

        Safe to run in several processes at once: rows that another process holds are skipped.
        """
        released = sum(self._release_lost(handler) for handler in self.handlers.values())
        announced = 0 if queue.workers_look else self._remind(queue, stopped)
        if released or announced:
            log.info("swept", released=released, announced=announced)
        return Swept(released, announced)

    def _claim(self, handler: Handler[Any, Any], work: Work, *, first: bool) -> Claim[Any] | None:
        with (
            logging.task_log_context(request_id=None, **{handler.log_id: work.id}),
            self.sessions.begin() as session,
        ):
            claim = handler.claim(session, work.id, self.leases.length)
            if claim is None and first:
                handler.log_missed(session, work.id)
            return claim

    def _release_lost(self, handler: Handler[Any, Any]) -> int:
        total = 0
        error = JobTimeout()
        while True:
            with self.sessions.begin() as session:
                lost = handler.backlog.lost(session, BATCH)
                for row in lost:
                    again = decide(error, row.tries, self._backoff_seconds)
                    handler.put_down(
                        session, Hold(Work(handler.kind, row.id), row.attempt), again, error, SWEEP
                    )
            total += len(lost)
            if len(lost) < BATCH:
                return total

    def _remind(self, queue: Queue, stopped: Callable[[], bool]) -> int:
        announced = 0
        for handler in self.handlers.values():
            for work in self._due(handler):
                if stopped():
                    return announced
                announced += queue.announce(work)
        return announced

    def _due(self, handler: Handler[Any, Any]) -> list[Work]:
        """Return due work of some users, beginning with a random one, so that over time everybody gets their turn."""
        lanes = handler.lanes()
        found: list[Work] = []
        with self.sessions.read() as session:
            for lane in lanes:
                users = handler.backlog.users(session, lane, uuid4(), session.now)
                share = ceil(REMINDERS / max(len(lanes) * len(users), 1))
                for user_id in users:
                    due = handler.backlog.due(session, lane, user_id, session.now, share)
                    found += [Work(handler.kind, row_id) for row_id in due]
        return found
