"""After the faults: repairs everything, restarts it, and waits until all work has ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

from chaos import broken_disk
from chaos.invariants import Violation
from chaos.invariants.database import Database
from chaos.invariants.rows import in_flight
from chaos.plan import PROCESSES
from chaos.stage import Stage

#: How long the remaining work may take, in seconds: its leases, its tries and its turn in the queue.
PATIENCE = 180.0
#: How long upkeep, which runs every second, may take to remove all that is old.
UPKEEP_PATIENCE = 60.0
GLANCE = 0.2


def restore(stage: Stage) -> Iterator[Violation]:
    """Repair everything, stop every process properly, and start them again."""
    for line in stage.lines.values():
        line.restore()
    for kind in (broken_disk.FULL, broken_disk.READ_ONLY):
        broken_disk.flag(stage.data, kind).unlink(missing_ok=True)
    for process in stage.processes.values():
        process.send(signal.SIGCONT)
    stage.wait_until_ready()
    for name in PROCESSES:
        code = stage.processes[name].stop()
        if code:
            yield Violation("a process stops when it is told to", f"{name} ended with code {code}")
        stage.start(name)
    stage.wait_until_ready()
    for end in stage.ended:
        yield Violation("a process lives until it is told to stop", end)


def wait_for_upkeep(done: Callable[[], bool]) -> None:
    """Wait until upkeep has come by, or as long as that can take."""
    end = time.monotonic() + UPKEEP_PATIENCE
    while not done() and time.monotonic() < end:
        time.sleep(GLANCE)


def wait_until_at_rest(database: Database) -> float:
    """Wait until no work is left, or as long as that can take; return the seconds. What is left then is stuck."""
    began = time.monotonic()
    while in_flight(database) and time.monotonic() < began + PATIENCE:
        time.sleep(GLANCE)
    return time.monotonic() - began
