"""`make shipped`: install Nexus as a team does, run the README's commands, work, and kill one of each."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tools.shipped import recipe as recipes
from tools.shipped import work
from tools.shipped.installation import ROOT, import_everything, install
from tools.shipped.team import Process, Team, team
from tools.shipped.work import Member


def main() -> int:
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="nexus-shipped-") as folder:
            check(Path(folder).resolve())
    except Exception as error:
        print(f"\nFAILED: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"Nexus works as shipped ({time.monotonic() - began:.0f} s).")
    return 0


def check(folder: Path) -> None:
    recipe = recipes.read(ROOT / "README.md")
    with step("build the wheel, and install it with its pinned requirements alone"):
        programs = install(recipe, folder)
    with step("import every module there"):
        import_everything(programs, folder)
    with team(recipe, programs, folder) as started:
        try:
            live(started)
        except Exception:
            for process in started.processes:
                print(f"\n--- the log of {process.name}\n{process.tail()}", file=sys.stderr)
            raise


def live(team: Team) -> None:
    member, recipe = Member(team), team.recipe
    with step("upgrade the database, ask the doctor, start two servers and two workers"):
        team.run(recipe.command("nexus db upgrade"))
        team.run(recipe.command("nexus doctor"))
        first, second, *workers = at_once(
            lambda: team.serve(0),
            lambda: team.serve(1),
            lambda: team.work(fetches=False),
            lambda: team.work(fetches=False),
        )
    with step("sign in, and look at the pages"):
        work.look_at_pages(member, first)
    with step("upload by signed link, and kill the server that began it"):
        paper = work.upload(member, first, first.kill, second)
        work.wait_until_readable(member, second, paper)
    with step("import two files"):
        work.import_files(member, second)
        first = team.serve(0)
        refusal = member.call(first, "GET", "/imports")
        assert refusal.status_code == 409, f"two servers have imports: {refusal.text}"
    with step("take in an address, and kill the worker that fetches it"):
        for worker in workers:
            worker.end()
        workers = take_in_with_a_kill(team, member, first)
    with step("make a story, and kill the server it was begun on"):
        story_with_a_kill(team, member, first, second)
        first = team.serve(0)
    with step("kill Valkey and PostgreSQL, and start them again"):
        kill_stores(team, member, first, second)
    with step("ask the doctor, and stop everything"):
        team.run(recipe.command("nexus doctor"))
        for process in (first, second, *workers):
            process.end()


def take_in_with_a_kill(team: Team, member: Member, server: Process) -> list[Process]:
    """The two workers that are left, one of which took the work over."""
    doomed = team.work(fetches=True)
    article = work.add(member, server, "/held/article")
    work.wait_until_asked(member, "/held/article")
    heirs = at_once(lambda: team.work(fetches=True), lambda: team.work(fetches=True))
    doomed.kill()
    team.site.gate.set()
    work.wait_until_readable(member, server, article)
    return heirs


def story_with_a_kill(team: Team, member: Member, first: Process, second: Process) -> None:
    team.site.gate.clear()
    job = work.begin_story(member, first, "/held/story")
    work.wait_until_asked(member, "/held/story")
    first.kill()
    team.site.gate.set()
    work.end_story(member, second, job)


def kill_stores(team: Team, member: Member, first: Process, second: Process) -> None:
    """What was acknowledged without a queue to tell, before the database crashed, is done all the same.

    The object store stays: the one of the tests begins empty at each start.
    """
    team.stores.redis.kill()
    article = work.add(member, first, "/late")
    team.stores.database.kill()
    team.stores.database.start()
    team.stores.redis.start()
    for server in (first, second):
        work.wait_until_readable(member, server, article)


def at_once(*starts: Callable[[], Process]) -> list[Process]:
    with ThreadPoolExecutor() as pool:
        return [started.result() for started in [pool.submit(start) for start in starts]]


@contextmanager
def step(name: str) -> Iterator[None]:
    """Says what is done and how long it took: the last line names what failed."""
    print(f"{name} … ", end="", flush=True)
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
