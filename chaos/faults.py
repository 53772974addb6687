"""Carries out the plan: each fault begins at its time and is undone at its end."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from redis import Redis, RedisError

from chaos import broken_disk
from chaos.actors.importer import SHELF
from chaos.plan import Fault
from chaos.stage import Stage
from tests.kit.faults.network_lines import BEGIN, COMMIT, Connection, Moment, Trap

#: What a server writes when it refuses an upload.
REFUSED = b"E_INVALID_FILE_TYPE"
Undo = Callable[[], object]


def carry_out(stage: Stage, plan: Sequence[Fault]) -> Counter[str]:
    """Carry out all faults; return how often each kind happened, after the last one is undone."""
    done: Counter[str] = Counter()
    waiting: list[tuple[float, Undo]] = []
    began = time.monotonic()
    for fault in plan:
        _undo_until(waiting, began, fault.at)
        _sleep_until(began, fault.at)
        waiting.append((fault.at + fault.length, begin(stage, fault, done)))
    _undo_until(waiting, began, float("inf"))
    return done


def _undo_until(waiting: list[tuple[float, Undo]], began: float, moment: float) -> None:
    for entry in sorted((entry for entry in waiting if entry[0] <= moment), key=lambda entry: entry[0]):
        _sleep_until(began, entry[0])
        waiting.remove(entry)
        entry[1]()


def _sleep_until(began: float, moment: float) -> None:
    time.sleep(max(0.0, began + moment - time.monotonic()))


def begin(stage: Stage, fault: Fault, done: Counter[str]) -> Undo:
    """Begin a fault; return what undoes it. A trap counts when it springs."""
    if fault.kind in _TRAPS:
        return _set_trap(stage, fault, lambda: done.update([fault.kind]))
    done[fault.kind] += 1
    if fault.kind in _OF_DISKS:
        return _break_disk(stage, _OF_DISKS[fault.kind])
    return _PLAIN[fault.kind](stage, fault.target)


def _kill(stage: Stage, name: str) -> Undo:
    stage.processes[name].send(signal.SIGKILL)
    return lambda: stage.revive(name)


def _freeze(stage: Stage, name: str) -> Undo:
    process = stage.processes[name]
    process.send(signal.SIGSTOP)
    return lambda: process.send(signal.SIGCONT)


def _break_disk(stage: Stage, kind: str) -> Undo:
    flag = broken_disk.flag(stage.data, kind)
    flag.touch()
    return lambda: flag.unlink(missing_ok=True)


def _empty(stage: Stage, line: str) -> Undo:
    with suppress(RedisError), Redis.from_url(stage.lines[line].target) as client:
        client.flushall()
    return lambda: None


def _cut(stage: Stage, name: str) -> Undo:
    stage.lines[name].cut()
    return lambda: None


def _away(stage: Stage, name: str) -> Undo:
    stage.lines[name].refuse()
    return stage.lines[name].restore


def _stall(stage: Stage, name: str) -> Undo:
    stage.lines[name].hold()
    return stage.lines[name].restore


def _set_trap(stage: Stage, fault: Fault, count: Callable[[], None]) -> Undo:
    """Set a trap that springs in the middle of a conversation."""
    line, process = stage.lines[fault.target], stage.processes.get(fault.target)
    freezes = fault.kind == _FREEZING

    def spring(connection: Connection) -> None:
        count()
        if freezes and process is not None:
            process.send(signal.SIGSTOP)
        else:
            connection.cut()

    def restore() -> None:
        line.restore()
        if freezes and process is not None:
            process.send(signal.SIGCONT)

    line.arm(_TRAPS[fault.kind], spring)
    return restore


_PLAIN: dict[str, Callable[[Stage, str], Undo]] = {
    "kill": _kill,
    "freeze": _freeze,
    "cut": _cut,
    "away": _away,
    "stall": _stall,
    "empty_redis": _empty,
}
_OF_DISKS = {"full_disk": broken_disk.FULL, "read_only_disk": broken_disk.READ_ONLY}
_TRAPS = {
    "cut_in_answer": Trap((b"",), Moment.WITHIN),
    "cut_at_begin": Trap((BEGIN,), Moment.AFTER),
    "cut_before_commit": Trap((COMMIT,), Moment.BEFORE),
    "cut_after_commit": Trap((COMMIT,), Moment.AFTER),
    "cut_after_import": Trap((SHELF.encode(), COMMIT), Moment.AFTER),
    "freeze_after_refusal": Trap((REFUSED, COMMIT), Moment.AFTER),
}
#: The trap that freezes the process; the others cut the connection.
_FREEZING = "freeze_after_refusal"
