"""After the faults: everything is whole again, started afresh, and rests once all that was begun has ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

from chaos import broken_disk
from chaos.invariants import Violation
from chaos.invariants.database import Database
from chaos.invariants.rows import in_flight
from chaos.plan import PROCESSES
from chaos.stage import Stage

#: How long the work that is left may take, in seconds: nothing waits longer than its lease, its tries and its turn.
PATIENCE = 180.0
GLANCE = 0.2


def restore(stage: Stage) -> Iterator[Violation]:
    """Mend everything, stop every process the way it is meant to be stopped, and start them again."""
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


def wait_until_at_rest(database: Database) -> float:
    """Until nothing is in flight, or for as long as that can take; what is then still there is stuck. The seconds."""
    began = time.monotonic()
    while in_flight(database) and time.monotonic() < began + PATIENCE:
        time.sleep(GLANCE)
    return time.monotonic() - began
