"""One run: actors act while faults happen; then everything calms down, and every invariant is checked."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import UUID

from chaos import calm, faults, leftovers, plan
from chaos.actors import Actor
from chaos.actors.editor import Editor
from chaos.actors.importer import Importer
from chaos.actors.reader import Reader
from chaos.actors.uploader import Uploader
from chaos.client import Client
from chaos.invariants import Violation, history, objects, promises, rows
from chaos.invariants.database import Database
from chaos.ledger import Ledger
from chaos.plan import PROCESSES, Scene
from chaos.report import Report, refused
from chaos.stage import Stage, staged

#: How long the actors act once more, undisturbed: this share of the run, and at most this many seconds.
ENCORE, LONGEST_ENCORE = 0.25, 10.0
CAST: dict[str, type[Actor]] = {
    "ann": Reader,
    "ben": Reader,
    "cleo": Uploader,
    "dora": Uploader,
    "emil": Editor,
    "fay": Importer,
    "gus": Importer,
}


def run(seed: int, seconds: float, scene: Scene) -> Report:
    drawn = plan.draw(seed, seconds, scene)
    ledger = Ledger()
    with staged(scene) as stage:
        database = Database(stage.database)
        for name in PROCESSES:
            stage.start(name)
        stage.wait_until_ready()
        leftovers.begin_long_ago(stage, database)
        with acting(stage, ledger, seed, act=1):
            happened = faults.carry_out(stage, drawn)
        violations = list(calm.restore(stage))
        rest = calm.wait_until_at_rest(database)
        crashed = _left_behind(stage, database)
        with acting(stage, ledger, seed, act=2):
            # Without faults, nothing may be left behind.
            time.sleep(min(seconds * ENCORE, LONGEST_ENCORE))
        calm.wait_until_at_rest(database)
        violations += refused(ledger)
        violations += promises.check(ledger, stage.urls[0], stage.headers)
        violations += rows.check(database)
        violations += history.check(database)
        violations += [
            Violation("what nothing broke leaves nothing behind", path)
            for path in sorted(_left_behind(stage, database) - crashed)
        ]
        violations += _clean(stage, database)
    return Report(
        seed,
        seconds,
        scene,
        Counter(fault.kind for fault in drawn),
        happened,
        ledger,
        rest,
        len(crashed),
        violations,
    )


@contextmanager
def acting(stage: Stage, ledger: Ledger, seed: int, *, act: int) -> Iterator[None]:
    """Let all actors act until the end; raise what fails in an actor itself."""
    broken: list[BaseException] = []
    with ExitStack() as stack:
        actors = [_actor(stage, ledger, name, seed, act, stack) for name in CAST]
        threads = [
            threading.Thread(target=_perform, args=(actor, broken), name=actor.name) for actor in actors
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for actor in actors:
                actor.over.set()
            for thread in threads:
                thread.join()
    if broken:
        raise broken[0]


def _actor(stage: Stage, ledger: Ledger, name: str, seed: int, act: int, stack: ExitStack) -> Actor:
    chance = random.Random(f"{name} {seed} {act}")
    user = UUID(int=chance.getrandbits(128), version=4)
    client = Client(ledger, stage.urls, user, stage.headers(user), chance)
    stack.callback(client.close)
    return CAST[name](f"{name}{act}", client, ledger, stage.site, chance)


def _perform(actor: Actor, broken: list[BaseException]) -> None:
    try:
        actor.run()
    except BaseException as error:
        broken.append(error)


def _left_behind(stage: Stage, database: Database) -> set[str]:
    """Other stores hide uploads that are arriving, and their age: check only the bytes there."""
    return (
        objects.left_behind(database, objects.stored(stage.store))
        if stage.scene.storage == "local"
        else set()
    )


def _clean(stage: Stage, database: Database) -> Iterator[Violation]:
    """Check that once it is old, upkeep removes what crashes left behind, and `nexus clean` finds no more."""
    if stage.scene.storage != "local":
        return
    leftovers.make_everything_old(stage, database)
    calm.wait_for_upkeep(lambda: not _left_behind(stage, database))
    for path in sorted(_left_behind(stage, database)):
        yield Violation("upkeep removes what crashes left behind", path)
    code, said = stage.run_command("clean", "--remove")
    if code:
        yield Violation("nothing is left behind", f"nexus clean ended with {code}: {said[-300:]}")
    for path in sorted(_left_behind(stage, database)):
        yield Violation("nothing is left behind", path)
    yield from objects.missing(database, objects.stored(stage.store))
