"""What goes wrong, where and when. The same seed gives the same plan."""

from __future__ import annotations

import random
from dataclasses import dataclass

SERVERS = ("server-1", "server-2")
WORKERS = ("worker-1", "worker-2")
PROCESSES = SERVERS + WORKERS
DATABASE, REDIS, STORE, DISK = "database", "redis", "store", "disk"
#: The most faults in one run, however long it is.
MOST_FAULTS = 2000
#: The time between two faults, and how long one lasts, in seconds.
GAP = (0.1, 0.7)
LENGTH = (0.2, 3.0)
#: Long enough for a trap to spring, for a client to give up, and for the other server to do it all instead.
LONG = (8.0, 12.0)


@dataclass(frozen=True)
class Scene:
    """Which parts Nexus runs on."""

    database: str = "postgres"
    queue: str = "celery"
    storage: str = "local"


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong for a while."""

    at: float
    kind: str
    target: str
    length: float


def draw(seed: int, seconds: float, scene: Scene) -> list[Fault]:
    """No target has two faults at a time."""
    chance = random.Random(f"faults {seed}")
    menu = _menu(scene)
    kinds, weights = list(menu), [weight for weight, _, _ in menu.values()]
    free: dict[str, float] = {}
    plan: list[Fault] = []
    now = 0.0
    while (now := now + chance.uniform(*GAP)) < seconds and len(plan) < MOST_FAULTS:
        kind = chance.choices(kinds, weights)[0]
        _, targets, lengths = menu[kind]
        target, length = chance.choice(targets), chance.uniform(*lengths)
        if free.get(target, 0.0) <= now and now + length < seconds:
            plan.append(Fault(now, kind, target, length))
            free[target] = now + length
    return plan


def _menu(scene: Scene) -> dict[str, tuple[int, tuple[str, ...], tuple[float, float]]]:
    """How often each kind of fault happens, where, and for how long."""
    menu = {
        "kill": (10, PROCESSES, LENGTH),
        "freeze": (8, PROCESSES, LENGTH),
    }
    lines: tuple[str, ...] = ()
    if scene.database == "postgres":
        lines += PROCESSES
        menu |= {
            "cut_at_begin": (3, PROCESSES, LENGTH),
            "cut_before_commit": (5, PROCESSES, LENGTH),
            "cut_after_commit": (5, PROCESSES, LENGTH),
            "cut_after_import": (6, SERVERS, LONG),
            "freeze_after_refusal": (6, SERVERS, LONG),
        }
    if scene.queue == "celery":
        lines += (REDIS,)
        menu["empty_redis"] = (2, (REDIS,), LENGTH)
    if scene.storage == "s3":
        lines += (STORE,)
    else:
        menu |= {"full_disk": (3, (DISK,), LENGTH), "read_only_disk": (3, (DISK,), LENGTH)}
    if lines:
        menu |= {
            "cut": (6, lines, LENGTH),
            "cut_in_answer": (6, lines, LENGTH),
            "away": (4, lines, LENGTH),
            "stall": (4, lines, LENGTH),
        }
    return menu
