"""What goes wrong, where and when. The same seed gives the same plan."""

from __future__ import annotations

import random
from dataclasses import dataclass

SERVERS = ("server-1", "server-2")
WORKERS = ("worker-1", "worker-2")
PROCESSES = SERVERS + WORKERS
REDIS, STORE, DISK, LEFTOVERS = "redis", "store", "disk", "leftovers"
#: The most faults in one run, however long it is.
MOST_FAULTS = 2000
#: The time between two faults, and how long one lasts, in seconds.
GAP = (0.1, 0.7)
LENGTH = (0.2, 3.0)
#: Long enough for a trap to spring, for a client to give up, for the other server to do it all instead, and for upkeep
#: to come by.
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
    """Draw every kind of fault once, the longest first, and then by weight. No target has two at a time."""
    chance = random.Random(f"faults {seed}")
    choices = menu(scene)
    kinds, weights = list(choices), [weight for weight, _, _ in choices.values()]
    due = sorted(chance.sample(kinds, len(kinds)), key=lambda kind: -choices[kind][2][0])
    free: dict[str, float] = {}
    plan: list[Fault] = []
    now = 0.0
    while (now := now + chance.uniform(*GAP)) < seconds and len(plan) < MOST_FAULTS:
        idle = {kind: [one for one in choices[kind][1] if free.get(one, 0.0) <= now] for kind in kinds}
        kind = next((kind for kind in due if idle[kind]), None) or chance.choices(kinds, weights)[0]
        length = min(chance.uniform(*choices[kind][2]), seconds - now)
        if not idle[kind] or length < choices[kind][2][0]:
            continue
        plan.append(Fault(now, kind, target := chance.choice(idle[kind]), length))
        free[target] = now + length
        due = [other for other in due if other != kind]
    return plan


def menu(scene: Scene) -> dict[str, tuple[int, tuple[str, ...], tuple[float, float]]]:
    """How often each kind of fault happens, where, and for how long."""
    found: dict[str, tuple[int, tuple[str, ...], tuple[float, float]]] = {
        "kill": (10, PROCESSES, LENGTH),
        "freeze": (8, PROCESSES, LENGTH),
    }
    lines: tuple[str, ...] = ()
    if scene.database == "postgres":
        lines += PROCESSES
        found |= {
            "cut_at_begin": (3, PROCESSES, LENGTH),
            "cut_before_commit": (5, PROCESSES, LENGTH),
            "cut_after_commit": (5, PROCESSES, LENGTH),
            "cut_after_import": (6, SERVERS, LONG),
            "freeze_after_refusal": (6, SERVERS, LONG),
        }
    if scene.queue == "celery":
        lines += (REDIS,)
        found["empty_redis"] = (2, (REDIS,), LENGTH)
    if scene.storage == "s3":
        lines += (STORE,)
    else:
        found |= {
            "full_disk": (3, (DISK,), LENGTH),
            "read_only_disk": (3, (DISK,), LENGTH),
            "old_leftovers": (2, (LEFTOVERS,), LONG),
        }
    if lines:
        found |= {
            "cut": (6, lines, LENGTH),
            "cut_in_answer": (6, lines, LENGTH),
            "away": (4, lines, LENGTH),
            "stall": (4, lines, LENGTH),
        }
    return found
