"""Carries out the plan: each fault begins at its time and is undone at its end, and counts if it really happened."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redis import Redis, RedisError

from chaos import broken_disk, leftovers
from chaos.actors.importer import SHELF
from chaos.plan import Fault, menu
from chaos.stage import Stage
from tests.kit.faults.network_lines import BEGIN, COMMIT, Connection, Moment, Trap

#: What a server writes when it refuses an upload.
REFUSED = b"E_INVALID_FILE_TYPE"
#: How long to wait, in seconds, for a planned kind of fault that has not happened in its time.
LAST_CHANCE = 45.0
GLANCE = 0.05


@dataclass(frozen=True)
class Begun:
    """A fault under way."""

    kind: str
    #: Whether it has hit something: a trap may never spring, and nobody may write to a full disk.
    happened: Callable[[], bool]
    undo: Callable[[], object] = lambda: None


def carry_out(stage: Stage, plan: Sequence[Fault]) -> Counter[str]:
    """Carry out all faults; return how often each kind happened, after the last one is undone."""
    done: Counter[str] = Counter()
    waiting: list[tuple[float, Begun]] = []
    began = time.monotonic()
    for fault in plan:
        _end_until(waiting, began, fault.at, done)
        _sleep_until(began, fault.at)
        waiting.append((fault.at + fault.length, begin(stage, fault.kind, fault.target)))
    _end_until(waiting, began, float("inf"), done)
    for kind in sorted({fault.kind for fault in plan} - set(done)):
        _insist(stage, kind, done)
    return done


def _end_until(waiting: list[tuple[float, Begun]], began: float, moment: float, done: Counter[str]) -> None:
    for entry in sorted((entry for entry in waiting if entry[0] <= moment), key=lambda entry: entry[0]):
        _sleep_until(began, entry[0])
        waiting.remove(entry)
        _end(entry[1], done)


def _end(fault: Begun, done: Counter[str]) -> None:
    if fault.happened():
        done[fault.kind] += 1
    fault.undo()


def _insist(stage: Stage, kind: str, done: Counter[str]) -> None:
    """Begin a fault everywhere until it happens somewhere, so that it happens on a busy machine too."""
    begun = [begin(stage, kind, target) for target in menu(stage.scene)[kind][1]]
    deadline = time.monotonic() + LAST_CHANCE
    while not any(fault.happened() for fault in begun) and time.monotonic() < deadline:
        time.sleep(GLANCE)
    for fault in begun:
        _end(fault, done)


def _sleep_until(began: float, moment: float) -> None:
    time.sleep(max(0.0, began + moment - time.monotonic()))


def begin(stage: Stage, kind: str, target: str) -> Begun:
    if kind in _TRAPS:
        return _set_trap(stage, kind, target)
    if kind in _OF_DISKS:
        return _break_disk(stage, kind)
    return _PLAIN[kind](stage, target)


def _kill(stage: Stage, name: str) -> Begun:
    process = stage.processes[name]
    process.send(signal.SIGKILL)
    is_killed = lambda: not process.running and process.code == -signal.SIGKILL  # noqa: E731
    return Begun("kill", is_killed, lambda: stage.revive(name))


def _freeze(stage: Stage, name: str) -> Begun:
    process = stage.processes[name]
    was_running = process.running
    process.send(signal.SIGSTOP)
    return Begun("freeze", lambda: was_running, lambda: process.send(signal.SIGCONT))


def _break_disk(stage: Stage, kind: str) -> Begun:
    flag = broken_disk.flag(stage.data, _OF_DISKS[kind])
    refused = broken_disk.flag(stage.data, _OF_DISKS[kind] + broken_disk.REFUSED)
    refused.unlink(missing_ok=True)
    flag.touch()
    return Begun(kind, refused.exists, lambda: flag.unlink(missing_ok=True))


def _leave_behind(stage: Stage, _: str) -> Begun:
    """Plant leftovers for upkeep: this has happened once they are gone."""
    places = leftovers.plant(stage.store)
    return Begun("old_leftovers", lambda: not any(place.exists() for place in places))


def _empty(stage: Stage, line: str) -> Begun:
    try:
        with Redis.from_url(stage.lines[line].target) as client:
            emptied = bool(client.flushall())
    except RedisError:
        emptied = False
    return Begun("empty_redis", lambda: emptied)


def _cut(stage: Stage, name: str) -> Begun:
    line = stage.lines[name]
    was_used = line.is_used
    line.cut()
    return Begun("cut", lambda: was_used)


def _away(stage: Stage, name: str) -> Begun:
    line = stage.lines[name]
    was_used = line.is_used
    line.refuse()
    return Begun("away", lambda: was_used, line.restore)


def _stall(stage: Stage, name: str) -> Begun:
    line = stage.lines[name]
    was_used = line.is_used
    line.hold()
    return Begun("stall", lambda: was_used, line.restore)


def _set_trap(stage: Stage, kind: str, target: str) -> Begun:
    """Set a trap that springs in the middle of a conversation."""
    line, process = stage.lines[target], stage.processes.get(target)
    freezes = kind == _FREEZING

    def spring(connection: Connection) -> None:
        if freezes and process is not None:
            process.send(signal.SIGSTOP)
        else:
            connection.cut()

    def restore() -> None:
        line.restore()
        if freezes and process is not None:
            process.send(signal.SIGCONT)

    armed = line.arm(_TRAPS[kind], spring)
    return Begun(kind, armed.sprung.is_set, restore)


_PLAIN: dict[str, Callable[[Stage, str], Begun]] = {
    "kill": _kill,
    "freeze": _freeze,
    "cut": _cut,
    "away": _away,
    "stall": _stall,
    "empty_redis": _empty,
    "old_leftovers": _leave_behind,
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
