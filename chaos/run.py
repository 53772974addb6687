"""One run: actors act while the plan is carried out, then comes the calm, then every invariant is looked at."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import UUID

from chaos import calm, faults, plan
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
        with acting(stage, ledger, seed):
            happened = faults.carry_out(stage, drawn)
        violations = list(calm.restore(stage))
        rest = calm.wait_until_at_rest(database)
        violations += refused(ledger)
        violations += promises.check(ledger, stage.urls[0], stage.headers)
        violations += rows.check(database)
        violations += history.check(database)
        left, lost = _objects(stage, database)
    return Report(seed, seconds, scene, len(drawn), happened, ledger, rest, left, violations + lost)


@contextmanager
def acting(stage: Stage, ledger: Ledger, seed: int) -> Iterator[None]:
    """The whole cast acts until the end; whatever breaks in an actor itself is raised here."""
    broken: list[BaseException] = []
    with ExitStack() as stack:
        actors = [_actor(stage, ledger, name, seed, stack) for name in CAST]
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


def _actor(stage: Stage, ledger: Ledger, name: str, seed: int, stack: ExitStack) -> Actor:
    chance = random.Random(f"{name} {seed}")
    user = UUID(int=chance.getrandbits(128), version=4)
    client = Client(ledger, stage.urls, user, stage.headers(user), chance)
    stack.callback(client.close)
    return CAST[name](name, client, ledger, stage.site, chance)


def _perform(actor: Actor, broken: list[BaseException]) -> None:
    try:
        actor.run()
    except BaseException as error:
        broken.append(error)


def _objects(stage: Stage, database: Database) -> tuple[int, list[Violation]]:
    """How much `nexus clean` found to remove, and what it should not have found or left."""
    if stage.scene.storage != "local":
        return 0, []
    folder = stage.data / "storage"
    violations = list(objects.missing(database, objects.stored(folder)))
    left = objects.left_behind(database, objects.stored(folder))
    objects.age(folder)
    code, said = stage.run_command("clean", "--remove")
    if code:
        violations.append(
            Violation("nothing is left behind", f"nexus clean ended with {code}: {said[-300:]}")
        )
    found = objects.stored(folder)
    violations += objects.missing(database, found)
    violations += [
        Violation("nothing is left behind", path) for path in sorted(objects.left_behind(database, found))
    ]
    return len(left), violations
