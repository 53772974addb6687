"""Commands in processes of their own, forked from one that has imported everything: a start costs little.

The process that forks is the standard library's fork server; what a command prints goes to files or to a terminal.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pty
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from nexus.cli import main
from tests.kit.run_storage import run_prefix

PATIENCE = 120.0
GLANCE = 0.02
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "nexus.cli.add",
        "nexus.cli.commands",
        "nexus.cli.database",
        "nexus.cli.doctor",
        "nexus.cli.extract",
        "nexus.cli.extractors",
        "nexus.cli.refresh",
        "nexus.cli.retry",
        "nexus.cli.server",
        "nexus.cli.status",
        "nexus.worker.tasks",
        "tests.kit.commands",
        "tests.kit.faults.killed_in_storage",
        "uvicorn.protocols.http.httptools_impl",
    ]
)


@dataclass
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str


@dataclass
class Running:
    process: BaseProcess
    out_path: Path
    err_path: Path

    @property
    def out(self) -> str:
        return self.out_path.read_text()

    @property
    def err(self) -> str:
        return self.err_path.read_text()

    def until(self, found: Callable[[str], Any]) -> Any:
        """Wait until something is found in its standard output, and return it."""
        deadline = time.monotonic() + PATIENCE
        while not (seen := found(self.out)):
            assert self.process.is_alive(), f"it ended with {self.process.exitcode}: {self.out}{self.err}"
            assert time.monotonic() < deadline, f"it never came: {self.out}{self.err}"
            time.sleep(GLANCE)
        return seen

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def wait(self) -> Ran:
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, f"it did not end: {self.out}{self.err}"
        return Ran(self.process.exitcode, self.out, self.err)


@dataclass
class Screen:
    """A command that runs in a terminal."""

    process: BaseProcess
    terminal: int
    seen: str = ""
    _answered: int = 0

    def until(self, words: str) -> None:
        """Wait until it shows these words, after the last key that was pressed."""
        deadline = time.monotonic() + PATIENCE
        while words not in self.look()[self._answered :]:
            assert self.process.is_alive(), f"it ended with {self.process.exitcode}: {self.seen}"
            assert time.monotonic() < deadline, f"it never came: {self.seen}"
            time.sleep(GLANCE)

    def press(self, keys: str) -> None:
        self._answered = len(self.look())
        os.write(self.terminal, keys.encode())

    def wait(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self.process.is_alive() and time.monotonic() < deadline:
            self.process.join(GLANCE)
            self.look()
        self.look()
        assert self.process.exitcode is not None, f"it did not end: {self.seen}"
        return self.process.exitcode

    def look(self) -> str:
        self.seen += _available(self.terminal).decode(errors="replace")
        return self.seen


@dataclass
class Terminal:
    """The commands of one person: a folder to work in, and an environment."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    count: int = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, *arguments: object, **environment: str) -> Ran:
        with self.start(*arguments, **environment) as running:
            return running.wait()

    @contextmanager
    def start(self, *arguments: object, **environment: str) -> Iterator[Running]:
        """Killed at the end, if it still runs."""
        self.count += 1
        out, err = self.folder / f"{self.count}.out", self.folder / f"{self.count}.err"
        out.touch()
        err.touch()
        process = self._fork(arguments, environment, out, err)
        try:
            yield Running(process, out, err)
        finally:
            process.kill()
            process.join()

    def run_in_terminal(self, *arguments: object, **environment: str) -> tuple[int, str]:
        """The exit code, and everything that a person would have seen."""
        with self.start_in_terminal(*arguments, **environment) as screen:
            return screen.wait(), screen.seen

    @contextmanager
    def start_in_terminal(self, *arguments: object, **environment: str) -> Iterator[Screen]:
        """Start it in a terminal. Killed at the end, if it still runs."""
        mine, theirs = pty.openpty()
        place = Path(os.ttyname(theirs))
        looks = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "50"}
        process = self._fork(arguments, {**looks, **environment}, place, place, place)
        os.set_blocking(mine, False)
        try:
            yield Screen(process, mine)
        finally:
            process.kill()
            process.join()
            os.close(theirs)
            os.close(mine)

    def _fork(
        self,
        arguments: tuple[object, ...],
        environment: Mapping[str, str],
        out: Path,
        err: Path,
        keyboard: Path = Path(os.devnull),
    ) -> BaseProcess:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NEXUS_", "XDG_"))}
        own = {"HOME": str(self.folder), "NEXUS_STORAGE_PREFIX": run_prefix(), "NEXUS_EMBED": "off"}
        whole = {**kept, **own, **self.environment, **environment}
        process = FORKS.Process(
            target=become, args=([str(a) for a in arguments], whole, self.folder, keyboard, out, err)
        )
        process.start()
        return process


def listed_items(terminal: Terminal, *arguments: str) -> list[dict[str, Any]]:
    """What `nexus status` lists."""
    found: list[dict[str, Any]] = json.loads(terminal.run("status", "--json", *arguments).out)
    return found


def _available(reader: int) -> bytes:
    try:
        return os.read(reader, 1 << 20)
    except BlockingIOError:
        return b""


def become(
    arguments: list[str], environment: dict[str, str], folder: Path, keyboard: Path, out: Path, err: Path
) -> None:
    """Run the command in this new process. It leads a session, so that a terminal which it opens is its own."""
    os.setsid()
    given = (os.open(keyboard, os.O_RDONLY), os.open(out, os.O_WRONLY), os.open(err, os.O_WRONLY))
    for target, number in enumerate(given):
        os.dup2(number, target)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["nexus", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
