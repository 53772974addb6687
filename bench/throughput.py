"""How many media per second go from pending to ready_for_reading, beside the same steps on other queues."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from statistics import median
from typing import cast

from bench.contenders import Contender, Ground
from bench.places import Place
from bench.table import Line, Rounds, interleaved, ratio

ROUNDS = 3
COUNT = 3000
PATIENCE = 300.0

#: Which module of bench.contenders, on which database, and with how many processes.
CONTENDERS = {
    "local, postgres": ("nexus_local", "postgres", 1),
    "celery, postgres": ("nexus_celery", "postgres", 1),
    "two celery workers": ("nexus_celery", "postgres", 2),
    "local, sqlite": ("nexus_local", "sqlite", 1),
    "plain celery": ("celery_peer", "postgres", 1),
    "procrastinate": ("procrastinate_peer", "postgres", 1),
    "pgqueuer": ("pgqueuer_peer", "postgres", 1),
    "huey": ("huey_peer", "sqlite", 1),
}
#: Ours, theirs, and the least ratio if there is one.
PAIRS = [
    ("celery, postgres", "local, postgres", 0.8),
    ("two celery workers", "celery, postgres", 1.5),
    ("local, postgres", "pgqueuer", 1.0),
    ("local, postgres", "procrastinate", None),
    ("local, postgres", "plain celery", None),
    ("celery, postgres", "plain celery", 2.0),
    ("local, sqlite", "huey", 1.0),
]


def ask(place: Place) -> list[Line]:
    contestants = {name: partial(_per_second, place, *chosen) for name, chosen in CONTENDERS.items()}
    figures = interleaved(ROUNDS, contestants, warm_up=False)
    return [_line(figures, ours, theirs, least) for ours, theirs, least in PAIRS]


def _line(figures: Rounds, ours: str, theirs: str, least: float | None) -> Line:
    speed = {name: f"{median(rounds):,.0f}/s" for name, rounds in figures.items()}
    return Line(
        f"{ours}, against {theirs}", speed[ours], speed[theirs], ratio(figures, ours, theirs), at_least=least
    )


def _per_second(place: Place, module: str, backend: str, processes: int) -> float:
    """From the first claim to the last end, by what the rows themselves say; starting up is not counted."""
    contender = _contender(module)
    ground = Ground(place.empty(backend), place.redis)
    contender.fill(ground, COUNT)
    workers = [
        get_context("spawn").Process(target=_work, args=(module, ground), daemon=True)
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    try:
        return COUNT / _finished(contender, ground, lambda: all(worker.is_alive() for worker in workers))
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def _contender(module: str) -> Contender:
    return cast(Contender, import_module(f"bench.contenders.{module}"))


def _work(module: str, ground: Ground) -> None:
    """In the worker's process, without the banner and the warning about root that Celery prints."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    _contender(module).work(ground)


def _finished(contender: Contender, ground: Ground, alive: Callable[[], bool]) -> float:
    deadline = time.monotonic() + PATIENCE
    while alive() and time.monotonic() < deadline:
        done, seconds = contender.progress(ground)
        if done == COUNT:
            return seconds
        time.sleep(0.25)
    raise RuntimeError(f"{contender} did not finish: {contender.progress(ground)}")
